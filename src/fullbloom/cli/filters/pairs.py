"""Maps: made of lines ``key<TAB>number``, and asked for the numbers of lines."""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, Any

from fullbloom.cli.failures import Refusal
from fullbloom.cli.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fullbloom.cli.filters.kinds import Seen
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.output import Output
    from fullbloom.cli.options import BuildOptions
    from fullbloom.cli.progress import Progress
    from fullbloom.cli.stops import Stops

    #: Whole lines.
    Block = bytes | bytearray | memoryview[int]

_NUMBER = re.compile(rb"[0-9]{1,20}")
_MOST = (1 << 64) - 1


def check_pairs(options: BuildOptions) -> None:
    """Refuse options that pairs have no use for."""
    for option, given in (
        ("--select", options.select),
        ("--hex", options.hex),
        ("--sha1-of", options.sha1_of),
        ("--memory", options.memory),
    ):
        if given:
            raise Refusal(
                f"--kind {options.kind} is made of lines of a key, a tab and a number; drop {option}"
            )


def built_of_pairs(
    options: BuildOptions, fpr: float, blocks: Blocks, stops: Stops, progress: Progress
) -> tuple[Seen, int]:
    """Return the map of all lines, and how many were read; 16 bytes a line are held meanwhile."""
    import fullbloom
    from fullbloom import registry
    from fullbloom.cli.filters.static import watching

    hashes, values, hashed = array("Q"), array("Q"), options.hash_keywords
    for block in blocks:
        keys = []
        for line in _lines(block):
            key, tab, value = line.rpartition(b"\t")
            number = int(value) if _NUMBER.fullmatch(value) else _MOST + 1
            if not tab or number > _MOST:
                raise Refusal(
                    f"{blocks.name}: line {len(values) + 1:,} of the input is no key, tab and whole number "
                    f"up to 2**64 - 1, which --kind {options.kind} is made of{_shown(options, line)}"
                )
            keys.append(key)
            values.append(number)
        hashes.extend(fullbloom.hash_many(keys, **hashed))
        progress.show()
    made: Any = registry.get_class(options.structure.row)
    how = {"fpr": fpr, "threads": options.threads, "progress": watching(stops, progress)}
    try:
        return made.build_hashed(hashes, values, **how, **hashed), len(values)
    except fullbloom.ParameterError as error:
        told = str(error)
        if "together" in told:
            told = f"numbers up to {max(values)} at --fpr {fpr:g} take more than 64 bits; give a higher --fpr"
        raise Refusal(_in_lines(told)) from None


def _shown(options: BuildOptions, line: bytes) -> str:
    """Return a line for a message, unless keys are secret."""
    return "" if options.secret_file else f"; it is {printable(line.decode(errors='replace'))}"


def _in_lines(told: str) -> str:
    """Return what the map tells of two of its keys with their numbers as lines, from 1."""
    found = re.search(r"keys number (\d+) and (\d+) \(from 0\)", told)
    if found is None:
        return told
    first, second = (int(number) + 1 for number in found.groups())
    return told.replace(found[0], f"lines {first:,} and {second:,} of the input")


def write_values(seen: Seen, block: Block, output: Output | None) -> tuple[int, int]:
    """Write each line that is found, a tab and its value; return how many lines there are, and were found."""
    lines = list(_lines(block))
    found = seen.contains_many(lines)
    if output:
        pairs = zip(lines, found, seen.get_many(lines), strict=True)
        output.write(b"".join(b"%b\t%d\n" % (line, value) for line, there, value in pairs if there))
    return len(lines), sum(found)


def _lines(block: Block) -> Iterator[bytes]:
    for line in bytes(block).removesuffix(b"\n").split(b"\n"):
        yield line.removesuffix(b"\r")
