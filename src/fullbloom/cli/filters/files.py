"""Files of filters: opened as the class they hold, checked against the options, saved."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import fullbloom
from fullbloom.cli.failures import Refusal
from fullbloom.cli.filters.kinds import grows, kinds, made_at_once, row_of
from fullbloom.cli.filters.secret import secret_from
from fullbloom.cli.io.output import Output, is_special

if TYPE_CHECKING:
    from typing import Literal

    from fullbloom.cli.filters.kinds import Seen
    from fullbloom.cli.options import FilterOptions


def load(
    path: str, secret_file: str | None, *, verify: Literal["header", "full"] = "header", adds: bool = True
) -> Seen:
    """Open a filter's file as it is, mapped; whichever class it holds.

    One to which no line can be added is refused, unless only asked for.
    """
    found: Seen = fullbloom.open(path, verify=verify, secret=secret_from(secret_file))
    row, made = row_of(found), made_at_once()
    if row in kinds() or (row in made and not adds):
        return found
    why = "takes no lines"
    if row in made:
        why = f"takes no lines after it is built; build a new one with fullbloom build --kind {row['name']}"
    raise Refusal(f"{path}: holds a {type(found).__name__}, which {why}")


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


def check_options(seen: Seen, path: str, options: FilterOptions) -> None:
    """Refuse options that contradict a filter that exists already."""
    kind = row_of(seen)["name"]
    asked = {
        "kind": (options.kind, kind),
        "fpr": (options.fpr, seen.target_fpr),
        "seed": (options.seed, seen.seed),
        "layout": (None if options.layout == "auto" else options.layout, getattr(seen, "layout", None)),
        "expected": (options.expected, None if grows(kind) else _made_for(seen)),
    }
    window = options.window
    if window is not None:
        have = getattr(seen, "window", None)
        lines = seen.capacity if hasattr(seen, "window") and have is None else None
        if (window.lines, window.seconds) != (lines, have):
            shown = "none" if lines is have is None else f"{lines:,} lines" if have is None else f"{have:g} s"
            asked["window"] = (str(window), shown)
    if options.memory is not None and options.expected is None:
        del asked["fpr"]  # the shape came from the memory; its rate at capacity is near, not equal
    wrong = [
        f"--{name} {want} (it has {'none' if have is None else have})"
        for name, (want, have) in asked.items()
        if want not in {None, have}
    ]
    if wrong:
        raise Refusal(
            f"{path}: the state was made otherwise: {', '.join(wrong)}; drop the option, or name a new state"
        )
