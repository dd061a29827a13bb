"""``fullbloom plan``: compare the costs of filters before building one."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from fullbloom.cli import units
from fullbloom.cli.options import Options

if TYPE_CHECKING:
    import argparse

    from fullbloom.plan import Choice

HELP = "compare the costs of filters"
DETAIL = """Give two of --items, --fpr and --memory, or --items alone for a rate of 1 %; with all
three, filters that do not fit are marked. Without --needs the table has the layouts of the plain filter;
with it, every structure that supports the needs, and when it may have false negatives. With --items and
the costs of a false positive and of a byte, the rate is the cheapest one. The times are estimates for
batches on one core, within a factor of two."""
EXAMPLE = "fullbloom plan --items 100e6 --fpr 1e-4 --needs merge,map"
QUIET = "print nothing: the exit code says whether there is a choice that fits"

_FPR = 0.01
_COSTS = ("cost_of_false_positive", "cost_of_byte", "absent_lookups")
_ROW = "{} {:<10} {:<12} {:>15} {:>3} {:>9} {:>10} {:>9} {:>7}"
_NEEDS_ROW = "{} {:<18} {:>15} {:>9} {:>10} {:>9} {:>8} {:>7}  {}"


@dataclass(frozen=True, kw_only=True)
class PlanOptions(Options):
    """Options of ``fullbloom plan``."""

    items: int | None
    fpr: float | None
    memory: int | None
    universe: int | None
    excluded: int | None
    cost_of_false_positive: float | None
    cost_of_byte: float | None
    absent_lookups: int | None
    needs: list[str]


OPTIONS = PlanOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--items", type=units.count, metavar="N", help="number of different keys")
    parser.add_argument("--fpr", type=units.rate, metavar="P", help="false-positive rate")
    parser.add_argument("--memory", type=units.size, metavar="SIZE", help="bytes at most, such as 64M")
    parser.add_argument(
        "--universe",
        type=units.count,
        metavar="N",
        help="keys are whole numbers below N: compare exact sets, too",
    )
    parser.add_argument(
        "--excluded",
        type=units.count,
        metavar="N",
        help="all N other keys are known, too: compare structures that are then exact",
    )
    for name, text in (
        ("--cost-of-false-positive", "cost of one false positive; chooses the rate, with --cost-of-byte"),
        ("--cost-of-byte", "cost of one byte over the life of the filter, in the same currency"),
    ):
        parser.add_argument(name, type=units.price, metavar="COST", help=text)
    parser.add_argument(
        "--absent-lookups",
        type=units.count,
        metavar="N",
        help="lookups of absent keys over the filter's life; by default as many as --items",
    )
    parser.add_argument(
        "--needs",
        "--need",
        action="append",
        default=[],
        metavar="WHAT[,WHAT...]",
        help="operations that the filter must support: " + ", ".join(list_needs()),
    )


def list_needs() -> list[str]:
    """Return the words that --needs knows: the registry's, and "parquet"."""
    from fullbloom import registry
    from fullbloom.plan import PARQUET

    return [*registry.capabilities(), PARQUET]


def run(options: PlanOptions) -> int:
    """Print the table; return 1 if nothing fits the memory."""
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.report import report
    from fullbloom.plan import choices

    needed = [word.strip() for text in options.needs for word in text.split(",") if word.strip()]
    if options.items is None and (options.fpr is None or options.memory is None):
        choices(1, _FPR, needs=needed)  # an unknown word is reported first
        raise Refusal("give --items, or both --fpr and --memory")
    costs = {name: getattr(options, name) for name in _COSTS}
    has_costs = any(value is not None for value in costs.values())
    if options.fpr is None and options.memory is None and not has_costs:
        options = replace(options, fpr=_FPR)
    left_out: dict[str, str] = {}
    rows = choices(
        options.items,
        options.fpr,
        memory=options.memory,
        needs=needed,
        universe=options.universe,
        excluded=options.excluded,
        **costs,
        left_out=left_out,
    )
    lines = _format_layouts(rows) if any(row.num_hashes for row in rows) else _format_structures(rows)
    if "delete" in needed and "remove" not in needed:
        lines.append("delete: some keys only; where every key must be removable, use --needs remove")
    lines += [f"left out: {layout} ({why})" for layout, why in left_out.items()]
    lines.append(
        "* recommended" if rows[0].recommended else "nothing fits --memory; raise it, or raise --fpr"
    )
    values = asdict(options)
    query = {name: values[name] for name in ("items", "fpr", "memory", "universe", "excluded", *_COSTS)}
    stats = {
        "asked": query | {"needs": needed},
        "choices": [_describe(options, row) for row in rows],
        "left_out": left_out,
    }
    report(options, stats, lines, stdout_is_free=True)
    return 0 if rows[0].recommended else 1


def _describe(options: PlanOptions, row: Choice) -> dict[str, Any]:
    """Return the properties of a choice, None for unknown ones, and the call that creates it."""
    from fullbloom import registry
    from fullbloom.plan import has_universe

    structure = registry.get_row(row.structure)
    layout = None if row.layout == "-" else row.layout
    if "number" in structure["entry"]:
        members = f"{row.items}, " if has_universe(structure) else ""
        call = f"{structure['class']}({members}{options.universe})"
    elif "excluded" in structure["entry"]:
        call = f"{structure['class']}.build(included, excluded)"
    else:
        fpr = row.fpr if options.fpr is None else options.fpr
        more = "" if layout in {None, "auto"} else f", layout={layout!r}"
        if registry.is_built(structure, "key"):
            start = ".build(keys, "
        elif registry.is_built(structure, "key", "value"):
            start = ".build(keys, values, fpr="
        else:
            start = f"({row.items}, "
        call = f"{structure['class']}{start}{fpr!r}{more})"
    return asdict(row) | {
        "layout": layout,
        "num_hashes": row.num_hashes or None,
        "add_ns_per_key": row.add_ns_per_key or None,
        "nbytes": row.nbytes,
        "bits_per_key": row.bits_per_key,
        "class": structure["class"],
        "capabilities": structure["capabilities"],
        "python": call,
    }


def _format_layouts(rows: list[Choice]) -> list[str]:
    """Return the table of layouts."""
    head = ("structure", "layout", "items", "k", "bits/key", "bytes", "fpr", "ns/key")
    return [_ROW.format(" ", *head)] + [
        _ROW.format(
            "*" if row.recommended else " ",
            row.structure,
            row.layout,
            f"{row.items:,}",
            row.num_hashes,
            f"{row.bits_per_key:.2f}",
            units.size_text(row.nbytes),
            f"{row.fpr:.2e}",
            f"{row.ns_per_key:.0f}",
        )
        + ("" if row.fits else "  too large")
        for row in rows
    ]


def _format_structures(rows: list[Choice]) -> list[str]:
    """Return the table of structures."""
    from fullbloom.cli.filters.kinds import find_kind

    time = "ns build" if all(find_kind(row.structure).is_static for row in rows) else "ns add"
    head = ("structure", "items", "bits/key", "bytes", "fpr", time, "ns look", "false negatives")
    return [_NEEDS_ROW.format(" ", *head)] + [
        _NEEDS_ROW.format(
            "*" if row.recommended else " ",
            row.structure,
            f"{row.items:,}",
            f"{row.bits_per_key:.2f}",
            units.size_text(row.nbytes),
            f"{row.fpr:.2e}",
            f"{row.add_ns_per_key:.0f}",
            f"{row.ns_per_key:.0f}",
            row.false_negatives,
        )
        + ("" if row.fits else "  too large")
        for row in rows
    ]
