"""Check URLs against a large list without sending them away, as Safe Browsing does.

A filter of the list is on the machine. Nearly all URLs are not in it, and need nothing else. For one that the
filter finds, the client sends four bytes of its hash to a server, which returns the full hashes that begin
with them. So the server learns neither the URL nor most of its hash. Chrome had a Bloom filter first, and
later a sorted set of prefixes of hashes, of which it stored the differences; a `GolombSet` is such a set.

>>> listed = build_list(["evil.example/login", "bad.example/"])
>>> check = UrlCheck(listed, confirm=lambda prefix: {hash_expression("evil.example/login")})
>>> check.find("http://www.evil.example/login?user=1#top"), check.find("http://good.example/")
('evil.example/login', None)
"""

from __future__ import annotations

import hashlib
import ipaddress
import posixpath
import re
from collections import OrderedDict
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes, urlsplit

from fullbloom import GolombSet
from fullbloom.errors import KeyTypeError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from fullbloom.protocols import Filter

__all__ = ["UrlCheck", "build_list", "hash_expression", "list_expressions"]

#: Characters of a URL, times that escapes are resolved, and answers of the server that are kept.
_URL_LENGTH, _UNESCAPES, _ANSWERS = 65_536, 16, 4096
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_WEB = re.compile(r"^(https?):/*", re.IGNORECASE)
_QUERY = re.compile(r"[?#]")
#: Bytes of a hash that the server learns.
_PREFIX_BYTES = 4
#: Parts of a host and folders of a path that are looked up.
_HOST_PARTS, _FOLDERS = 5, 4
#: A false positive costs one question to the server.
_BITS = 12


def list_expressions(url: str) -> list[str]:
    """Return the texts under which a list may have ``url``: endings of its host with beginnings of its path.

    The host itself and up to four of its last two to five parts; the path with its query, without it, and its
    first four folders. Escapes, dots, case of the host, port, user and fragment are resolved as Safe Browsing
    does; addresses in octal or as one number are not. Raises ``ParameterError`` for a URL without a valid
    host, or above 65,536 characters.

    >>> list_expressions("http://a.b.c/1/2.html?q=1")[:4]
    ['a.b.c/1/2.html?q=1', 'a.b.c/1/2.html', 'a.b.c/', 'a.b.c/1/']
    >>> len(list_expressions("http://a.b.c/1/2.html?q=1"))
    8
    """
    if len(url) > _URL_LENGTH:
        raise ParameterError(f"a URL may have at most {_URL_LENGTH} characters, got {len(url)}")
    text = "".join(letter for letter in url.strip() if letter not in "\t\r\n")
    # Browsers take a backslash before the query for a slash, and need no slashes after http: and https:.
    rest = _QUERY.search(text)
    head, tail = (text[: rest.start()], text[rest.start() :]) if rest else (text, "")
    text = _WEB.sub(r"\1://", head.replace("\\", "/")) + tail
    # The query of a URL without a scheme may hold another URL.
    has_scheme = text.startswith("//") or _SCHEME.match(text)
    try:
        parts = urlsplit(text if has_scheme else f"//{text}", "http")
        host = parts.hostname or ""
        host = host if host.isascii() else host.encode("idna").decode()
    except ValueError:
        host = ""
    host = ".".join(part for part in _unescape(host).lower().split(".") if part)
    if not host:
        raise ParameterError(f"url must have a host, as https://example.org/page has, got {url[:200]!r}")
    path = _unescape(parts.path)
    end = "/" if path.endswith(("/", "/.", "/..")) else ""
    path = posixpath.normpath(f"/{path.lstrip('/')}").rstrip("/") + end or "/"
    paths = [f"{path}?{_unescape(parts.query)}"] if parts.query else []
    folders = [at + 1 for at, letter in enumerate(path) if letter == "/"]
    paths += [path, *(path[:at] for at in folders[:_FOLDERS])]
    return [host_ + path_ for host_ in _list_hosts(host) for path_ in dict.fromkeys(paths)]


def _unescape(text: str) -> str:
    """Resolve escapes, also of escapes, and escape what must be."""
    data = text.encode("utf-8", "surrogatepass")
    for _ in range(_UNESCAPES):
        plain = unquote_to_bytes(data)
        if plain == data:
            break
        data = plain
    return quote(data, safe="!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~")


def _list_hosts(host: str) -> list[str]:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        parts = host.split(".")
        first = max(len(parts) - _HOST_PARTS, 1)
        return [host, *(".".join(parts[at:]) for at in range(first, len(parts) - 1))]
    return [host]


def hash_expression(expression: str) -> bytes:
    """Return the full hash of an expression, SHA-256."""
    return hashlib.sha256(expression.encode()).digest()


def build_list(expressions: Iterable[str], *, bits: int = _BITS) -> GolombSet:
    """Return the set of a list for the machines of clients; send them its ``to_bytes()``.

    expressions: as from `list_expressions`, without scheme. bits: a lookup errs once in ``2**bits``.
    """
    if isinstance(expressions, str):
        raise KeyTypeError("expressions must be an iterable of expressions, got one str")
    return GolombSet.build(list(expressions), bits=bits)


class UrlCheck:
    """Finds URLs of a list with a filter of it, and asks for confirmation of what the filter finds.

    listed: the filter, from `build_list` or any other of the expressions. confirm: returns the full hashes
    of the list that begin with these four bytes; its answers are kept for the last 4,096 prefixes.
    """

    def __init__(self, listed: Filter, confirm: Callable[[bytes], Collection[bytes]]) -> None:
        self.listed, self.confirm = listed, confirm
        self._answers: OrderedDict[bytes, frozenset[bytes]] = OrderedDict()
        #: URLs checked, and questions to the server.
        self.urls = self.questions = 0

    def find(self, url: str) -> str | None:
        """Return the expression under which ``url`` is listed, or None.

        Raises as `list_expressions`, and the errors of ``confirm``.
        """
        self.urls += 1
        for expression in list_expressions(url):
            if expression in self.listed:
                full = hash_expression(expression)
                if full in self._ask(full[:_PREFIX_BYTES]):
                    return expression
        return None

    def _ask(self, prefix: bytes) -> frozenset[bytes]:
        if prefix not in self._answers:
            self.questions += 1
            self._answers[prefix] = frozenset(self.confirm(prefix))
            if len(self._answers) > _ANSWERS:
                self._answers.popitem(last=False)
        return self._answers[prefix]
