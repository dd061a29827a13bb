"""Guarantee: a digest finds what was cached, errs at its law's rate, and no neighbour's bytes do harm."""

from __future__ import annotations

import random

import pytest

from fullbloom import BloomFilter, CuckooFilter, KeyTypeError, ParameterError, theory
from fullbloom.errors import FormatError
from fullbloom.recipes.digests import Neighbours, make_digest

SEED = 1970


def draw_urls(draw: random.Random, count: int) -> list[str]:
    return [f"http://{draw.getrandbits(40):x}.example/{number}" for number in range(count)]


def test_a_neighbour_is_found_for_what_it_had_and_at_the_rate_of_the_law_otherwise():
    draw = random.Random(SEED)
    urls = draw_urls(draw, 30_000)
    neighbours = Neighbours()
    shapes = [(draw.randint(4, 10), draw.randint(1, 6)) for _ in range(3)]
    for name, (bits, num_hashes) in enumerate(shapes):
        digest = make_digest(urls[:5000], bits_per_object=bits, num_hashes=num_hashes)
        neighbours.update(str(name), digest)
    assert all(neighbours.find(url) == ["0", "1", "2"] for url in urls[:5000])
    found = [neighbours.find(url) for url in urls[5000:]]
    for name, (bits, num_hashes) in enumerate(shapes):
        rate = theory.exponential_fpr(1, bits, num_hashes)
        errors = sum(str(name) in names for names in found)
        # The fill varies, too: its share of the deviation is below that of 5,000 trials.
        deviation = (rate * (1 - rate) * 25_000) ** 0.5 + 25_000 * rate * num_hashes / (5000 * bits) ** 0.5
        assert abs(errors - 25_000 * rate) < 5 * deviation, (SEED, bits, num_hashes)


def test_a_new_digest_replaces_the_last():
    neighbours = Neighbours()
    neighbours.update("a", make_digest(["old"] * 2))
    neighbours.update("a", make_digest(["new"]))
    assert neighbours.find("new") == ["a"]
    assert neighbours.find("old") == []
    neighbours.remove("a")
    neighbours.remove("a")
    assert neighbours.find("new") == []


def test_an_empty_cache_has_a_digest():
    neighbours = Neighbours()
    neighbours.update("a", make_digest([]))
    assert neighbours.find("key") == []


def test_bytes_that_are_no_digest_are_refused_and_the_last_digest_stays():
    draw = random.Random(SEED)
    good = make_digest([*draw_urls(draw, 1000), "key"])
    other = CuckooFilter(100).to_bytes()
    seeded = BloomFilter(100, seed=1).to_bytes()
    secret = BloomFilter(100, secret=True)
    secret.take_secret()
    murmur = BloomFilter(100, hash="murmur3-32").to_bytes()
    neighbours = Neighbours(max_bytes=len(good))
    neighbours.update("a", good)
    bad = [b"", b"no digest", other, seeded, secret.to_bytes(), murmur, good + b"\0"]
    bad += [good[: draw.randrange(len(good))] for _ in range(100)]
    for _ in range(300):
        damaged = bytearray(good)
        damaged[draw.randrange(len(good))] ^= 1 << draw.randrange(8)
        bad.append(bytes(damaged))
    for digest in bad:
        with pytest.raises(FormatError):
            neighbours.update("a", digest)
        assert neighbours.find("key") == ["a"]


def test_a_digest_that_is_too_long_is_refused():
    with pytest.raises(FormatError, match="at most 100 bytes"):
        Neighbours(max_bytes=100).update("a", make_digest(["key"]))


def test_a_single_text_is_no_cache():
    with pytest.raises(KeyTypeError, match="one str"):
        make_digest("http://a.example/")


@pytest.mark.parametrize("options", [{"bits_per_object": 0}, {"num_hashes": 0}])
def test_digests_without_bits_are_refused(options):
    with pytest.raises(ParameterError):
        make_digest(["key"], **options)
