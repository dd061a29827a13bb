"""Static filters: built at once from all lines, from lines with their values, or from two sets of lines."""

from __future__ import annotations

import re
from array import array
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import fullbloom
from fullbloom import _core, registry
from fullbloom.cli.failures import Refusal
from fullbloom.cli.filters.kinds import list_two_set_kinds
from fullbloom.cli.io.sources import open_sources
from fullbloom.cli.printable import printable
from fullbloom.cli.secret import read_secret
from fullbloom.cli.units import size_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping

    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.io.blocks import Block
    from fullbloom.cli.io.output import Output
    from fullbloom.cli.io.reader import Reader
    from fullbloom.cli.options import BuildOptions

#: The part of --memory for Python, blocks under way and freed memory in pieces: bytes, and a share.
_OWN, _SHARE = 40 << 20, 16
_NUMBER = re.compile(rb"[0-9]{1,20}")
_MAX_VALUE = (1 << 64) - 1


def add_two_sets(parser: argparse.ArgumentParser) -> None:
    """Add the options of a --kind that separates two sets."""
    rows = list_two_set_kinds()
    names = [row["name"] for row in rows]
    levels = list(dict.fromkeys(name for row in rows for name in registry.get_class(row).kinds()))
    group = parser.add_argument_group(f"two sets, of --kind {' or '.join(names)}")
    group.add_argument(
        "--except",
        dest="rest",
        action="append",
        metavar="FILE",
        help="the other set, all other lines that will ever be looked up; may be repeated",
    )
    group.add_argument(
        "--levels",
        choices=levels,
        metavar="NAME",
        help=f"kind of the levels: {', '.join(levels)} (default bloom)",
    )
    group.add_argument(
        "--like",
        metavar="OLD",
        help="an earlier version, whose seed, secret and levels are reused, for a short fullbloom delta",
    )


def check_build_options(options: BuildOptions) -> None:
    """Refuse options that contradict --kind, or that it does not use."""
    kind, structure = options.kind, options.structure
    unused: dict[str, object]
    if structure.is_two_set:
        _check_two_sets(options)
    else:
        names = " or ".join(row["name"] for row in list_two_set_kinds())
        unused = {"--except": options.rest, "--levels": options.levels, "--like": options.like}
        _refuse_unused(unused, f"is of use with --kind {names} only")
    if structure.is_map:
        why = f"is of no use with --kind {kind}, which is built from lines of a key, a tab and a number"
        unused = {"--select": options.select, "--hex": options.hex, "--sha1-of": options.sha1_of}
        _refuse_unused({**unused, "--memory": options.memory}, why)
    if not structure.is_built_at_once:
        _refuse_unused({"--memory": options.memory}, "is of use with a static --kind only")
        return
    if options.capacity is not None and not structure.has_capacity:
        raise Refusal(f"--kind {kind} counts its lines itself; drop --capacity")
    if options.layout != "auto" and options.rest is None:
        raise Refusal(f"--kind {kind} has no layout {options.layout}; it has none to choose")
    if options.memory is not None and _share_memory(options.memory) <= 0:
        raise Refusal(f"--memory must be above {size_text(2 * _OWN)}, got {size_text(options.memory)}")


def _refuse_unused(options: Mapping[str, object], why: str) -> None:
    for option, value in options.items():
        if value is not None and value is not False:
            raise Refusal(f"{option} {why}; drop {option}")


def _check_two_sets(options: BuildOptions) -> None:
    if options.rest is None:
        raise Refusal(
            f"--kind {options.kind} is built from two sets: give --except FILE, the lines that are not in it"
        )
    if options.fpr is not None:
        raise Refusal(f"--kind {options.kind} has no false positives among its lines; drop --fpr")
    if [*(options.files or ["-"]), *options.rest].count("-") > 1:
        raise Refusal("standard input can be read once; give one of the two sets as a file")
    if options.like is not None:
        unused = {"--levels": options.levels, "--seed": options.seed}
        _refuse_unused(unused, f"is that of --like {options.like}")
        if options.layout != "auto":
            raise Refusal(f"--layout is that of --like {options.like}; drop it")


def build_static(options: BuildOptions, fpr: float, reader: Reader) -> tuple[Filter, int]:
    """Build a filter of --kind from all lines or records; return it, and how many were read."""
    if options.structure.is_two_set:
        return _build_from_two_sets(options, reader)
    if options.structure.is_map:
        return _build_map(options, fpr, reader)
    memory = None if options.memory is None else _share_memory(options.memory)
    hashes = _core.KeyBuffer(**options.hash_keywords, memory=memory)
    lines = reader.read(hashes, hashes.records, hashes.lines)
    cls: Any = registry.get_class(options.structure.row)
    more = {} if options.capacity is None else {"capacity": options.capacity}
    watch = _watch(reader)
    with _explain_memory(options):
        seen = cls.build_hashed(hashes, fpr, threads=options.threads, progress=watch, memory=memory, **more)
    return seen, lines


def _share_memory(memory: int) -> int:
    """Return the bytes of --memory for hashes and building."""
    return memory - _OWN - memory // _SHARE


@contextmanager
def _explain_memory(options: BuildOptions) -> Iterator[None]:
    """Refuse a --memory that is too small with the least that is enough; the core knows only its own part."""
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


def _watch(reader: Reader) -> Callable[[int, int], None]:
    """Return a callback that shows the progress of building, and ends it after a signal."""

    def watch(done: int, total: int) -> None:
        reader.stops.wait()  # a signal ends the work
        reader.stops.go()
        reader.progress.show(f"building, {100 * done // max(total, 1)} %")

    return watch


def _build_map(options: BuildOptions, fpr: float, reader: Reader) -> tuple[Filter, int]:
    """Build the map of all lines; 16 bytes per line are held meanwhile."""
    hashes, values, keywords = array("Q"), array("Q"), options.hash_keywords
    for block in reader.blocks:
        keys = []
        for line in _split_lines(block):
            key, tab, value = line.rpartition(b"\t")
            number = int(value) if _NUMBER.fullmatch(value) else _MAX_VALUE + 1
            if not tab or number > _MAX_VALUE:
                # The line is not shown if keys are secret.
                shown = "" if options.secret_file else f"; it is {printable(line.decode(errors='replace'))}"
                raise Refusal(
                    f"{reader.blocks.name}: line {len(values) + 1:,} of the input is not a key, a tab and a "
                    f"whole number up to 2**64 - 1, which --kind {options.kind} is built from{shown}"
                )
            keys.append(key)
            values.append(number)
        hashes.extend(fullbloom.hash_many(keys, **keywords))
        reader.progress.show()
    cls: Any = registry.get_class(options.structure.row)
    how = {"fpr": fpr, "threads": options.threads, "progress": _watch(reader), **keywords}
    try:
        return cls.build_hashed(hashes, values, **how), len(values)
    except fullbloom.ParameterError as error:
        text = str(error)
        if "together" in text:
            text = f"numbers up to {max(values)} at --fpr {fpr:g} take more than 64 bits; give a higher --fpr"
        raise Refusal(_name_lines(text)) from None


def _name_lines(text: str) -> str:
    """Return a map's message about two of its keys with their numbers as lines, from 1."""
    found = re.search(r"keys number (\d+) and (\d+) \(from 0\)", text)
    if found is None:
        return text
    first, second = (int(number) + 1 for number in found.groups())
    return text.replace(found[0], f"lines {first:,} and {second:,} of the input")


def write_values(seen: Filter, block: Block, output: Output | None) -> tuple[int, int]:
    """Write each line in the map, a tab and its value; return how many lines there are, and were found."""
    lines = list(_split_lines(block))
    found = seen.contains_many(lines)
    if output:
        pairs = zip(lines, found, seen.get_many(lines), strict=True)
        output.write(b"".join(b"%b\t%d\n" % (line, value) for line, is_in, value in pairs if is_in))
    return len(lines), sum(found)


def _split_lines(block: Block) -> list[bytes]:
    return [line.removesuffix(b"\r") for line in bytes(block).removesuffix(b"\n").split(b"\n")]


def _build_from_two_sets(options: BuildOptions, reader: Reader) -> tuple[Filter, int]:
    """Build the filter that separates the two sets; return it, and how many lines were read."""
    cls: Any = registry.get_class(options.structure.row)
    how: dict[str, Any] = {
        "kind": options.levels or cls.kinds()[0],
        "layout": options.layout,
        **options.hash_keywords,
    }
    keywords = dict(options.hash_keywords)
    if options.like is not None:
        old: Any = fullbloom.open(options.like, verify="full", secret=read_secret(options.secret_file))
        if type(old) is not cls:
            raise Refusal(
                f"{options.like}: holds a {type(old).__name__}, which --kind {options.kind} cannot be like"
            )
        how, keywords["seed"] = {"like": old}, old.seed
    memory = None if options.memory is None else _share_memory(options.memory)
    rest = options.rest or []
    open_sources(rest)  # a missing file is refused before any work
    lines, sets = 0, []
    for files in (options.files, rest):
        if files is rest:
            reader.rewind(files)
        hashes = _core.KeyBuffer(**keywords, memory=None if memory is None else max(memory // 2, 1))
        lines += reader.read(hashes, hashes.records, hashes.lines)
        sets.append(hashes)
    how |= {"threads": options.threads, "progress": _watch(reader), "memory": memory}
    try:
        with _explain_memory(options):
            return cls.build(*sets, **how), lines
    except fullbloom.ParameterError as error:
        number = re.search(r"the hash (\d+)", str(error))
        if "overlap" not in str(error):
            raise
        raise Refusal(_describe_overlap(options, number and int(number[1]), keywords, reader)) from None


def _describe_overlap(
    options: BuildOptions, number: int | None, keywords: dict[str, Any], reader: Reader
) -> str:
    """Return the message about a key in both sets, with its line if the inputs can be read again."""
    remedy = "take it out of one of the two sets"
    hidden = options.has_records or options.has_hashes or options.secret_file is not None
    rest = options.rest or []
    files = [*(options.files or ["-"]), *rest]
    if hidden or number is None or not all(source.repeatable for source in open_sources(files)):
        return f"a key is in both sets; {remedy}"
    (name, line), (other, _) = (_find_line(side, number, keywords, reader) for side in (options.files, rest))
    return f"{name} and {other} have a line in common: {printable(line)}; {remedy}"


def _find_line(files: list[str], wanted: int, keywords: dict[str, Any], reader: Reader) -> tuple[str, str]:
    """Return the file and the line of a hash."""
    found = (files[0], "")
    reader.rewind(files)
    for block in reader.blocks:  # to the end, which closes the files
        lines = _split_lines(block)
        keys = fullbloom.hash_many(lines, **keywords)
        if wanted in keys:
            found = (reader.blocks.name, lines[keys.index(wanted)].decode(errors="replace"))
    return found
