"""``fullbloom restore``: restore a copy of a service."""

from __future__ import annotations

import json
import os
import re
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
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
            index = _read_index(tar, options.file)
            if options.url is not None:
                count = _send(tar, index, options.url, replace=options.replace)
            else:
                count = _unpack(tar, Path(str(options.data)))
    except tarfile.TarError as error:
        raise Refusal(f"{options.file}: not a file of fullbloom backup: {error}") from None
    what = "filters sent" if options.data is None else "files written"
    report(options, {"file": options.file, "count": count}, [f"{count:,} {what}"], stdout_is_free=True)
    return 0


def _read_index(tar: tarfile.TarFile, file: str) -> dict[str, Any]:
    try:
        member = tar.extractfile(_INDEX)
        index: dict[str, Any] = json.loads(member.read()) if member is not None else {}
        if index["version"] != 1:
            raise Refusal(f"{file}: written by a newer release; use that one")
    except (KeyError, ValueError, TypeError):
        raise Refusal(f"{file}: not a file of fullbloom backup") from None
    return index


def _list_members(tar: tarfile.TarFile) -> list[tarfile.TarInfo]:
    members = []
    for member in tar:
        if member.isreg() and _MEMBER.fullmatch(member.name):
            members.append(member)
        elif member.name != _INDEX and not (member.isdir() and member.name in _FOLDERS):
            raise Refusal(f"the file holds {member.name!r}, which no backup does; nothing was written")
    return members


def _unpack(tar: tarfile.TarFile, folder: Path) -> int:
    if folder.exists() and any(folder.iterdir()):
        raise Refusal(f"{folder}: not empty; give a folder that does not exist")
    members = _list_members(tar)
    for name in ("filters", "log"):
        (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    # The manifest is written last, once every file that it names is on disk.
    manifests = [member for member in members if member.name == "data/manifest"]
    for member in members:
        if member not in manifests:
            _write(tar, member, folder / member.name.removeprefix("data/"))
    for part in (folder / "filters", folder / "log", folder, folder.absolute().parent):
        _folders.sync(part)
    for member in manifests:
        new = folder / "manifest.new"
        _write(tar, member, new)
        new.replace(folder / "manifest")
    _folders.sync(folder)
    return len(members)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    """Write a file of the copy, and wait until it is on disk."""
    source = tar.extractfile(member)
    if source is None:
        return
    with path.open("wb") as out:
        path.chmod(0o600)
        shutil.copyfileobj(source, out, 1 << 20)
        out.flush()
        os.fsync(out.fileno())


def _send(tar: tarfile.TarFile, index: dict[str, Any], url: str, *, replace: bool) -> int:
    known = {member.name: member for member in _list_members(tar)}
    for name, (file, start, length) in index["filters"].items():
        source = tar.extractfile(known[file])
        if source is None:
            continue
        source.seek(start)
        path = f"/v1/filters/{quote(name, safe='')}/dump?replace={str(replace).lower()}"
        with remote.send_request(url, path, "PUT", source.read(length or -1)):
            pass
    return len(index["filters"])
