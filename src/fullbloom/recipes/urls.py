"""Tell duplicate URLs, and the new hosts and folders among new ones, by one layered filter.

Host, folders and page of a URL are keys of their own. A crawler learns where a URL becomes new: nothing of a
new host needs to be looked up further, and how many URLs of a host came before is the depth of that host.

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

#: The first part of a URL that is new; None where all of it is known.
Part = Literal["host", "folder", "page"] | None


def parts(url: str) -> list[tuple[str, ...]]:
    """Return the keys of a URL: the host, each folder below it, the page (path and query).

    The host is in lower case, with its port where one is given; scheme, user and fragment tell no pages
    apart. Raises ``ParameterError`` for a text that has no host. The keys are tuples, which no texts equal.

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
    """Return the first part of ``url`` that ``seen`` lacks; None for a known URL, or falsely at its rate.

    One look-up a known part and one more. Raises ``ParameterError`` for a text that has no host.
    """
    return _first_new(seen, parts(url))


def add(seen: LayeredBloomFilter, url: str) -> Part:
    """Add ``url`` and return what was new of it; a known URL changes nothing.

    ``seen`` holds a key a URL, folder and host: its capacity is for all of them, and its number of layers the
    largest number of URLs of a host that is told apart. A false positive of a page drops the URL, as in any
    filter; one of a host or a folder only names a later part. Raises ``ParameterError`` as :func:`find` does.
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
    """Return how many URLs of this host were added, up to the layers of ``seen``; seldom one too many."""
    return seen.depth(parts(url)[0])


def _first_new(seen: LayeredBloomFilter, keys: list[tuple[str, ...]]) -> Part:
    # A page whose parts above it are missing was never added, whatever it looks like itself.
    for place, key in enumerate(keys):
        if key not in seen:
            return "host" if place == 0 else "page" if place == len(keys) - 1 else "folder"
    return None
