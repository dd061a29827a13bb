"""``fullbloom backup``: a copy of a running service."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from fullbloom import _folders
from fullbloom.cli import remote
from fullbloom.cli.failures import Refusal
from fullbloom.cli.report import report

if TYPE_CHECKING:
    import argparse

HELP = "copy all filters of a running service into one file"
DETAIL = """The copy is of one moment; clients go on meanwhile. It holds
the secret of keyed filters: keep it like one."""
EXAMPLE = "fullbloom backup --url http://127.0.0.1:8080 filters.tar"
QUIET = "print nothing"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", metavar="FILE", help="tar to write; replaced if it is there")
    remote.add_address(parser, default="http://127.0.0.1:8080")


def run(args: argparse.Namespace) -> int:
    """Write the copy beside its name, then give it the name."""
    file = Path(args.file)
    new = file.with_name(f"{file.name}.new")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as out, remote.asked(args.url, "/v1/backup") as answer:  # noqa: PTH123
            shutil.copyfileobj(answer, out, 1 << 20)
            stated = answer.headers.get("content-length")  # type: ignore[attr-defined]  # of a response
            if stated is not None and out.tell() != int(stated):
                raise Refusal(f"{args.url} sent {out.tell()} of {stated} bytes; try again")
            out.flush()
            os.fsync(out.fileno())
        new.replace(file)
        _folders.sync(file.absolute().parent)
    finally:
        new.unlink(missing_ok=True)
    nbytes = file.stat().st_size
    report(
        args,
        {"file": args.file, "bytes": nbytes},
        [f"{args.file}: {nbytes:,} bytes"],
        stdout_is_free=True,
    )
    return 0
