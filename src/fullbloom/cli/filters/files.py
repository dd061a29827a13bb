"""Files of filters: opened as the class they hold, checked against the options, saved."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import fullbloom
from fullbloom.cli.failures import Refusal
from fullbloom.cli.filters.kinds import get_row, list_built_at_once, list_kinds
from fullbloom.cli.io.hashes import DIGEST
from fullbloom.cli.secret import read_secret
from fullbloom.errors import KeyDomainWarning

if TYPE_CHECKING:
    from typing import Literal

    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.options import FilterOptions


def load(
    path: str, secret_file: str | None, *, verify: Literal["header", "full"] = "header", adds: bool = True
) -> Filter:
    """Open and map a filter's file of any class.

    With ``adds``, a filter to which no line can be added is refused, as is one of another program.
    """
    found: Filter = fullbloom.open(path, verify=verify, secret=read_secret(secret_file))
    require_lines(found, path, adds=adds)
    return found


def require_lines(found: Filter, path: str, *, adds: bool) -> None:
    """Refuse a filter of fullbloom's that is not asked by lines, or with ``adds``, takes none."""
    row, static = get_row(found), list_built_at_once()
    if row in list_kinds() or (row in static and not adds):
        return
    why = "takes no lines"
    if row in static:
        why = f"takes no lines after it is built; build a new one with fullbloom build --kind {row['name']}"
    raise Refusal(f"{path}: holds a {type(found).__name__}, which {why}")


def check_options(seen: Filter, path: str, options: FilterOptions) -> None:
    """Refuse options that contradict a filter that exists already."""
    row = get_row(seen)
    # The capacity that it was created with is that of the first stage, if it has stages.
    capacity, *_ = getattr(seen, "stage_capacities", [seen.capacity])
    contradictions = {
        "kind": (options.kind, row["name"]),
        "fpr": (options.fpr, seen.target_fpr),
        "seed": (options.seed, seen.seed),
        "layout": (None if options.layout == "auto" else options.layout, getattr(seen, "layout", None)),
        "expected": (options.expected, None if row["role"] == "growing" else int(capacity)),
    }
    window = options.window
    if window is not None:
        have = getattr(seen, "window", None)
        lines = seen.capacity if hasattr(seen, "window") and have is None else None
        if (window.lines, window.seconds) != (lines, have):
            shown = "none" if lines is have is None else f"{lines:,} lines" if have is None else f"{have:g} s"
            contradictions["window"] = (str(window), shown)
    if options.memory is not None and options.expected is None:
        del contradictions["fpr"]  # the shape came from the memory; its rate at capacity is near, not equal
    wrong = [
        f"--{name} {want} (it has {'none' if have is None else have})"
        for name, (want, have) in contradictions.items()
        if want not in {None, have}
    ]
    if wrong:
        raise Refusal(
            f"{path}: the state has other options: {', '.join(wrong)}; drop the option, or name a new state"
        )


def warn_of_types(held: str, seen: Filter) -> None:
    """Warn if ``seen``, which held keys of the types ``held``, got keys of other types: all were new."""
    types = held.split(", ")
    if {"none", "unknown", "hashed"}.intersection(types):
        return
    # Digests are texts, and a filter of an earlier release does not record them.
    other = [name for name in seen.key_domains.split(", ") if name not in {*types, DIGEST}]
    if other:
        text = f"keys of type {', '.join(other)} were added to a filter that held keys of type {held} only"
        warnings.warn(f"{text}, so all of them were new", KeyDomainWarning, stacklevel=2)
