"""Filters that belong together, in a folder: each in a file of its own, and a manifest that names them.

``save`` writes the parts under new names, replaces the manifest, and deletes the parts it named before. Names
of parts hold a tag, drawn anew for each save. Before a save writes the first of them its tag stands in a
note, with the names of the parts before it, so that the next save knows what a killed one has left; no other
file is ever deleted.
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

__all__ = ["opened", "save"]

_MANIFEST = "removals.json"
_NOTE = "removals.saving"
_FORMAT = "fullbloom.WithRemovals"
_VERSION = 1
_TAG = re.compile("[0-9a-f]{32}")
#: A manifest that another process replaces so often is not waited for.
_ATTEMPTS = 1000


def save(home: Path, parts: Mapping[str, Any]) -> None:
    """Write the parts into ``home``, made if need be: the old ones or the new, whenever it is opened."""
    home.mkdir(parents=True, exist_ok=True)
    with _locked(home):
        before = _named(home, parts)
        _remove_leftovers(home, parts, before)
        tag = uuid.uuid4().hex
        names = {part: _name(part, tag) for part in parts}
        _write(home / _NOTE, "\n".join([tag, *before.values()]))
        _folders.sync(home)
        for part, filter_ in parts.items():
            filter_.save(home / names[part])
        fresh = home / _fresh_manifest(tag)
        _write(fresh, json.dumps({"format": _FORMAT, "version": _VERSION, **names}) + "\n")
        fresh.replace(home / _MANIFEST)
        _folders.sync(home)
        for old in before.values():
            (home / old).unlink(missing_ok=True)
        (home / _NOTE).unlink(missing_ok=True)


def opened(home: Path, parts: Iterable[str], options: Mapping[str, Any]) -> list[Any]:
    """Open the parts that the manifest of ``home`` names, all of one save."""
    names = _read(home, parts)
    for _ in range(_ATTEMPTS):
        try:
            return [_core.open(home / name, **options) for name in names]
        except FileNotFoundError:
            # Deleted by a save that has replaced the manifest: then that names others.
            before, names = names, _read(home, parts)
            if names == before:
                raise
    raise OSError(f"{home / _MANIFEST} is being replaced over and over; try later")


def _name(part: str, tag: str) -> str:
    return f"{part}-{tag}.bloom"


def _fresh_manifest(tag: str) -> str:
    return f"{_MANIFEST}.{tag}"


def _named(home: Path, parts: Iterable[str]) -> dict[str, str]:
    """Parts of the manifest that an earlier save wrote, by their names; others are not ours to delete."""
    try:
        names = dict(zip(parts, _read(home, parts), strict=True))
    except (OSError, FormatError):
        return {}
    return {part: name for part, name in names.items() if _is_ours(part, name)}


def _is_ours(part: str, name: str) -> bool:
    tag = name.removeprefix(f"{part}-").removesuffix(".bloom")
    return _TAG.fullmatch(tag) is not None and name == _name(part, tag)


def _remove_leftovers(home: Path, parts: Iterable[str], named: Mapping[str, str]) -> None:
    """Delete what a killed save has written or not yet deleted, as the note beside it says."""
    try:
        tag, *before = (home / _NOTE).read_text(encoding="ascii").split("\n")
    except (OSError, ValueError):
        return
    if _TAG.fullmatch(tag):
        left = {_fresh_manifest(tag), *(_name(part, tag) for part in parts)}
        left.update(name for name in before if any(_is_ours(part, name) for part in parts))
        for name in left.difference(named.values()):
            (home / name).unlink(missing_ok=True)


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    """Wait until no other save is at work in the folder."""
    if not _folders.has_locks():
        yield
        return
    descriptor = os.open(home, os.O_RDONLY)
    try:
        _folders.lock(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)


def _write(path: Path, text: str) -> None:
    """Write a small file, on the disk when this returns."""
    with path.open("w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())


def _read(home: Path, parts: Iterable[str]) -> list[str]:
    """The names of the parts, which must lie in the folder itself."""
    try:
        manifest = json.loads((home / _MANIFEST).read_text(encoding="utf-8"))
    except ValueError as error:
        raise FormatError(f"{home / _MANIFEST} is damaged: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise FormatError(f"{home / _MANIFEST} does not describe a WithRemovals")
    if manifest.get("version") != _VERSION:
        raise FormatError(f"{home / _MANIFEST} has version {manifest.get('version')}; use a newer release")
    return [_plain_name(home, manifest.get(part)) for part in parts]


def _plain_name(home: Path, name: object) -> str:
    """A file's name, which must lead nowhere else."""
    if isinstance(name, str) and Path(name).name == name and name not in {"", ".", ".."}:
        return name
    raise FormatError(f"{home / _MANIFEST} names a file outside of its folder: {name!r}")
