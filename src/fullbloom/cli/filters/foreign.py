"""Files of other programs' filters: the options that say how they are read, and opening them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fullbloom.cli.options import Options

if TYPE_CHECKING:
    import argparse


@dataclass(frozen=True, kw_only=True)
class ForeignOptions(Options):
    """Options of commands that read files of other programs."""

    format: str | None
    key_type: str | None


def add_format(parser: argparse.ArgumentParser) -> None:
    """Declare how a file of another program is read."""
    group = parser.add_argument_group("files of other programs")
    group.add_argument(
        "--format", metavar="NAME", help="format of the file, if its lengths do not say: see docs/formats.md"
    )
    group.add_argument(
        "--key-type", metavar="TYPE", help="type of its keys, where files do not record it: utf-8, long, ..."
    )


def open_any(
    options: ForeignOptions, path: str, secret_file: str | None, *, verify: Literal["header", "full"]
) -> Any:
    """Open a filter's file of fullbloom's or of another program."""
    import fullbloom
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.secret import read_secret
    from fullbloom.formats import detect, open_foreign

    foreign = options.format or detect(path)
    if foreign is None:
        if options.key_type is not None:
            raise Refusal(f"{path}: is a file of fullbloom's; --key-type is for those of other programs")
        return fullbloom.open(path, verify=verify, secret=read_secret(secret_file))
    return open_foreign(path, foreign, key_type=options.key_type)
