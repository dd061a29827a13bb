"""``fullbloom delta``: what turns one version of a file into another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fullbloom.cli.options import QUIET, add_secret

if TYPE_CHECKING:
    import argparse

__all__ = ["DETAIL", "EXAMPLE", "HELP", "QUIET", "configure", "run"]

HELP = "write what differs between two versions, or apply it"
DETAIL = """OLD and NEW are files of fullbloom build --except; NEW was built with --like OLD, or the delta is
as long as NEW. With --apply the third file is a delta for OLD, and OUT becomes the version that it was
made of, byte for byte. A delta for another version, or a damaged one, is refused."""
EXAMPLE = "fullbloom delta day.delta old.cascade new.cascade"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("out", metavar="OUT", help="the file to write; with --apply it may be OLD")
    parser.add_argument("old", metavar="OLD", help="the version that is there")
    parser.add_argument("new", metavar="NEW", help="the other version; with --apply, the delta")
    parser.add_argument("--apply", action="store_true", help="turn OLD into the other version")
    add_secret(parser)


def run(args: argparse.Namespace) -> int:
    """Compare or apply, and save."""
    from fullbloom.cli.io.output import require_writable
    from fullbloom.cli.io.roles import require_different

    require_different([args.old, args.new], {"OUT": args.out}, replaced="OUT" if args.apply else None)
    require_writable(args.out)
    return _apply(args) if args.apply else _compare(args)


def _opened(args: argparse.Namespace, path: str) -> Any:
    import fullbloom
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.filters.secret import secret_from

    found: Any = fullbloom.open(path, verify="full", secret=secret_from(args.secret_file))
    if not hasattr(found, "delta_to"):
        raise Refusal(f"{path}: a {type(found).__name__} has no deltas; send the file itself")
    return found


def _compare(args: argparse.Namespace) -> int:
    import fullbloom
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.io.output import Output
    from fullbloom.cli.report import report

    old, new = _opened(args, args.old), _opened(args, args.new)
    try:
        delta = old.delta_to(new)
    except fullbloom.IncompatibleFilters as error:
        raise Refusal(f"{args.new}: {error}") from None
    output = Output(args.out)
    try:
        output.write(delta)
        output.commit(durable=True)
    finally:
        output.discard()
    whole = len(new.to_bytes())
    stats = {"file": args.out, "bytes": len(delta), "whole": whole}
    told = f"{args.out}: {len(delta):,} bytes, {len(delta) / whole:.1%} of the {whole:,} of {args.new}"
    report(args, stats, [told], stdout_is_free=args.out != "-")
    return 0


def _apply(args: argparse.Namespace) -> int:
    from pathlib import Path

    import fullbloom
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.filters.files import save
    from fullbloom.cli.report import report

    old = _opened(args, args.old)
    delta = Path(args.new).read_bytes()
    try:
        new = old.apply_delta(delta)
    except (fullbloom.FormatError, fullbloom.IncompatibleFilters) as error:
        raise Refusal(f"{args.new}: {error}") from None
    save(new, args.out)
    stats = {"file": args.out, "bytes": len(delta), **new.info()}
    report(args, stats, [f"{args.out}: {new!r}"], stdout_is_free=True)
    return 0
