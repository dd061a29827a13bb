"""Filters that are made of all lines at once: hashes are gathered, then the work is done and watched."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fullbloom import _core, registry
from fullbloom.cli.failures import Refusal
from fullbloom.cli.io.hashes import keys_of
from fullbloom.cli.report import note_faults
from fullbloom.cli.units import size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fullbloom.cli.filters.kinds import Seen
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.sources import Source
    from fullbloom.cli.options import BuildOptions
    from fullbloom.cli.progress import Progress
    from fullbloom.cli.stops import Stops

#: What Python, the blocks on their way and freed memory in pieces may take of --memory, and a share of it.
_OWN, _SHARE = 40 << 20, 16


def check_options(options: BuildOptions) -> None:
    """Refuse options that a static --kind, or any other, has no use for."""
    if not options.structure.is_built_at_once:
        if options.memory is not None:
            raise Refusal("--memory is of use with a static --kind only; drop it")
        return
    if options.capacity is not None and not options.structure.has_capacity:
        raise Refusal(f"--kind {options.kind} counts its lines itself; drop --capacity")
    if options.layout != "auto" and options.rest is None:
        raise Refusal(f"--kind {options.kind} has no layout {options.layout}; it has none to choose")
    if options.memory is not None and granted(options.memory) <= 0:
        raise Refusal(f"--memory must be above {size_text(2 * _OWN)}, got {size_text(options.memory)}")


def granted(memory: int) -> int:
    """Return the bytes of --memory that are for gathering and building."""
    return memory - _OWN - memory // _SHARE


def built(
    options: BuildOptions,
    fpr: float,
    blocks: Blocks,
    inputs: Sequence[Source],
    stops: Stops,
    progress: Progress,
) -> tuple[Seen, int]:
    """Return the filter of all lines, or of the keys of all records, and how many were read."""
    memory = None if options.memory is None else granted(options.memory)
    gathering = _core.KeyBuffer(**options.hash_keywords, memory=memory)
    lines = gather(options, gathering, blocks, inputs, stops, progress)
    watch = watching(stops, progress)
    made: Any = registry.class_of(options.structure.row)
    more = {} if options.capacity is None else {"capacity": options.capacity}
    with telling_memory(options):
        seen = made.build_hashed(
            gathering, fpr, threads=options.threads, progress=watch, memory=memory, **more
        )
    return seen, lines


@contextmanager
def telling_memory(options: BuildOptions) -> Iterator[None]:
    """Say of work that --memory is too small for what would do; the core knows only of its own part."""
    try:
        yield
    except MemoryError as error:
        needed = re.search(r"need (\d+) bytes of memory", str(error))
        if needed is None or options.memory is None:
            raise
        whole = (int(needed[1]) + _OWN) * _SHARE // (_SHARE - 1) + (1 << 20)
        raise Refusal(
            f"--memory {size_text(options.memory)} is too little for so many lines on "
            f"{options.threads} threads; give {whole >> 20}M or more, or fewer threads"
        ) from None


def watching(stops: Stops, progress: Progress) -> Callable[[int, int], None]:
    """Return what shows how far the work is, and ends it when a signal came."""

    def watch(done: int, total: int) -> None:
        stops.wait()  # a signal that came ends the work
        stops.go()
        progress.show(f"building, {100 * done // max(total, 1)} %")

    return watch


def gather(
    options: BuildOptions,
    gathering: _core.KeyBuffer,
    blocks: Blocks,
    inputs: Sequence[Source],
    stops: Stops,
    progress: Progress,
) -> int:
    """Take the hashes of all lines or records; return how many there are."""
    lines = 0
    if options.has_records:
        from fullbloom.cli.io.records import Records

        read = Records(options, inputs, stops, gathering, longest=options.longest_line, keys_only=True)
        for batch in read:
            gathering.records(batch.records)
            lines += len(batch.records) - batch.records.faults
            progress.show()
        note_faults(options, read)
        return lines
    for block in keys_of(options, blocks, adds=True):
        lines += gathering.lines(block)
        progress.show()
    return lines
