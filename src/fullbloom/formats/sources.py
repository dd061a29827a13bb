"""Files to read parts of: local ones, and remote ones through fsspec where it is installed."""

from __future__ import annotations

import glob
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from fullbloom.errors import FormatError, ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class RangedFile:
    """A file of which parts are read; counts the bytes that were."""

    def __init__(self, name: str, file: BinaryIO, size: int) -> None:
        """Read ``size`` bytes at most from ``file``, which messages call ``name``."""
        self.name = name
        self.size = size
        self.bytes_read = 0
        self._file = file

    def read(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset`` on; raises FormatError if the file ends before."""
        if not (0 <= offset <= self.size and 0 <= length <= self.size - offset):
            raise FormatError(
                f"{self.name}: bytes {offset} to {offset + length} lie outside of its {self.size} bytes"
            )
        self._file.seek(offset)
        parts, left = [], length
        while left:
            part = self._file.read(left)
            if not part:
                raise FormatError(f"{self.name}: was cut short while it was read")
            parts.append(part)
            left -= len(part)
        self.bytes_read += length
        return parts[0] if len(parts) == 1 else b"".join(parts)


def expand(sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> Iterator[str]:
    """Yield the files that ``sources`` name: paths, patterns such as ``data/**/*.parquet``, and URLs.

    A pattern's files come in order of their names. Raises FileNotFoundError for a pattern that fits none.
    """
    if isinstance(sources, (str, os.PathLike)):
        sources = [sources]
    for source in sources:
        if not isinstance(source, (str, os.PathLike)):
            raise ParameterTypeError(f"a source must be a path or a URL, got {type(source).__name__}")
        name = os.fspath(source)
        if "://" in name:
            yield from _expand_url(name)
        elif glob.has_magic(name) and not os.path.exists(name):  # noqa: PTH110 - as glob itself, which takes text
            found = sorted(path for path in glob.iglob(name, recursive=True) if os.path.isfile(path))  # noqa: PTH113, PTH207
            if not found:
                raise FileNotFoundError(f"no file fits {name}")
            yield from found
        else:
            yield name


@contextmanager
def open_ranged(name: str) -> Iterator[RangedFile]:
    """Open a local file or a URL for reading parts of it."""
    if "://" in name:
        system, path = _find_system(name)
        # Without a cache: only what is asked for is read.
        with system.open(path, "rb", cache_type="none") as file:
            yield RangedFile(name, file, system.size(path))
    else:
        with open(name, "rb", buffering=0) as file:  # noqa: PTH123 - a name as the caller wrote it
            yield RangedFile(name, file, os.fstat(file.fileno()).st_size)


def _expand_url(url: str) -> Iterator[str]:
    if not glob.has_magic(url):
        yield url
        return
    system, path = _find_system(url)
    found = sorted(system.glob(path))
    if not found:
        raise FileNotFoundError(f"no file fits {url}")
    yield from (system.unstrip_protocol(each) for each in found)


def _find_system(url: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise ParameterError(f"reading {url} needs fsspec: pip install fsspec") from None
    system, path = fsspec.core.url_to_fs(url)
    return system, path
