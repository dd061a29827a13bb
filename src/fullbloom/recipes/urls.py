"""Find duplicate URLs, and the new hosts and folders among new ones, with one layered filter.

The host, each folder and the page of a URL are separate keys. A crawler learns which part of a URL is new: a
new host needs no further lookups, and the depth of a host is the number of its URLs so far.

After Zhiwang, Jungang and Jian, "A multi-layer Bloom filter for duplicated URL detection", 2010.

>>> from fullbloom import LayeredBloomFilter
>>> seen = LayeredBloomFilter(10_000)
>>> [add(seen, url) for url in ("http://a.org/x/1", "http://a.org/x/2", "http://b.org/", "http://a.org/x/1")]
['host', 'page', 'host', None]
>>> urls_of_host(seen, "http://a.org/z"), urls_of_host(seen, "http://c.org/z")
(2, 0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from fullbloom.errors import ParameterError

if TYPE_CHECKING:
    from fullbloom import LayeredBloomFilter

__all__ = ["Part", "add", "find", "parts", "urls_of_host"]

#: The first new part of a URL; None if the whole URL is known.
Part = Literal["host", "folder", "page"] | None


def parts(url: str) -> list[tuple[str, ...]]:
    """Return the keys of a URL: the host, each folder below it, the page (path and query).

    The host is in lower case, with its port if there is one; scheme, user and fragment are ignored. Raises
    ``ParameterError`` for a URL without a host. The keys are tuples, so they never equal a str key.

    >>> parts("https://A.org/x/y.html?q=1#top")
    [('a.org',), ('a.org', '/x/'), ('a.org', '/x/y.html?q=1', '')]
    """
    try:
        found = urlsplit(url)
        host = (found.hostname or "") + (f":{found.port}" if found.port is not None else "")
    except ValueError:
        host = ""
    if not host:
        raise ParameterError(f"url must have a host, as https://example.org/page has, got {url!r}")
    path = found.path or "/"
    folders = [i + 1 for i, letter in enumerate(path) if letter == "/" and i > 0]
    page = f"{path}?{found.query}" if found.query else path
    return [(host,), *((host, path[:end]) for end in folders), (host, page, "")]


def find(seen: LayeredBloomFilter, url: str) -> Part:
    """Return the first part of ``url`` that is not in ``seen``; None for a known URL or a false positive.

    Costs one lookup per known part, plus one. Raises ``ParameterError`` for a URL without a host.
    """
    return _first_new(seen, parts(url))


def add(seen: LayeredBloomFilter, url: str) -> Part:
    """Add ``url`` and return its first new part; a known URL changes nothing.

    ``seen`` holds one key per URL, folder and host: its capacity counts all of them, and its number of layers
    is the largest number of URLs per host that it can count. A false positive of a page drops the URL, as in
    any filter; one of a host or a folder only returns a later part. Raises as :func:`find`.
    """
    keys = parts(url)
    first = _first_new(seen, keys)
    if first is not None:
        *prefixes, page = keys
        host, *folders = prefixes
        seen.add(host)
        for folder in folders:
            if folder not in seen:
                seen.add(folder)
        seen.add(page)
    return first


def urls_of_host(seen: LayeredBloomFilter, url: str) -> int:
    """Return the number of URLs added for this host, up to the layers of ``seen``; rarely one too many."""
    return seen.depth(parts(url)[0])


def _first_new(seen: LayeredBloomFilter, keys: list[tuple[str, ...]]) -> Part:
    # A page without its host and folders was never added, even if the filter finds the page itself.
    for place, key in enumerate(keys):
        if key not in seen:
            return "host" if place == 0 else "page" if place == len(keys) - 1 else "folder"
    return None
