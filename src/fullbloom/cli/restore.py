"""``fullbloom restore``: restore a copy of a service."""

from __future__ import annotations

import json
import lzma
import os
import re
import shutil
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from fullbloom import _folders
from fullbloom.cli import remote
from fullbloom.cli.failures import Refusal
from fullbloom.cli.options import Options
from fullbloom.cli.report import report

if TYPE_CHECKING:
    import argparse

HELP = "restore a copy of a service, to an empty folder or a running service"
DETAIL = """With --data the folder gets all data of the service, including secrets and registry. With --url
each filter is sent to a running service, which must have the secret.key that keyed it."""
EXAMPLE = "fullbloom restore --data new filters.tar"
QUIET = "print nothing"

_INDEX = "index.json"
_MANIFEST = "data/manifest"
#: Most bytes of an index: a million filters with names of 128 letters.
_MAX_INDEX = 256 << 20
_MEMBER = re.compile(
    r"data/(manifest|secret\.key|registry\.db|node|tokens|filters/[0-9]+(-[0-9]+\.bloom|\.bundle))"
)
_FOLDERS = frozenset({"data", "data/filters", "data/log"})


@dataclass(frozen=True, kw_only=True)
class RestoreOptions(Options):
    """Options of ``fullbloom restore``."""

    file: str
    data: str | None
    url: str | None
    replace: bool


OPTIONS = RestoreOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", metavar="FILE", help="a file of fullbloom backup")
    parser.add_argument("--data", metavar="DIR", help="data folder to create")
    remote.add_address(parser, default=None)
    parser.add_argument(
        "--replace", action="store_true", help="with --url: replace filters of the same names"
    )


def run(options: RestoreOptions) -> int:
    """Restore everything; an invalid file is refused before anything is written."""
    if (options.data is None) == (options.url is None):
        raise Refusal("give either --data DIR or --url URL")
    try:
        with tarfile.open(options.file) as tar:
            members = _read_members(tar)
            pieces = _read_index(tar, members)
            if options.url is not None:
                count = _send(tar, pieces, options.url, replace=options.replace)
            else:
                count = _unpack(tar, members, Path(str(options.data)))
    except (_InvalidBackup, tarfile.TarError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise Refusal(f"{options.file}: not a file of fullbloom backup: {error}") from None
    what = "filters sent" if options.data is None else "files written"
    report(options, {"file": options.file, "count": count}, [f"{count:,} {what}"], stdout_is_free=True)
    return 0


class _InvalidBackup(Exception):
    """The file is not a valid backup; the message gives the reason."""


class _Piece(NamedTuple):
    """A filter in the copy: bytes of a member."""

    name: str
    member: tarfile.TarInfo
    start: int
    length: int


def _read_members(tar: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
    """Return the files of the copy by their names; refuse anything else."""
    members: dict[str, tarfile.TarInfo] = {}
    for member in tar:
        is_file = member.isreg() and not member.issparse()
        if is_file and (member.name == _INDEX or _MEMBER.fullmatch(member.name)):
            if member.name in members:
                raise _InvalidBackup(f"it holds {member.name} twice")
            members[member.name] = member
        elif not (member.isdir() and member.name in _FOLDERS):
            raise _InvalidBackup(f"it holds {member.name!r}, which no backup does")
    for name in (_INDEX, _MANIFEST):
        if name not in members:
            raise _InvalidBackup(f"it lacks {name}")
    return members


def _read_index(tar: tarfile.TarFile, members: dict[str, tarfile.TarInfo]) -> list[_Piece]:
    """Return the filters that the index lists, each within a file of the copy."""
    if members[_INDEX].size > _MAX_INDEX:
        raise _InvalidBackup(f"its {_INDEX} is larger than {_MAX_INDEX:,} bytes")
    try:
        index = json.loads(_open(tar, members[_INDEX]).read())
        if index["version"] != 1:
            raise _InvalidBackup("it was written by a newer release; use that one")
        return [_parse_piece(name, place, members) for name, place in index["filters"].items()]
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        raise _InvalidBackup(f"its {_INDEX} is malformed") from None


def _parse_piece(name: str, place: Any, members: dict[str, tarfile.TarInfo]) -> _Piece:
    file, start, length = place
    member = members[file]
    if type(start) is not int or type(length) is not int or start < 0 or length < 0:
        raise ValueError
    # A length of 0 means the rest of the file.
    length = length or member.size - start
    if length <= 0 or start + length > member.size:
        raise ValueError
    name.encode()
    return _Piece(name, member, start, length)


def _open(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    source = tar.extractfile(member)
    if source is None:
        raise _InvalidBackup(f"{member.name} is not a regular file")
    return source


def _unpack(tar: tarfile.TarFile, members: dict[str, tarfile.TarInfo], folder: Path) -> int:
    if folder.exists() and any(folder.iterdir()):
        raise Refusal(f"{folder}: not empty; give a folder that does not exist")
    files = [member for name, member in members.items() if name not in {_INDEX, _MANIFEST}]
    for name in ("filters", "log"):
        (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    # The manifest is written last, once every file that it names is on disk.
    for member in files:
        _write(tar, member, folder / member.name.removeprefix("data/"))
    for part in (folder / "filters", folder / "log", folder, folder.absolute().parent):
        _folders.sync(part)
    new = folder / "manifest.new"
    _write(tar, members[_MANIFEST], new)
    new.replace(folder / "manifest")
    _folders.sync(folder)
    return len(files) + 1


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    """Write a file of the copy, and wait until it is on disk."""
    source = _open(tar, member)
    with path.open("wb") as out:
        path.chmod(0o600)
        shutil.copyfileobj(source, out, 1 << 20)
        out.flush()
        os.fsync(out.fileno())


def _send(tar: tarfile.TarFile, pieces: list[_Piece], url: str, *, replace: bool) -> int:
    for piece in pieces:
        source = _open(tar, piece.member)
        source.seek(piece.start)
        path = f"/v1/filters/{quote(piece.name, safe='')}/dump?replace={str(replace).lower()}"
        with remote.send_request(url, path, "PUT", source.read(piece.length)):
            pass
    return len(pieces)
