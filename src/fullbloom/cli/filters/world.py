"""What tells two sets of lines apart: made of both, and of an earlier version where that is to be kept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fullbloom.cli.failures import Refusal

if TYPE_CHECKING:
    import argparse

    from fullbloom.cli.filters.kinds import Seen
    from fullbloom.cli.options import BuildOptions
    from fullbloom.cli.progress import Progress
    from fullbloom.cli.stops import Stops


def add_world(parser: argparse.ArgumentParser) -> None:
    """Add the options of a --kind that is made of two sets."""
    from fullbloom import registry
    from fullbloom.cli.filters.kinds import worlds

    names = [row["name"] for row in worlds()]
    levels = list(dict.fromkeys(name for row in worlds() for name in registry.class_of(row).kinds()))
    group = parser.add_argument_group(f"two sets, of --kind {' or '.join(names)}")
    group.add_argument(
        "--except",
        dest="rest",
        action="append",
        metavar="FILE",
        help="the other set, all lines that will ever be asked for and are not in it; may be given again",
    )
    group.add_argument(
        "--levels",
        choices=levels,
        metavar="NAME",
        help=f"what levels are: {', '.join(levels)} (default bloom)",
    )
    group.add_argument(
        "--like",
        metavar="OLD",
        help="an earlier version, whose seed, secret and levels are kept, for a short fullbloom delta",
    )


def refuse_world(options: BuildOptions) -> None:
    """Refuse options that another --kind has no use for."""
    from fullbloom.cli.filters.kinds import worlds

    names = " or ".join(row["name"] for row in worlds())
    for option, given in (("--except", options.rest), ("--levels", options.levels), ("--like", options.like)):
        if given is not None:
            raise Refusal(f"{option} is of use with --kind {names} only; drop it")


def check_world(options: BuildOptions) -> None:
    """Refuse a --kind of two sets without the second, and options that it has no use for."""
    if options.rest is None:
        raise Refusal(
            f"--kind {options.kind} is made of two sets: give --except FILE, the lines that are not in it"
        )
    if options.fpr is not None:
        raise Refusal(f"--kind {options.kind} makes no mistake among its lines; drop --fpr")
    if [*(options.files or ["-"]), *options.rest].count("-") > 1:
        raise Refusal("standard input can be read once; give one of the two sets as a file")
    if options.like is not None:
        for option, given in (("--levels", options.levels), ("--seed", options.seed)):
            if given is not None:
                raise Refusal(f"{option} is that of --like {options.like}; drop it")
        if options.layout != "auto":
            raise Refusal(f"--layout is that of --like {options.like}; drop it")


def built_of_two(options: BuildOptions, stops: Stops, progress: Progress) -> tuple[Seen, int]:
    """Return what tells the two sets apart, and how many lines were read."""
    import fullbloom
    from fullbloom import _core, registry
    from fullbloom.cli.filters.secret import secret_from
    from fullbloom.cli.filters.static import gather, granted, telling_memory, watching
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.sources import sources

    made: Any = registry.class_of(options.structure.row)
    how: dict[str, Any] = {
        "kind": options.levels or made.kinds()[0],
        "layout": options.layout,
        **options.hash_keywords,
    }
    hashes = dict(options.hash_keywords)
    if options.like is not None:
        old: Any = fullbloom.open(options.like, verify="full", secret=secret_from(options.secret_file))
        if type(old) is not made:
            raise Refusal(
                f"{options.like}: holds a {type(old).__name__}, which --kind {options.kind} cannot be like"
            )
        how, hashes["seed"] = {"like": old}, old.seed
    memory = None if options.memory is None else granted(options.memory)
    lines, sets = 0, []
    for inputs in [sources(files) for files in (options.files, options.rest or [])]:
        blocks = Blocks(inputs, stops, longest=options.longest_line)
        progress.follow(blocks)
        sets.append(_core.KeyBuffer(**hashes, memory=None if memory is None else max(memory // 2, 1)))
        lines += gather(options, sets[-1], blocks, inputs, stops, progress)
    how |= {"threads": options.threads, "progress": watching(stops, progress), "memory": memory}
    try:
        with telling_memory(options):
            return made.build(*sets, **how), lines
    except fullbloom.ParameterError as error:
        if "overlap" not in str(error):
            raise
        raise Refusal(_common(options, str(error), hashes, stops)) from None


def _common(options: BuildOptions, told: str, hashes: dict[str, Any], stops: Stops) -> str:
    """Return what to say of a key that both sets have: the line, where the inputs can be read once more."""
    from fullbloom.cli.io.sources import sources
    from fullbloom.cli.printable import printable

    remedy = "take it out of one of the two sets"
    hidden = options.has_records or options.has_hashes or options.secret_file is not None
    rest = options.rest or []
    files = [*(options.files or ["-"]), *rest]
    number = re.search(r"the hash (\d+)", told)
    if hidden or number is None or not all(source.repeatable for source in sources(files)):
        return f"a key is in both sets; {remedy}"
    (name, line), (other, _) = (
        _where(options, side, int(number[1]), hashes, stops) for side in (options.files, rest)
    )
    return f"{name} and {other} have a line in common: {printable(line)}; {remedy}"


def _where(
    options: BuildOptions, files: list[str], wanted: int, hashes: dict[str, Any], stops: Stops
) -> tuple[str, str]:
    """Return the file and the line of a hash."""
    import fullbloom
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.sources import sources

    found = (files[0], "")
    blocks = Blocks(sources(files), stops, longest=options.longest_line)
    for block in blocks:  # to the end, which closes the files
        lines = [line.removesuffix(b"\r") for line in bytes(block).removesuffix(b"\n").split(b"\n")]
        keys = fullbloom.hash_many(lines, **hashes)
        if wanted in keys:
            found = (blocks.name, lines[keys.index(wanted)].decode(errors="replace"))
    return found
