"""The scenes of the explorer show what the library does: their numbers equal Python's."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import pytest
from web.explorer_page import parse_int, parse_rate, read_fact, show, wait_for_hash

import fullbloom
from fullbloom import theory

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytest_plugins = ["web.explorer_page"]


def list_set_bits(page: Page) -> list[int]:
    """Return the positions of the bits that the figure shows as set."""
    return [
        int(i)
        for i in page.locator(".bit.set").evaluate_all(
            "found => found.map(one => [...one.parentNode.querySelectorAll('.bit')].indexOf(one))"
        )
    ]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_hashes_positions_and_bits_of_words_equal_pythons(page: Page, address: str, seed: int) -> None:
    draw = random.Random(seed)
    alphabet = "abcdefghij日本äö"
    words = sorted({"".join(draw.choices(alphabet, k=draw.randrange(1, 9))) for _ in range(6)})
    bits, hashes, salt = draw.randrange(8, 129), draw.randrange(1, 9), draw.randrange(1000)
    asked = "".join(draw.choices(alphabet, k=5))
    print(f"{words=} {bits=} {hashes=} {salt=} {asked=}")
    filter_ = fullbloom.BloomFilter.with_shape(bits, hashes, layout="classic", seed=salt)
    filter_.update(words)
    show(page, address, "words", words=" ".join(words), ask=asked, m=bits, k=hashes, seed=salt)
    for word in words:
        cells = page.locator(f'tr[data-word="{word}"] td').all_inner_texts()
        assert cells[0] == f"{fullbloom.hash_key(word, seed=salt):016x}"
        assert [int(cell) for cell in cells[1].split(", ")] == filter_.positions(word)
    memory = bytes(memoryview(filter_))
    assert list_set_bits(page) == [i for i in range(bits) if memory[i >> 3] >> (i & 7) & 1]
    probed = page.locator(".bit.probed").count()
    assert probed == len(set(filter_.positions(asked)))
    assert ("probably" in page.locator(".answer").inner_text()) == (asked in filter_)


def test_the_bits_of_a_false_positive_are_attributed_to_the_words_that_set_them(
    page: Page, address: str
) -> None:
    show(page, address, "words", words="ada grace edsger", ask="", m=40, k=3, seed=5)
    page.get_by_role("button", name="Find a false positive").click()
    page.wait_for_selector(".answer.wrong")
    asked = page.get_by_label("Look up").input_value()
    filter_ = fullbloom.BloomFilter.with_shape(40, 3, layout="classic", seed=5)
    filter_.update(["ada", "grace", "edsger"])
    assert asked in filter_
    for line in page.locator(".owners li").all_inner_texts():
        bit, owners = re.fullmatch(r"bit (\d+) was set by (.+)", line.strip()).groups()  # type: ignore[union-attr]
        assert int(bit) in filter_.positions(asked)
        for owner in owners.split(" and "):
            assert int(bit) in filter_.positions(owner.strip())


def test_clearing_the_bits_of_a_word_loses_another(page: Page, address: str) -> None:
    show(page, address, "words")
    page.get_by_role("radio", name="Remove one").check()
    page.wait_for_selector(".answer.wrong")
    assert "dog" in page.locator(".answer").inner_text()
    seed = int(re.search(r"seed=(\d+)", wait_for_hash(page, "seed="))[1])  # type: ignore[index]
    filter_ = fullbloom.BloomFilter.with_shape(32, 3, layout="classic", seed=seed)
    assert set(filter_.positions("cat")) & set(filter_.positions("dog"))


@pytest.mark.parametrize(("view", "asked", "answer"), [("fruit", "grape", "probably"), ("figure", "w", "no")])
def test_manual_examples_are_labelled_as_toys(
    page: Page, address: str, view: str, asked: str, answer: str
) -> None:
    show(page, address, "words", view=view)
    assert "A toy" in page.locator(".toy").inner_text()
    page.get_by_role("radio", name=asked, exact=True).first.check()
    assert f"{asked}: {answer}" in page.locator(".answer").inner_text()


@pytest.mark.parametrize(("bits", "hashes"), [(6, 4), (10, 7), (8.5, 1)])
def test_theoretical_and_measured_rates_match_python(
    page: Page, address: str, bits: float, hashes: int
) -> None:
    show(page, address, "rate", bits=bits, k=hashes)
    want = theory.classic_fpr(10_000, round(bits * 10_000), hashes)
    assert parse_rate(read_fact(page, "theory")) == pytest.approx(want, rel=0.01)
    page.wait_for_function(
        "() => Number(document.querySelector('[data-fact^=absent]').innerText.replaceAll(',', '')) > 2e5"
    )
    trials, measured = (
        parse_int(read_fact(page, "absent keys looked up")),
        parse_rate(read_fact(page, "measured")),
    )
    # Five standard errors of the trials around the rate of this filter, whose fill Python computes.
    filter_ = fullbloom.BloomFilter.with_shape(round(bits * 10_000), hashes, layout="classic")
    filter_.update(range(10_000))
    own = filter_.fill**hashes
    print(f"{want=} {own=} {measured=} {trials=}")
    assert abs(measured - own) < 5 * (own / trials) ** 0.5 + 0.006 * own


def test_blocked_rates_match_theory(page: Page, address: str) -> None:
    show(page, address, "blocked", bits=14, k=8)
    bits = 512 * round(14 * 10_000 / 512)
    assert parse_rate(read_fact(page, "blocked, theory")) == pytest.approx(
        theory.blocked_fpr(10_000, bits, 8), rel=0.01
    )
    assert parse_rate(read_fact(page, "classic, theory")) == pytest.approx(
        theory.classic_fpr(10_000, bits, 8), rel=0.01
    )


def test_curves_match_theory(page: Page, address: str) -> None:
    show(page, address, "curves", n=6, m=7)
    best = theory.num_hashes(10**7, 10**6)
    assert parse_int(read_fact(page, "best k")) == best
    assert parse_rate(read_fact(page, "theory")) == pytest.approx(
        theory.classic_fpr(10**6, 10**7, best), rel=0.01
    )


def test_fill_equals_pythons(page: Page, address: str) -> None:
    show(page, address, "fill", m=1024, k=5, n=142)
    filter_ = fullbloom.BloomFilter.with_shape(1024, 5, layout="classic")
    filter_.update(range(142))
    assert parse_rate(read_fact(page, "fill")) == pytest.approx(filter_.fill, rel=0.005)


def test_counters_equal_pythons(page: Page, address: str) -> None:
    show(page, address, "counting", words="cat dog bird dog", removed="cat", ask="dog", n=6)
    filter_ = fullbloom.CountingBloomFilter(6, 0.05, layout="classic")
    filter_.update(["cat", "dog", "bird", "dog"])
    filter_.remove("cat")
    shown = [int(cell) for cell in page.locator(".cells span").all_inner_texts()]
    want = [0] * filter_.num_counters
    for word, times in (("dog", 2), ("bird", 1)):
        for position in filter_.positions(word):
            want[position] += times
    assert shown == want
    page.get_by_role("button", name="Remove dog").click()
    page.get_by_role("button", name="Remove dog").click()
    page.wait_for_selector(".answer.no")


def test_stages_of_a_scalable_filter_equal_pythons(page: Page, address: str) -> None:
    show(page, address, "growth", n=6000)
    filter_ = fullbloom.ScalableBloomFilter(500, 0.01, layout="classic")
    filter_.update(range(6000))
    assert parse_int(read_fact(page, "stages")) == filter_.stages == page.locator(".stages li").count()
    assert parse_rate(read_fact(page, "rate now")) == pytest.approx(filter_.fpr(), rel=0.01)


@pytest.mark.parametrize("kind", ["rolling", "aging"])
def test_windows_remember_the_same_keys_as_python(page: Page, address: str, kind: str) -> None:
    show(page, address, "window", n=137, window=30, kind=kind)
    visitors = [f"visitor-{i + 1}" for i in range(137)]
    filter_: Any = (
        fullbloom.RollingBloomFilter(30, 0.01, generations=4)
        if kind == "rolling"
        else fullbloom.AgingBloomFilter(30, 0.01)
    )
    filter_.update(visitors)
    shown = page.locator(".visitors span").evaluate_all(
        "all => all.map(one => one.classList.contains('set'))"
    )
    assert shown == filter_.contains_many(visitors)


def test_cuckoo_quotient_and_golomb_tables_equal_pythons(page: Page, address: str) -> None:
    show(page, address, "cuckoo", n=22, slots="4")
    cuckoo = fullbloom.CuckooFilter(24, 0.05)
    cuckoo.update(f"nest-{i + 1}" for i in range(22))
    assert read_fact(page, "slots taken") == f"22 of {4 * cuckoo.num_buckets}"
    assert parse_rate(read_fact(page, "rate now")) == pytest.approx(cuckoo.fpr(), rel=0.01)
    show(page, address, "quotient", n=40)
    quotient = fullbloom.QuotientFilter(58, 0.05)
    quotient.update(f"shelf-{i + 1}" for i in range(40))
    assert read_fact(page, "slots taken") == f"{quotient.used_slots} of {quotient.num_slots}"
    show(page, address, "golomb", n=30, fpr="0.002")
    golomb = fullbloom.GolombSet.build([f"leak-{i + 1}" for i in range(30)], 0.002)
    assert parse_int(read_fact(page, "bits of all codes")) == golomb.code_bits
    gaps = [int(gap.removeprefix("+")) for gap in page.locator(".code small").all_inner_texts()]
    values = list(golomb.values())
    assert [sum(gaps[: i + 1]) for i in range(len(gaps))] == values


def test_a_full_bucket_relocates_fingerprints(page: Page, address: str) -> None:
    show(page, address, "cuckoo")
    page.get_by_role("button", name="Add until one is pushed out").click()
    page.wait_for_selector(".moves li:nth-child(2), .moves li:has-text('walk')")


def test_a_cascade_makes_no_mistake_and_has_pythons_size(page: Page, address: str) -> None:
    show(page, address, "cascade", revoked=200, times=15, ask=1)
    names = [f"certificate {i}" for i in range(3200)]
    cascade = fullbloom.FilterCascade.build(names[:200], names[200:])
    assert read_fact(page, "mistakes among all of them") == "0"
    assert page.locator(".levels li").count() == cascade.num_levels
    assert read_fact(page, "bits per revoked one") == f"{cascade.num_bits / 200:.2f}"
    page.get_by_role("button", name="A good one that level 1 takes").click()
    page.wait_for_selector(".levels li.takes:first-child")
    assert " is good: " in page.locator(".answer").inner_text()


def test_no_duplicate_between_machines_is_missed(page: Page, address: str) -> None:
    show(page, address, "duplicates", own=500, shared=40, fpr="0.1")
    assert parse_int(read_fact(page, "real duplicates")) == 80
    assert parse_int(read_fact(page, "candidate duplicates")) >= 80
    shown = read_fact(page, "keys checked in vain")
    assert parse_rate(shown.split(", ", 1)[1]) < 0.2
