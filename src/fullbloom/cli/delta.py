"""``fullbloom delta``: write or apply the difference between two versions of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fullbloom.cli.options import QUIET, Options, add_secret

if TYPE_CHECKING:
    import argparse

__all__ = ["DETAIL", "EXAMPLE", "HELP", "OPTIONS", "QUIET", "configure", "run"]

HELP = "write what differs between two versions, or apply it"
DETAIL = """OLD and NEW are files of fullbloom build --except; NEW was built with --like OLD, or the delta is
as long as NEW. With --apply the third file is a delta for OLD, and OUT becomes the version from which it
was created, byte for byte. A delta for another version, or a damaged one, is refused."""
EXAMPLE = "fullbloom delta day.delta old.cascade new.cascade"


@dataclass(frozen=True, kw_only=True)
class DeltaOptions(Options):
    """Options of ``fullbloom delta``."""

    out: str
    old: str
    new: str
    apply: bool
    secret_file: str | None


OPTIONS = DeltaOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("out", metavar="OUT", help="the file to write; with --apply it may be OLD")
    parser.add_argument("old", metavar="OLD", help="the present version")
    parser.add_argument("new", metavar="NEW", help="the other version; with --apply, the delta")
    parser.add_argument("--apply", action="store_true", help="turn OLD into the other version")
    add_secret(parser)


def run(options: DeltaOptions) -> int:
    """Compare or apply, and save."""
    from fullbloom.cli.filters.state import lock_output
    from fullbloom.cli.io.output import require_different, require_writable

    require_different(
        [options.old, options.new], {"OUT": options.out}, replaced="OUT" if options.apply else None
    )
    require_writable(options.out)
    with lock_output(options.out):
        return _apply(options) if options.apply else _compare(options)


def _open(options: DeltaOptions, path: str) -> Any:
    import fullbloom
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.secret import read_secret

    found: Any = fullbloom.open(path, verify="full", secret=read_secret(options.secret_file))
    if not hasattr(found, "delta_to"):
        raise Refusal(f"{path}: a {type(found).__name__} has no deltas; send the file itself")
    return found


def _compare(options: DeltaOptions) -> int:
    import fullbloom
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.io.output import Output
    from fullbloom.cli.report import report

    old, new = _open(options, options.old), _open(options, options.new)
    try:
        delta = old.delta_to(new)
    except fullbloom.IncompatibleFilters as error:
        raise Refusal(f"{options.new}: {error}") from None
    output = Output(options.out)
    try:
        output.write(delta)
        output.commit(durable=True)
    finally:
        output.discard()
    whole = len(new.to_bytes())
    stats = {"file": options.out, "bytes": len(delta), "whole": whole}
    text = f"{options.out}: {len(delta):,} bytes, {len(delta) / whole:.1%} of the {whole:,} of {options.new}"
    report(options, stats, [text], stdout_is_free=options.out != "-")
    return 0


def _apply(options: DeltaOptions) -> int:
    from pathlib import Path

    import fullbloom
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.io.output import save_filter
    from fullbloom.cli.report import report

    old = _open(options, options.old)
    delta = Path(options.new).read_bytes()
    try:
        new = old.apply_delta(delta)
    except (fullbloom.FormatError, fullbloom.IncompatibleFilters) as error:
        raise Refusal(f"{options.new}: {error}") from None
    save_filter(new, options.out)
    stats = {"file": options.out, "bytes": len(delta), **new.info()}
    report(options, stats, [f"{options.out}: {new!r}"], stdout_is_free=True)
    return 0
