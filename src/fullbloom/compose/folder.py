"""A folder of filters that belong together: one file for each filter, and a manifest that names the files.

``save`` writes the parts under new names, replaces the manifest, and deletes the previous parts. The names of
the parts contain a random tag for each save. Before it writes the first part, a save writes a journal with
its tag and the names of the previous parts. If the process is killed, the next save uses the journal to
delete the leftovers; it never deletes any other file.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fullbloom import _core, _folders
from fullbloom.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["load", "save"]

_MANIFEST = "removals.json"
_JOURNAL = "removals.saving"
_FORMAT = "fullbloom.WithRemovals"
_VERSION = 1
_TAG = re.compile("[0-9a-f]{32}")
#: Attempts to open a folder while other processes keep replacing its manifest.
_ATTEMPTS = 1000


def save(home: Path, parts: Mapping[str, Any]) -> None:
    """Write the parts into ``home``, created if missing; readers see all old parts or all new ones."""
    home.mkdir(parents=True, exist_ok=True)
    with _lock(home):
        previous = _read_own_parts(home, parts)
        _delete_leftovers(home, parts, previous)
        tag = uuid.uuid4().hex
        names = {part: _file_name(part, tag) for part in parts}
        _write(home / _JOURNAL, "\n".join([tag, *previous.values()]))
        _folders.sync(home)
        for part, filter_ in parts.items():
            filter_.save(home / names[part])
        manifest = home / _manifest_name(tag)
        _write(manifest, json.dumps({"format": _FORMAT, "version": _VERSION, **names}) + "\n")
        manifest.replace(home / _MANIFEST)
        _folders.sync(home)
        for name in previous.values():
            (home / name).unlink(missing_ok=True)
        (home / _JOURNAL).unlink(missing_ok=True)


def load(home: Path, parts: Iterable[str], options: Mapping[str, Any]) -> list[Any]:
    """Open the parts that the manifest of ``home`` names, all from the same save."""
    names = _read_manifest(home, parts)
    for _ in range(_ATTEMPTS):
        try:
            return [_core.open(home / name, **options) for name in names]
        except FileNotFoundError:
            # Another save may have replaced the manifest and deleted this file: read the manifest again.
            previous, names = names, _read_manifest(home, parts)
            if names == previous:
                raise
    raise OSError(f"another process keeps replacing {home / _MANIFEST}; try again later")


def _file_name(part: str, tag: str) -> str:
    return f"{part}-{tag}.bloom"


def _manifest_name(tag: str) -> str:
    """Return the name of a manifest that has not replaced the current one yet."""
    return f"{_MANIFEST}.{tag}"


def _read_own_parts(home: Path, parts: Iterable[str]) -> dict[str, str]:
    """Return the files of the manifest by part, without files that `save` did not name."""
    try:
        names = dict(zip(parts, _read_manifest(home, parts), strict=True))
    except (OSError, FormatError):
        return {}
    return {part: name for part, name in names.items() if _is_own(part, name)}


def _is_own(part: str, name: str) -> bool:
    """Return whether `save` creates such a name."""
    tag = name.removeprefix(f"{part}-").removesuffix(".bloom")
    return _TAG.fullmatch(tag) is not None and name == _file_name(part, tag)


def _delete_leftovers(home: Path, parts: Iterable[str], current: Mapping[str, str]) -> None:
    """Delete the files that a killed save wrote, or did not delete yet, according to its journal."""
    try:
        tag, *previous = (home / _JOURNAL).read_text(encoding="ascii").split("\n")
    except (OSError, ValueError):
        return
    if _TAG.fullmatch(tag):
        leftovers = {_manifest_name(tag), *(_file_name(part, tag) for part in parts)}
        leftovers.update(name for name in previous if any(_is_own(part, name) for part in parts))
        for name in leftovers.difference(current.values()):
            (home / name).unlink(missing_ok=True)


@contextmanager
def _lock(home: Path) -> Iterator[None]:
    """Hold the folder's lock, waiting for any other save to finish."""
    if not _folders.has_locks():
        yield
        return
    descriptor = os.open(home, os.O_RDONLY)
    try:
        _folders.lock(descriptor, wait=True)
        yield
    finally:
        _folders.close(descriptor)


def _write(path: Path, text: str) -> None:
    """Write a small file and flush it to disk."""
    with path.open("w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())


def _read_manifest(home: Path, parts: Iterable[str]) -> list[str]:
    """Return the file names of the parts; each must be directly in the folder."""
    try:
        manifest = json.loads((home / _MANIFEST).read_text(encoding="utf-8"))
    except ValueError as error:
        raise FormatError(f"{home / _MANIFEST} is damaged: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise FormatError(f"{home / _MANIFEST} does not describe a WithRemovals")
    if manifest.get("version") != _VERSION:
        raise FormatError(f"{home / _MANIFEST} has version {manifest.get('version')}; use a newer release")
    return [_check_name(home, manifest.get(part)) for part in parts]


def _check_name(home: Path, name: object) -> str:
    """Return ``name``; raise ``FormatError`` unless it is a plain file name."""
    if isinstance(name, str) and Path(name).name == name and name not in {"", ".", ".."}:
        return name
    raise FormatError(f"{home / _MANIFEST} names a file outside its folder: {name!r}")
