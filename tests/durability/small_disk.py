"""A small file system in memory, to be filled."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = 4096


@contextmanager
def mount(folder: Path, size: int) -> Iterator[Path]:
    """Mount a file system of ``size`` bytes on a new folder; skip where that is not permitted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("no file system may be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, free: int) -> None:
    """Leave ``free`` bytes of the disk."""
    with (disk / "filler").open("wb", buffering=0) as filler:
        with suppress(OSError):
            while True:
                filler.write(bytes(PAGE))
        filler.truncate(filler.tell() - free)
