"""One file, one role: what is read and what is written must not meet."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from fullbloom.cli.failures import Refusal

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence


def require_different(
    files: Sequence[str], written: Mapping[str, str | None], *, replaced: str | None = None
) -> None:
    """Refuse a file that would be written in two roles, or written and read.

    ``written`` maps a role to its path; None is a role not taken. "-" is standard input among
    ``files``, standard output among ``written``. Inputs may repeat; devices and pipes may too. The role
    ``replaced`` may be an input's: its file is written beside it and renamed when all is read.
    """
    taken: dict[Hashable, str] = {}
    for path in files or ("-",):
        taken[_identity(path, 0)] = "the input"
    for role, name in written.items():
        if name is None:
            continue
        same = _identity(name, 1)
        in_place = role == replaced and name != "-" and taken.get(same) == "the input"
        if same is not None and same in taken and not in_place:
            told = "standard output" if name == "-" else name
            raise Refusal(f"{told}: is the file of both {taken[same]} and {role}; give each its own")
        taken[same] = role


def _identity(path: str, standard: int) -> Hashable:
    """Return what two names of one regular file share, whether it exists yet or not."""
    try:
        status = os.fstat(standard) if path == "-" else os.stat(path)  # noqa: PTH116 - the path may be "-"
    except OSError:
        return None if path == "-" else os.path.realpath(path)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
