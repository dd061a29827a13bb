"""``fullbloom sync``: compare or merge two sets of lines, here or on two machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fullbloom.cli import units
from fullbloom.cli.failures import Refusal
from fullbloom.cli.options import LineOptions

if TYPE_CHECKING:
    import argparse

HELP = "compare or merge two sets of lines, also over a pipe"
DETAIL = """Prints lines only in FILE after "< " and lines only in the other after "> ". With --write the
lines that a file lacks are appended to it; over a pipe both sides need it. Only differences are sent,
some 20 bytes and a line each, and a checksum of the merged sets proves that none is missed. Exit
code 0: the sets are equal, or now merged; 1: they differ; 2: an error."""
EXAMPLE = "fullbloom sync words.txt --with 'ssh host fullbloom sync --serve words.txt'"
QUIET = "print nothing: use the exit code"

#: Seconds that the other side may be silent.
_TIMEOUT = 60.0


@dataclass(frozen=True, kw_only=True)
class SyncOptions(LineOptions):
    """Options of ``fullbloom sync``."""

    #: The command that serves the other set, or the file to serve.
    peer: str | None
    serve: str | None
    at_most: int | None
    write: bool
    timeout: float
    limit: int


OPTIONS = SyncOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="one file of lines, and another to compare it with"
    )
    parser.add_argument(
        "--max-line", type=units.line_size, metavar="SIZE", help="refuse longer lines (default 64M)"
    )
    over = parser.add_mutually_exclusive_group()
    over.add_argument("--with", dest="peer", metavar="COMMAND", help="compare with what this command serves")
    over.add_argument("--serve", metavar="FILE", help="be the other side, on standard input and output")
    parser.add_argument(
        "--at-most",
        type=units.count,
        metavar="N",
        help="expect so many differences at most, up to 1024: 8 bytes each; symbols where there are more",
    )
    parser.add_argument("--write", action="store_true", help="append the missing lines to the files")
    parser.add_argument(
        "--timeout",
        type=units.seconds,
        default=_TIMEOUT,
        metavar="SECONDS",
        help=f"give up on a peer after this silence (default {_TIMEOUT:g})",
    )
    parser.add_argument(
        "--limit",
        type=units.size,
        default=1 << 26,
        metavar="SIZE",
        help="most bytes to receive from a peer, and of lines to send it (default 64M)",
    )


def run(options: SyncOptions) -> int:
    """Compare, and print or write."""
    if options.serve is not None:
        return _serve(options, options.serve)
    if options.at_most is not None and options.peer is None:
        raise Refusal("--at-most is of use with --with COMMAND only; drop it")
    if len(options.files) != (2 if options.peer is None else 1):
        raise Refusal("sync takes two files, or one and --with COMMAND, or --serve FILE alone")
    return _compare(options) if options.peer is None else _ask(options)


def _compare(options: SyncOptions) -> int:
    """Compare two files on this machine."""
    from fullbloom.cli.io.output import require_different

    if options.write:
        require_different(options.files[1:], {"FILE": options.files[0]})
    sides = [_read(options, path) for path in options.files]
    mine, theirs = (dict.fromkeys(side) for side in sides)
    here, there = [line for line in mine if line not in theirs], [line for line in theirs if line not in mine]
    if options.write:
        for path, lines in zip(options.files, (there, here), strict=True):
            _add(path, lines)
    return _print_differences(options, here, there, {})


def _ask(options: SyncOptions) -> int:
    import shlex
    import subprocess

    from fullbloom.cli.io.channel import Channel
    from fullbloom.recipes.sync import ask

    lines = _read(options, options.files[0])
    try:
        words = shlex.split(options.peer)
    except ValueError as error:
        raise Refusal(f"--with {options.peer}: {error}") from None
    if not words:
        raise Refusal("--with names a command, got an empty text")
    peer = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)  # noqa: S603 - the option's command
    try:
        assert peer.stdin is not None and peer.stdout is not None  # noqa: PT018 - for the type checker
        channel = Channel(peer.stdout.fileno(), peer.stdin.fileno(), timeout=options.timeout)
        try:
            done = ask(lines, channel, give=options.write, limit=options.limit, at_most=options.at_most)
        except BrokenPipeError:
            raise Refusal(f"{words[0]}: ended too early") from None
        except EOFError as error:
            raise Refusal(f"{words[0]}: {error}") from None
        peer.stdin.close()
    finally:
        _end(peer)
    if options.write:
        _add(options.files[0], done.theirs)
    stats = {"symbols": done.symbols, "sent": channel.sent, "received": channel.received}
    code = _print_differences(options, done.mine, done.theirs, stats)
    if options.write and done.mine and not done.taken:
        from fullbloom.cli.report import note

        note(options, "the other side takes no lines: it needs --write, too")
        return 1
    return code


def _end(peer: Any) -> None:
    """Wait one second for the command, then kill it."""
    import subprocess
    from contextlib import suppress

    with suppress(OSError):
        peer.stdin.close()
    try:
        peer.wait(timeout=1.0)
    except subprocess.TimeoutExpired:
        peer.kill()
        peer.wait()
    peer.stdout.close()


def _serve(options: SyncOptions, path: str) -> int:
    from fullbloom.cli.io.channel import Channel
    from fullbloom.cli.standard import require_input, require_output
    from fullbloom.recipes.sync import serve

    if options.files:
        raise Refusal("--serve FILE takes no other files; drop them")
    require_input()
    require_output()
    take = (lambda lines: _add(path, lines)) if options.write else None
    try:
        serve(
            _read(options, path),
            Channel(0, 1, timeout=options.timeout),
            take=take,
            limit=options.limit,
        )
    except EOFError as error:
        raise Refusal(str(error)) from None
    return 0


def _read(options: SyncOptions, path: str) -> list[bytes]:
    """Return all lines of a file; with --write it must be writable."""
    from fullbloom.cli.io.blocks import Blocks
    from fullbloom.cli.io.sources import open_sources
    from fullbloom.cli.stops import Stops

    _require_plain(options, path)
    lines: list[bytes] = []
    with Stops() as stops:
        for block in Blocks(open_sources([path]), stops, longest=options.longest_line):
            data = bytes(block)
            some = data.split(b"\n")
            if not some[-1]:
                some.pop()
            lines += [line.removesuffix(b"\r") for line in some] if b"\r\n" in data else some
    return lines


def _require_plain(options: SyncOptions, path: str) -> None:
    """With --write, refuse a file to which no line can be appended, before any work."""
    from pathlib import Path

    from fullbloom.cli.io.output import is_special, require_writable
    from fullbloom.cli.io.sources import MAGICS

    if not options.write:
        return
    if path == "-" or is_special(path):
        raise Refusal(f"{path}: is not a plain file that lines can be added to; drop --write")
    with Path(path).open("rb") as file:
        if file.read(max(map(len, MAGICS))).startswith(MAGICS):
            raise Refusal(
                f"{path}: is not a plain file that lines can be added to; unpack it, or drop --write"
            )
    require_writable(path)


def _add(path: str, lines: list[bytes]) -> None:
    """Append lines that the file lacks; it is locked, and replaced atomically."""
    from pathlib import Path

    from fullbloom.cli.filters.state import lock_file
    from fullbloom.cli.io.output import Output

    if not lines:
        return
    with lock_file(path, "FILE"):
        # Another run may have added some of them since the comparison.
        before = Path(path).read_bytes()
        if before and not before.endswith(b"\n"):
            before += b"\n"
        held = {line.removesuffix(b"\r") for line in before.split(b"\n")[:-1]}
        output = Output(path)
        try:
            output.write(before)
            output.write(b"".join(line + b"\n" for line in lines if line not in held))
            output.commit(durable=True)
        finally:
            output.discard()


def _print_differences(
    options: SyncOptions, mine: list[bytes], theirs: list[bytes], stats: dict[str, Any]
) -> int:
    """Print the differences, or that they were merged; return the exit code."""
    from fullbloom.cli.io.output import Output
    from fullbloom.cli.report import report

    prints = not (options.write or options.quiet)
    if prints:
        output = Output(None)
        output.write(b"".join(b"< " + line + b"\n" for line in mine))
        output.write(b"".join(b"> " + line + b"\n" for line in theirs))
    text = f"{len(mine):,} lines here alone, {len(theirs):,} there"
    if stats:
        text += f"; {stats['sent']:,} bytes sent, {stats['received']:,} received"
    report(options, {"mine": len(mine), "theirs": len(theirs), **stats}, [text], stdout_is_free=not prints)
    return 1 if (mine or theirs) and not options.write else 0
