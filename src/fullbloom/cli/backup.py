"""``fullbloom backup``: copy a running service."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fullbloom import _folders
from fullbloom.cli import remote
from fullbloom.cli.failures import Refusal
from fullbloom.cli.io.output import create_beside, is_special
from fullbloom.cli.options import Options
from fullbloom.cli.report import report

if TYPE_CHECKING:
    import argparse

HELP = "copy all filters of a running service into one file"
DETAIL = """The copy is consistent; clients are served meanwhile. It contains
the secret of keyed filters: protect it like one."""
EXAMPLE = "fullbloom backup --url http://127.0.0.1:8080 filters.tar"
QUIET = "print nothing"


@dataclass(frozen=True, kw_only=True)
class BackupOptions(Options):
    """Options of ``fullbloom backup``."""

    file: str
    url: str


OPTIONS = BackupOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", metavar="FILE", help="tar to write; replaced if it exists")
    remote.add_address(parser, default="http://127.0.0.1:8080")


def run(options: BackupOptions) -> int:
    """Write the copy beside FILE, then rename it."""
    file = Path(options.file)
    if not file.name or is_special(options.file):
        raise Refusal(f"{file}: is not a regular file, which a backup would replace; name a new file")
    try:
        descriptor, new = create_beside(file, "tmp", private=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, options.file) from error
    try:
        with os.fdopen(descriptor, "wb") as out, remote.send_request(options.url, "/v1/backup") as response:
            shutil.copyfileobj(response, out, 1 << 20)
            stated = response.headers.get("content-length")  # type: ignore[attr-defined]
            if stated is not None and out.tell() != int(stated):
                raise Refusal(f"{options.url} sent {out.tell()} of {stated} bytes; try again")
            out.flush()
            os.fsync(out.fileno())
        new.replace(file)
        _folders.sync(file.absolute().parent)
    finally:
        new.unlink(missing_ok=True)
    nbytes = file.stat().st_size
    report(
        options,
        {"file": options.file, "bytes": nbytes},
        [f"{options.file}: {nbytes:,} bytes"],
        stdout_is_free=True,
    )
    return 0
