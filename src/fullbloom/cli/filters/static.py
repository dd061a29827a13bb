"""Filters that are made of all lines at once: hashes are gathered, then the work is done and watched."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fullbloom import _core, registry
from fullbloom.cli.failures import Refusal
from fullbloom.cli.filters.secret import hashing
from fullbloom.cli.io.hashes import keys_of
from fullbloom.cli.reading import has_records, tell_faults
from fullbloom.cli.units import size_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from fullbloom.cli.filters.kinds import Seen
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.sources import Source
    from fullbloom.cli.progress import Progress
    from fullbloom.cli.stops import Stops

#: What Python, the blocks on their way and freed memory in pieces may take of --memory, and a share of it.
_OWN, _SHARE = 40 << 20, 16


def check_options(args: argparse.Namespace, *, static: bool) -> None:
    """Refuse options that a static --kind, or any other, has no use for."""
    if not static:
        if args.memory is not None:
            raise Refusal("--memory is of use with a static --kind only; drop it")
        return
    if args.capacity is not None and not _has_capacity(args.kind):
        raise Refusal(f"--kind {args.kind} counts its lines itself; drop --capacity")
    if args.layout != "auto" and args.rest is None:
        raise Refusal(f"--kind {args.kind} has no layout {args.layout}; it has none to choose")
    if args.memory is not None and granted(args.memory) <= 0:
        raise Refusal(f"--memory must be above {size_text(2 * _OWN)}, got {size_text(args.memory)}")


def _has_capacity(kind: str) -> bool:
    """Tell whether a structure may be made for more keys than it is made of, so that it can be merged."""
    return any(name == "capacity" for name, _, _ in registry.row_named(kind)["parameters"])


def granted(memory: int) -> int:
    """Return the bytes of --memory that are for gathering and building."""
    return memory - _OWN - memory // _SHARE


def built(
    args: argparse.Namespace,
    fpr: float,
    blocks: Blocks,
    inputs: Sequence[Source],
    stops: Stops,
    progress: Progress,
) -> tuple[Seen, int]:
    """Return the filter of all lines, or of the keys of all records, and how many were read."""
    memory = None if args.memory is None else granted(args.memory)
    gathering = _core.Gathering(**hashing(args), memory=memory)
    lines = gather(args, gathering, blocks, inputs, stops, progress)
    watch = watching(stops, progress)
    made: Any = registry.class_of(registry.row_named(args.kind))
    more = {} if args.capacity is None else {"capacity": args.capacity}
    with telling_memory(args):
        seen = made.build_hashed(gathering, fpr, threads=args.threads, progress=watch, memory=memory, **more)
    return seen, lines


@contextmanager
def telling_memory(args: argparse.Namespace) -> Iterator[None]:
    """Say of work that --memory is too small for what would do; the core knows only of its own part."""
    try:
        yield
    except MemoryError as error:
        needed = re.search(r"need (\d+) bytes of memory", str(error))
        if needed is None or args.memory is None:
            raise
        whole = (int(needed[1]) + _OWN) * _SHARE // (_SHARE - 1) + (1 << 20)
        raise Refusal(
            f"--memory {size_text(args.memory)} is too little for so many lines on {args.threads} threads; "
            f"give {whole >> 20}M or more, or fewer threads"
        ) from None


def watching(stops: Stops, progress: Progress) -> Callable[[int, int], None]:
    """Return what shows how far the work is, and ends it when a signal came."""

    def watch(done: int, total: int) -> None:
        stops.wait()  # a signal that came ends the work
        stops.go()
        progress.show(f"building, {100 * done // max(total, 1)} %")

    return watch


def gather(
    args: argparse.Namespace,
    gathering: _core.Gathering,
    blocks: Blocks,
    inputs: Sequence[Source],
    stops: Stops,
    progress: Progress,
) -> int:
    """Take the hashes of all lines or records; return how many there are."""
    lines = 0
    if has_records(args):
        from fullbloom.cli.io.records import Records
        from fullbloom.cli.limits import longest_line

        read = Records(args, inputs, stops, gathering, longest=longest_line(args), keys_only=True)
        for batch in read:
            gathering.records(batch.records)
            lines += len(batch.records) - batch.records.faults
            progress.show()
        tell_faults(args, read)
        return lines
    for block in keys_of(args, blocks, adds=True):
        lines += gathering.lines(block)
        progress.show()
    return lines
