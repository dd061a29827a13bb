"""Filters from options: sized by keys, by memory, or growing; and the state of yesterday."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bloomery
from bloomery import BloomFilter, ScalableBloomFilter, _core
from bloomery.cli.failures import Refusal
from bloomery.cli.output import Output, is_special
from bloomery.cli.units import rate_text, size_text

if TYPE_CHECKING:
    import argparse

    #: Any filter whose ``add`` takes the key alone.
    Seen = Any

_SECRET_BYTES = 16
#: A stream is read once, so its time counts as much as its memory: one cache miss a line instead
#: of one a probe (720 against 155 MB/s at 1e-6 and 10 M lines of 65 bytes) is worth half as much
#: memory again. Past that, the least space wins.
_SPEED_IS_WORTH = 1.5
_BLOCKED_HASHES = (4, 8, 12)
_MOST_HASHES = 64


#: Capabilities of classes whose ``add`` takes more than a key: of no use to lines.
_PAIRS = {"label", "value"}
#: The note on stderr about such a --kind.
FORGETS = "--kind {} forgets lines by design: one that was seen long ago passes as new"


def kinds() -> list[dict[str, Any]]:
    """Return the registry rows that --kind names: those whose ``add`` takes the key alone."""
    rows = bloomery.variants()
    return [row for row in rows if "add" in row["capabilities"] and not _PAIRS & set(row["capabilities"])]


def row_of(seen: Seen) -> dict[str, Any]:
    """Return the registry row of a filter."""
    return next(row for row in bloomery.variants() if row["class"] == type(seen).__name__)


def row_named(kind: str) -> dict[str, Any]:
    """Return the registry row of a --kind."""
    return next(row for row in bloomery.variants() if row["name"] == kind)


def grows(kind: str | None) -> bool:
    """Tell whether a --kind takes any number of lines."""
    cls = None if kind is None else getattr(bloomery, row_named(kind)["class"])
    return hasattr(cls, "stages") and not hasattr(cls, "max_stages")


def forgets(seen: Seen) -> bool:
    """Tell whether a filter denies, by design, lines of long ago."""
    return bool(row_of(seen)["false_negatives"] == "by design")


def of_kind(args: argparse.Namespace, capacity: int, fpr: float, **options: Any) -> Seen:
    """Return an empty filter of --kind; one that has no layouts, or not this one, is refused."""
    row = row_named(args.kind)
    options |= common(args)
    if args.layout != "auto":
        if args.layout not in row["layouts"]:
            has = ", ".join(row["layouts"]) or "none to choose"
            raise Refusal(f"--kind {args.kind} has no layout {args.layout}; it has {has}")
        options["layout"] = args.layout
    return getattr(bloomery, row["class"])(capacity, fpr, **options)


def of_kind_in_memory(args: argparse.Namespace, nbytes: int, fpr: float) -> Seen:
    """Return the filter of --kind that holds --expected lines, or as many as it can, in ``nbytes``."""
    from bloomery.plan import most_items

    most = most_items(row_named(args.kind), fpr, nbytes)
    if most < (args.expected or 1):
        raise Refusal(
            f"--kind {args.kind} at fpr {rate_text(fpr)} holds {most:,} lines in --memory "
            f"{size_text(args.memory)}; raise --memory or --fpr"
        )
    # What opens further stages must not, in a memory that is given.
    one = {"max_stages": 1} if hasattr(getattr(bloomery, row_named(args.kind)["class"]), "max_stages") else {}
    return of_kind(args, args.expected or most, fpr, **one)


def secret_from(path: str | None) -> bytes | None:
    """Read a secret: 16 raw bytes or 32 hexadecimal digits. It is never printed."""
    if path is None:
        return None
    with Path(path).open("rb") as file:
        raw = file.read(2 * _SECRET_BYTES + 64)
    if len(raw) == _SECRET_BYTES:
        return raw
    try:
        secret = bytes.fromhex(raw.strip().decode("ascii"))
    except ValueError:
        secret = b""
    if len(secret) != _SECRET_BYTES:
        raise Refusal(f"{path}: a secret is 16 bytes or 32 hexadecimal digits; this file is neither")
    return secret


def common(args: argparse.Namespace) -> dict[str, Any]:
    """Return the keywords that every constructor takes."""
    return {"seed": args.seed or 0, "secret": secret_from(args.secret_file)}


def sized(args: argparse.Namespace, capacity: int, fpr: float, *, quick: bool) -> Seen:
    """Return a filter for ``capacity`` keys; ``quick`` lets "auto" spend memory on speed."""
    if args.kind not in {None, "bloom"}:
        return of_kind(args, capacity, fpr)
    layout = args.layout
    if quick and layout == "auto":
        layout = quick_layout(capacity, fpr)
    return BloomFilter(capacity, fpr, layout=layout, **common(args))


def _require_rate(fpr: float, keys: int, times: int) -> None:
    """Refuse a rate below what 64-bit hashes of ``keys`` give, ``times`` over."""
    from bloomery.plan import least_fpr

    if fpr < (least := times * least_fpr(keys)):
        raise Refusal(
            f"fpr must be at least {least:.1e} for {keys:,} lines{' and more' if times > 1 else ''} "
            f"(keys are 64-bit hashes), got {rate_text(fpr)}; raise --fpr"
        )


def growing(args: argparse.Namespace, first: int, fpr: float, *, quick: bool) -> ScalableBloomFilter:
    """Return a filter that grows from ``first`` keys on; its first stage gets half of the rate."""
    _require_rate(fpr, first, 2)
    layout = args.layout
    if quick and layout == "auto":
        layout = quick_layout(first, fpr / 2)
    return ScalableBloomFilter(first, fpr, layout=layout, growth=4.0, **common(args))


def quick_layout(capacity: int, fpr: float) -> str:
    """Return "blocked" while it costs at most half more than "classic", else "classic"."""
    blocked, _ = _core.size_for("blocked", capacity, fpr)
    classic, _ = _core.size_for("classic", capacity, fpr)
    return "blocked" if blocked <= _SPEED_IS_WORTH * classic else "classic"


def _fitting(layout: str, num_bits: int, num_hashes: int) -> int:
    """Round ``num_bits`` down to what the layout takes."""
    granule = {"blocked": 512, "split": 256, "partitioned": num_hashes}.get(layout, 1)
    return num_bits // granule * granule


def _hashes(layout: str, fpr: float) -> tuple[int, ...]:
    if layout == "blocked":
        return _BLOCKED_HASHES
    if layout == "split":
        return (8,)
    best = min(max(int(-math.log2(fpr)), 1), _MOST_HASHES - 1)
    return (best, best + 1)


def _most_keys(layout: str, num_bits: int, fpr: float) -> tuple[int, int, int]:
    """Return (keys, bits, k) of the shape that holds most keys at ``fpr``."""
    shapes = [(_fitting(layout, num_bits, k), k) for k in _hashes(layout, fpr)]
    return max((_core.capacity_at(layout, bits, k, fpr), bits, k) for bits, k in shapes)


def in_memory(args: argparse.Namespace, nbytes: int, fpr: float) -> BloomFilter:
    """Return the filter of ``nbytes`` that holds most keys at ``fpr``."""
    _require_rate(fpr, 1, 1)
    layouts = ("blocked", "classic") if args.layout == "auto" else (args.layout,)
    shapes = {layout: _most_keys(layout, 8 * nbytes, fpr) for layout in layouts}
    layout = layouts[0]
    if len(layouts) > 1 and shapes["blocked"][0] * _SPEED_IS_WORTH < shapes["classic"][0]:
        layout = "classic"
    keys, bits, hashes = shapes[layout]
    return _shaped(args, layout, bits, hashes, max(keys, 1))


def in_memory_for(args: argparse.Namespace, nbytes: int, expected: int, fpr: float) -> BloomFilter:
    """Return a filter for ``expected`` keys with the best rate that ``nbytes`` buy.

    Memory is of use until less than a thousandth of a line is expected to be lost. Refused when
    the rate asked for is out of reach.
    """
    useful = max(min(fpr, 1e-3 / expected), 1e-12)
    layouts = ("blocked", "classic") if args.layout == "auto" else (args.layout,)
    best: tuple[float, str, int, int] | None = None
    for layout in layouts:
        bits = min(8 * nbytes, _core.size_for(layout, expected, useful)[0])
        rates = _rates(layout, bits, expected)
        # Among shapes that keep the rate, blocked ones cost the same: take the best. A probe of the
        # others is a cache miss: take the fewest (9 for 27 is 3x the speed at 38 bits a line).
        enough = [shape for shape in rates if shape[0] <= fpr]
        shape = min(rates) if layout == "blocked" or not enough else enough[0]
        best = min(best or shape, shape)
        if shape[0] <= fpr:
            return _shaped(args, shape[1], shape[2], shape[3], expected)
    if best is None or args.fpr is not None:
        reached = best[0] if best else 1.0
        raise Refusal(
            f"fpr {rate_text(fpr)} for {expected} lines does not fit --memory {size_text(args.memory)}: "
            f"it reaches {rate_text(reached)}; raise --memory or --fpr"
        )
    return _shaped(args, best[1], best[2], best[3], expected)


def _rates(layout: str, num_bits: int, expected: int) -> list[tuple[float, str, int, int]]:
    ideal = max(1, min(round(num_bits / expected * math.log(2)), _MOST_HASHES))
    hashes = {"blocked": _BLOCKED_HASHES, "split": (8,)}.get(layout, tuple(range(1, ideal + 1)))
    shapes = [(_fitting(layout, num_bits, k), k) for k in hashes]
    return [(_core.fpr_at(layout, bits, k, expected), layout, bits, k) for bits, k in shapes]


def _shaped(args: argparse.Namespace, layout: str, bits: int, hashes: int, capacity: int) -> BloomFilter:
    return BloomFilter.with_shape(bits, hashes, capacity=capacity, layout=layout, **common(args))


def load(path: str, args: argparse.Namespace, *, verify: str = "header") -> Seen:
    """Open a filter's file as it is, mapped; whichever class it holds."""
    found: Seen = bloomery.open(path, verify=verify, secret=secret_from(args.secret_file))
    if row_of(found) not in kinds():
        raise Refusal(f"{path}: holds a {type(found).__name__}, which takes no lines")
    return found


def save(seen: Seen, path: str) -> None:
    """Save as `Output` writes: a link stays a link, a device or pipe is written and not replaced."""
    if is_special(path):
        Output(path).write(seen.to_bytes())
    else:
        seen.save(os.path.realpath(path))


def _made_for(seen: Seen) -> int:
    """Return the capacity that a filter was made with: that of the first stage where there are stages."""
    first, *_ = getattr(seen, "stage_capacities", [seen.capacity])
    return int(first)


def check_options(seen: Seen, path: str, args: argparse.Namespace) -> None:
    """Refuse options that contradict a filter that exists already."""
    kind = row_of(seen)["name"]
    asked = {
        "kind": (args.kind, kind),
        "fpr": (args.fpr, seen.target_fpr),
        "seed": (args.seed, seen.seed),
        "layout": (None if args.layout == "auto" else args.layout, getattr(seen, "layout", None)),
        "expected": (getattr(args, "expected", None), None if grows(kind) else _made_for(seen)),
    }
    if getattr(args, "memory", None) is not None and args.expected is None:
        del asked["fpr"]  # the shape came from the memory; its rate at capacity is near, not equal
    wrong = [
        f"--{name} {want} (it has {have})" for name, (want, have) in asked.items() if want not in {None, have}
    ]
    if wrong:
        raise Refusal(
            f"{path}: the state was made otherwise: {', '.join(wrong)}; drop the option, or name a new state"
        )
