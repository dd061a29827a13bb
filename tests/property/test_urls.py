"""Guarantee: the recipe for URLs finds the first new part of a URL, as an exact set does."""

from __future__ import annotations

import random

import pytest
from cases import for_each

import fullbloom
from fullbloom.recipes import urls


def oracle(known: set[tuple[str, ...]], url: str) -> str | None:
    """Return the first part of a URL that is not in ``known``."""
    keys = urls.parts(url)
    new = [place for place, key in enumerate(keys) if key not in known]
    names = ["host", *["folder"] * (len(keys) - 2), "page"]
    return names[new[0]] if new else None


def test_streams_of_urls_get_the_results_of_an_exact_set() -> None:
    rng = random.Random(4)
    seen = fullbloom.LayeredBloomFilter(20_000, 1e-6, layers=8)
    known: set[tuple[str, ...]] = set()
    count: dict[str, int] = {}
    for _ in range(3000):
        depth = rng.randrange(4)
        path = "/".join(str(rng.randrange(4)) for _ in range(depth))
        host = f"host{rng.randrange(300)}.org"
        url = f"https://{host}/{path}" + ("?q=1" if rng.random() < 0.2 else "")
        wanted = oracle(known, url)
        assert urls.find(seen, url) == wanted, url
        assert urls.add(seen, url) == wanted, url
        assert urls.find(seen, url) is None
        count[host] = count.get(host, 0) + (wanted is not None)
        known.update(urls.parts(url))
    assert all(urls.urls_of_host(seen, f"//{host}/") == min(8, times) for host, times in count.items())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://a.org", "https://A.org/"),
        ("http://user@a.org/x#top", "http://a.org/x"),
        ("http://[::1]/", "//[::1]"),
    ],
)
def test_spellings_of_one_url_are_one_key(one: str, other: str) -> None:
    assert urls.parts(one) == urls.parts(other)


@for_each("url", ["", "a.org/x", "http://", "http://[", "http://a:99999/", "mailto:a@b.org"])
def test_a_url_without_a_host_is_refused(url: str) -> None:
    with pytest.raises(fullbloom.ParameterError, match="host"):
        urls.parts(url)


def test_a_page_is_not_the_folder_of_its_name() -> None:
    seen = fullbloom.LayeredBloomFilter(100)
    assert urls.add(seen, "http://a.org/x/y") == "host"
    assert urls.find(seen, "http://a.org/x/") == "page"
