"""What ends a command early."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fullbloom.cli.options import RecordOptions


class Refusal(Exception):
    """The command cannot go on; the message is the one line that a person reads."""


class Interrupted(Exception):
    """A signal asked to stop; raised only where nothing is half done."""

    def __init__(self, number: int) -> None:
        """Remember the signal's number; the exit code is 128 more."""
        super().__init__(number)
        self.number = number


def refuse_idle_options(options: RecordOptions) -> None:
    """Refuse options of ``--select`` where it is not given, and such as exclude it."""
    if options.select is not None and options.has_hashes:
        raise Refusal(f"--select and {'--hex' if options.hex else '--sha1-of'} exclude each other")
    if options.select and "" in options.select:
        raise Refusal("--select names a column or key, got an empty text; name one, or drop it")
    if options.select is None:
        idle = {
            "--format": options.format,
            "--no-header": options.no_header,
            "--delimiter": options.delimiter,
            "--key-type": options.key_type,
            "--skip-bad": options.skip_bad,
        }
        for option, given in idle.items():
            if given:
                raise Refusal(f"{option} is of use with --select only: add --select COLUMN, or drop {option}")
    elif options.key_type and len(options.key_type) not in {1, len(options.select)}:
        raise Refusal(
            f"--key-type is given once for all --select or once for each of {len(options.select)}, "
            f"got {len(options.key_type)}"
        )


def explain(error: BaseException) -> str:
    """Say to a person what is wrong: the file, when there is one, and why."""
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return f"{error.filename}: {reason}" if error.filename is not None else reason
    if isinstance(error, MemoryError) and not str(error):
        return "out of memory; give --memory, a lower capacity or a higher fpr"
    return str(error) or type(error).__name__
