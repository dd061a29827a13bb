"""The built pages: the dashboard at ``/``, the explorer at ``/explore/``.

They are files that a build of ``web/`` leaves in a folder, of a checkout or of the wheel
``fullbloom-server``. The folders are read at start, and again after a build replaced one. A request's path
is looked up among the files found there and is never joined into a path of the disk.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import fullbloom_server

import fullbloom
from fullbloom.service.failures import Refused
from fullbloom.service.http.asgi import Response
from fullbloom.service.http.conditions import has_match

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fullbloom.service.http.request import Request

#: Folder of a page's build in ``web/`` or in the wheel, by the path that it is served under.
PAGES = {"/": "dashboard", "/explore/": "explorer"}
#: What a person reads where a page is not built.
NOT_BUILT = "The dashboard is not built here. In a checkout, run: make web"
_POLICY = (
    "default-src 'none'; script-src 'self'{more}; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
#: Further sources of scripts, by path: the explorer compiles the core to machine code.
_SCRIPTS = {"/explore/": " 'wasm-unsafe-eval'"}
_TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".json": b"application/json",
    ".svg": b"image/svg+xml",
    ".png": b"image/png",
    ".ico": b"image/x-icon",
    ".wasm": b"application/wasm",
    ".woff2": b"font/woff2",
    ".txt": b"text/plain; charset=utf-8",
}
#: Suffix of the copy that the build compresses by brotli. Browsers take those over HTTPS and from their own
#: machine only; for others a file is compressed by gzip as it is sent, once for each browser that keeps it.
_BROTLI = ".br"
_PACKED_ALREADY = frozenset({".png", ".woff2", ".ico"})
_INDEX = "index.html"
_GONE = "the page is being rebuilt, or it was removed; reload it in a moment"
#: A name with the hash of its content, which therefore never changes.
_HASHED = re.compile(r"-[A-Za-z0-9_-]{8,}\.\w+$")
_FOREVER, _CHECKED = b"public, max-age=31536000, immutable", b"no-cache"
#: Bounds of a folder; a build has some dozens of files.
_MOST_FILES, _MOST_BYTES = 1000, 16 << 20


class _Content(NamedTuple):
    """One form of a file: as it is, or compressed, by the build or as it is read."""

    path: Path
    tag: bytes
    is_packed_late: bool = False

    def read(self) -> bytes:
        """Return the bytes that are sent."""
        body = self.path.read_bytes()
        return gzip.compress(body, 6, mtime=0) if self.is_packed_late else body


class _File(NamedTuple):
    """A file that is served: its forms by content encoding, and the headers of each response."""

    media_type: bytes
    contents: dict[bytes, _Content]
    headers: tuple[tuple[bytes, bytes], ...]


class Pages:
    """The files of all pages that are built."""

    def __init__(self, folders: Mapping[str, Path] | None = None) -> None:
        """Read the folders of the pages, by the paths that these are served under; by default those found."""
        self._folders = dict(find_folders() if folders is None else folders)
        #: Files of each page by their paths, and when its index was written.
        self._files: dict[str, dict[str, _File]] = {}
        self._written: dict[str, int] = {}
        for base in self._folders:
            self._read(base)
        #: Paths without their final slash, and where they lead.
        self._moved = {base.rstrip("/"): base for base in self._folders if base != "/"}

    def __contains__(self, path: str) -> bool:
        """Return whether a path is that of a page or of one of its files."""
        return path in self._moved or self._find(path) is not None

    async def respond(self, request: Request) -> Response:
        """Return the response with a file."""
        if request.method not in {"GET", "HEAD"}:
            raise Refused("method", "pages are only read; use GET", allow="GET, HEAD")
        target = self._moved.get(request.path)
        if target is not None:
            return Response(308, _TYPES[".txt"], b"", ((b"location", target.encode()),))
        if request.path in self._folders:
            await asyncio.to_thread(self._read, request.path)
        file = self._find(request.path)
        if file is None:
            raise Refused("missing", _GONE)
        encoding = _choose_encoding(request.headers.get(b"accept-encoding", b""), file)
        content = file.contents[encoding]
        headers = (*file.headers, (b"etag", content.tag))
        if encoding:
            headers = (*headers, (b"content-encoding", encoding))
        known = request.headers.get(b"if-none-match")
        if known is not None and has_match(known, content.tag):
            return Response(304, file.media_type, b"", headers)
        try:
            body = await asyncio.to_thread(content.read)
        except OSError:
            raise Refused("missing", _GONE) from None
        return Response(200, file.media_type, body, headers)

    def _find(self, path: str) -> _File | None:
        return next((files[path] for files in self._files.values() if path in files), None)

    def _read(self, base: str) -> None:
        """Read the folder of a page, unless it is known as it is: its build writes the index last."""
        folder = self._folders[base]
        try:
            written = (folder / _INDEX).stat().st_mtime_ns
            if self._written.get(base) != written:
                self._files[base] = dict(_read_folder(base, folder))
                self._written[base] = written
        except OSError:  # a build is at work
            self._files.setdefault(base, {})


def find_folders() -> dict[str, Path]:
    """Return the folders of the pages that are built: those of the checkout, else those in the wheel."""
    root = Path(fullbloom.__file__).parents[2]
    # A folder of its own: one inside the module's would make maturin leave out the module's __init__.py.
    wheel = Path(fullbloom_server.__file__).parents[1] / "fullbloom_server_pages"
    found = {}
    for path, name in PAGES.items():
        places = [wheel / name]
        if (root / "pyproject.toml").is_file():
            places.insert(0, root / "web" / name / "dist")
        built = next((place for place in places if (place / _INDEX).is_file()), None)
        if built is not None:
            found[path] = built
    return found


def _read_folder(base: str, folder: Path) -> Iterator[tuple[str, _File]]:
    """Yield the paths and files of a page; links and files of unknown types are left out."""
    policy = _POLICY.format(more=_SCRIPTS.get(base, "")).encode()
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    for path in paths[:_MOST_FILES]:
        media_type = _TYPES.get(path.suffix)
        if media_type is None or path.stat().st_size > _MOST_BYTES:
            continue
        name = path.relative_to(folder).as_posix()
        headers = (
            (b"content-security-policy", policy),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cache-control", _FOREVER if _HASHED.search(name) else _CHECKED),
            (b"vary", b"accept-encoding"),
        )
        yield base + ("" if name == _INDEX else name), _File(media_type, _read_contents(path), headers)


def _read_contents(path: Path) -> dict[bytes, _Content]:
    """Return the forms of a file by their content encodings, the smallest first; b"" is the file itself."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:32].encode()
    forms = {}
    copy = path.with_name(path.name + _BROTLI)
    # A copy that is older than its file is one of another build.
    if copy.is_file() and copy.stat().st_mtime_ns >= path.stat().st_mtime_ns:
        forms[b"br"] = _Content(copy, b'"%b-br"' % digest)
    if path.suffix not in _PACKED_ALREADY:
        forms[b"gzip"] = _Content(path, b'"%b-gzip"' % digest, is_packed_late=True)
    return {**forms, b"": _Content(path, b'"%b"' % digest)}


def _choose_encoding(accepted: bytes, file: _File) -> bytes:
    """Return the smallest form of a file that the client takes; b"" is the file itself.

    A client takes an encoding that ``Accept-Encoding`` names without a quality of 0.
    """
    taken = set()
    for part in accepted.lower().split(b","):
        name, _, quality = part.partition(b";")
        if quality.replace(b" ", b"").rstrip(b"0") not in {b"q=", b"q=0."}:
            taken.add(name.strip())
    return next((encoding for encoding in file.contents if not encoding or encoding in taken), b"")
