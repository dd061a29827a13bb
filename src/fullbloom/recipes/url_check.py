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
import math
import posixpath
import re
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote_to_bytes, urlsplit

from fullbloom import GolombSet
from fullbloom.errors import KeyTypeError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from fullbloom.protocols import Filter

__all__ = ["Answer", "UrlCheck", "build_list", "hash_expression", "list_expressions"]

#: Characters of a URL, and times that escapes are resolved.
_URL_LENGTH, _UNESCAPES = 65_536, 16
#: Cached answers, and hashes of an answer that is cached. A list of 4 billion entries has one per prefix.
_MOST_ANSWERS, _MOST_HASHES = 4096, 32
#: Seconds for which an answer is cached: the five minutes that Safe Browsing's servers usually grant.
_LIFETIME = 300.0
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


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server of a list returned for four bytes, if it states how long that may be cached.

    hashes: the full hashes of the list that begin with these bytes. positive_lifetime, negative_lifetime:
    seconds for which a listed and an unlisted URL may be answered from the cache, like ``cacheDuration`` and
    ``negativeCacheDuration`` of Safe Browsing. `UrlCheck` never caches for longer than its own lifetimes.
    """

    hashes: Collection[bytes]
    positive_lifetime: float = math.inf
    negative_lifetime: float = math.inf


class _Entry(NamedTuple):
    """A cached answer: the times are those of the clock."""

    hashes: frozenset[bytes]
    asked: float
    positive_until: float
    negative_until: float

    def is_current(self, full: bytes, now: float) -> bool:
        until = self.positive_until if full in self.hashes else self.negative_until
        return self.asked <= now < until


class UrlCheck:
    """Finds URLs of a list with a filter of it, and asks for confirmation of what the filter finds.

    listed: the filter, from `build_list` or any other of the expressions. confirm: returns the full hashes
    of the list that begin with these four bytes, or an `Answer`, which also has lifetimes. positive_lifetime:
    seconds until the server is asked again about a listed URL, so that a page becomes reachable after it was
    taken off the list. negative_lifetime: seconds until it is asked again about an unlisted one. 0 caches
    nothing. clock: seconds; if it goes back, cached answers are dropped.

    The server is asked only about what the filter finds. For new pages, replace ``listed`` at any time.

    The cache has the answers for the last 4,096 prefixes, each of up to 32 hashes: 20 MB at most. A longer
    answer is used once. Threads may share a check; two of them may ask the same question at the same time.
    Raises ``ParameterError`` for lifetimes that are negative or not finite.
    """

    def __init__(
        self,
        listed: Filter,
        confirm: Callable[[bytes], Collection[bytes] | Answer],
        *,
        positive_lifetime: float = _LIFETIME,
        negative_lifetime: float = _LIFETIME,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not (0 <= positive_lifetime < math.inf and 0 <= negative_lifetime < math.inf):
            raise ParameterError(
                f"lifetimes must be at least 0 and finite, got {positive_lifetime} and {negative_lifetime}"
            )
        self.listed, self.confirm = listed, confirm
        self.positive_lifetime, self.negative_lifetime = positive_lifetime, negative_lifetime
        self._clock, self._lock = clock, threading.Lock()
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        #: URLs checked, and questions to the server.
        self.urls = self.questions = 0

    def find(self, url: str) -> str | None:
        """Return the expression under which ``url`` is listed, or None.

        Raises as `list_expressions`, and the errors of ``confirm``.
        """
        with self._lock:
            self.urls += 1
        for expression in list_expressions(url):
            if expression in self.listed and self._is_confirmed(hash_expression(expression)):
                return expression
        return None

    def _is_confirmed(self, full: bytes) -> bool:
        prefix, now = full[:_PREFIX_BYTES], self._clock()
        with self._lock:
            entry = self._entries.get(prefix)
            if entry is not None and entry.is_current(full, now):
                return full in entry.hashes
            self._entries.pop(prefix, None)
            self.questions += 1
        # A slow server must not delay other threads. The lifetime begins with the question: what the list
        # became meanwhile may be missing from the answer.
        found = self.confirm(prefix)
        answer = found if isinstance(found, Answer) else Answer(found)
        hashes = frozenset(each for each in answer.hashes if each.startswith(prefix))
        if len(hashes) <= _MOST_HASHES:
            entry = _Entry(
                hashes,
                now,
                now + _bound(answer.positive_lifetime, self.positive_lifetime),
                now + _bound(answer.negative_lifetime, self.negative_lifetime),
            )
            with self._lock:
                self._entries.pop(prefix, None)
                self._entries[prefix] = entry
                if len(self._entries) > _MOST_ANSWERS:
                    self._entries.popitem(last=False)
        return full in hashes


def _bound(stated: float, most: float) -> float:
    """Return a lifetime that a server stated, at most ``most``; 0 for a negative one and for NaN."""
    return min(stated, most) if stated > 0 else 0.0
