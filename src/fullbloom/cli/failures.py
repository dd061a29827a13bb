"""What ends a command early."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


class Refusal(Exception):
    """The command cannot go on; the message is the one line that a person reads."""


class Interrupted(Exception):
    """A signal asked to stop; raised only where nothing is half done."""

    def __init__(self, number: int) -> None:
        """Remember the signal's number; the exit code is 128 more."""
        super().__init__(number)
        self.number = number


def refuse_idle_options(args: argparse.Namespace) -> None:
    """Refuse options of ``--select`` where it is not given, and such as exclude it."""
    if args.select is not None and (getattr(args, "hex", False) or getattr(args, "sha1_of", False)):
        raise Refusal(f"--select and {'--hex' if args.hex else '--sha1-of'} exclude each other")
    if args.select and "" in args.select:
        raise Refusal("--select names a column or key, got an empty text; name one, or drop it")
    if args.select is None:
        options = {
            "--format": args.format,
            "--no-header": args.no_header,
            "--delimiter": args.delimiter,
            "--key-type": args.key_type,
            "--skip-bad": args.skip_bad,
        }
        for option, given in options.items():
            if given:
                raise Refusal(f"{option} is of use with --select only: add --select COLUMN, or drop {option}")
    elif args.key_type and len(args.key_type) not in {1, len(args.select)}:
        raise Refusal(
            f"--key-type is given once for all --select or once for each of {len(args.select)}, "
            f"got {len(args.key_type)}"
        )


def explain(error: BaseException) -> str:
    """Say to a person what is wrong: the file, when there is one, and why."""
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return f"{error.filename}: {reason}" if error.filename is not None else reason
    if isinstance(error, MemoryError) and not str(error):
        return "out of memory; give --memory, a lower capacity or a higher fpr"
    return str(error) or type(error).__name__
