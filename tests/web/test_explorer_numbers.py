"""Every number that a scene of the explorer shows equals Python's, for the same filter or in theory."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from web.explorer_page import (
    COUNT_TRIALS,
    find_knob,
    parse_int,
    parse_rate,
    read_fact,
    show,
    wait_for_hash,
    wait_for_value,
)

import fullbloom
from fullbloom import theory
from fullbloom.compose.networked import find_duplicates, run_local

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytest_plugins = ["web.explorer_page"]

#: Absent keys of a measurement begin here.
ABSENT = 2**40
#: Relative error of a rate that is rounded to three digits.
DIGITS = 0.006


def match_digits(number: float) -> Any:
    """Return a matcher for a number that the page rounds to three digits."""
    return pytest.approx(number, rel=DIGITS)


def parse_size(text: str) -> float:
    """Convert a size as the page writes it to bytes."""
    number, unit = text.split(" ")
    return float(number.replace(",", "")) * {"byte": 1, "bytes": 1, "kB": 1e3, "MB": 1e6}[unit]


def show_toy(page: Page, address: str, view: str, asked: str, gone: str = "nobody") -> str:
    """Look up a key in a manual example, after clearing the bits of another; return the answer."""
    show(page, address, "words", view=view)
    page.get_by_role("group", name="Look up").get_by_role("radio", name=asked, exact=True).check()
    page.get_by_role("group", name="Clear the bits of").get_by_role("radio", name=gone, exact=True).check()
    return page.locator(".answer").inner_text()


def list_set_bits(page: Page) -> list[int]:
    """Return the positions of the bits that a figure shows as set."""
    return page.locator(".bit").evaluate_all(
        "found => found.flatMap((one, i) => one.classList.contains('set') ? [i] : [])"
    )


def test_the_8_bit_example_shows_why_removal_breaks_a_filter(page: Page, address: str) -> None:
    assert "cat: probably, and it was added" in show_toy(page, address, "pets", "cat")
    assert list_set_bits(page) == [1, 4, 6]
    assert page.locator(".bit").count() == 8
    assert page.locator(".bit.probed").count() == 2
    # Bit 1 belongs to both.
    answer = show_toy(page, address, "pets", "dog", gone="cat")
    assert list_set_bits(page) == [6]
    assert "dog: no, because bit 1 is 0" in answer
    assert "clearing the bits of one key broke another" in answer
    assert "bird: probably, yet it was never added" in show_toy(page, address, "pets", "bird")
    assert "cow: no, because bit 2 is 0" in show_toy(page, address, "pets", "cow")


def test_the_10_and_18_bit_examples_match_their_sources(page: Page, address: str) -> None:
    assert "grape: probably, yet it was never added" in show_toy(page, address, "fruit", "grape")
    assert list_set_bits(page) == [1, 2, 4, 7, 9]
    assert "melon: no, because bit 3 is 0" in show_toy(page, address, "fruit", "melon")
    assert "banana: no, because bit 4 is 0" in show_toy(page, address, "fruit", "banana", gone="apple")
    assert "w: no, because bit 15 is 0" in show_toy(page, address, "figure", "w")
    assert list_set_bits(page) == [1, 3, 4, 5, 11, 13, 16]


def read_measurement(page: Page, names: dict[str, str]) -> dict[str, str]:
    """Return several facts as the page shows them at one moment."""
    script = """names => Object.fromEntries(Object.entries(names).map(
        ([key, name]) => [key, document.querySelector(`[data-fact="${name}"]`).innerText]))"""
    found: dict[str, str] = page.evaluate(script, names)
    return found


def measure(layout: str, bits: int, hashes: int, items: int, trials: int) -> float:
    """Return the share of absent keys that Python's filter of this shape reports as present."""
    filter_ = fullbloom.BloomFilter.with_shape(bits, hashes, layout=layout)
    filter_.update(range(items))
    return sum(filter_.contains_many(range(ABSENT, ABSENT + trials))) / trials


@pytest.mark.parametrize(("bits", "hashes"), [(6, 4), (10, 7)])
def test_a_live_measurement_equals_pythons(page: Page, address: str, bits: int, hashes: int) -> None:
    show(page, address, "rate", bits=bits, k=hashes)
    enough = "() => Number(document.querySelector('[data-fact^=absent]').innerText.replaceAll(',', '')) > 1e5"
    page.wait_for_function(enough)
    found = read_measurement(page, {"trials": "absent keys looked up", "rate": "measured"})
    trials = parse_int(found["trials"])
    want = measure("classic", 10_000 * bits, hashes, 10_000, trials)
    print(f"{trials} keys: {found['rate']}, Python {want}")
    assert parse_rate(found["rate"]) == match_digits(want)
    best = theory.num_hashes(10_000 * bits, 10_000)
    shown = read_fact(page, "best k here").split(", ")
    assert (int(shown[0]), parse_rate(shown[1])) == (
        best,
        match_digits(theory.classic_fpr(10_000, 10_000 * bits, best)),
    )


@pytest.mark.timed
def test_a_measurement_checks_100_000_keys_per_second(page: Page, address: str) -> None:
    show(page, address, "rate")
    page.wait_for_function("() => document.querySelector('[data-fact=measured]').innerText !== '…'")
    clock = """() => [performance.now(),
        Number(document.querySelector('[data-fact^=absent]').innerText.replaceAll(',', ''))]"""
    paces = []
    for _ in range(6):  # a busy machine: the quickest second counts
        (start, before), _, (end, after) = (
            page.evaluate(clock),
            page.wait_for_timeout(1000),
            page.evaluate(clock),
        )
        paces.append(1000 * (after - before) / (end - start))
    print(f"absent keys per second: {[round(pace) for pace in paces]}")
    assert 80_000 <= max(paces) <= 120_000


def test_measured_blocked_and_classic_rates_equal_pythons(page: Page, address: str) -> None:
    bits, hashes = 512 * round(10 * 10_000 / 512), 8
    show(page, address, "blocked", bits=10, k=hashes)
    page.set_default_timeout(60_000)
    page.wait_for_function(
        "() => document.querySelector('[data-fact=\"absent keys looked up\"]').innerText === '2,000,000'"
    )
    for layout in ("classic", "blocked"):
        want = measure(layout, bits, hashes, 10_000, 2_000_000)
        print(f"{layout}: {read_fact(page, f'{layout}, measured')}, Python {want}")
        assert parse_rate(read_fact(page, f"{layout}, measured")) == match_digits(want)
    assert parse_rate(read_fact(page, "blocked, measured")) > 1.2 * parse_rate(
        read_fact(page, "classic, measured")
    )
    assert parse_rate(read_fact(page, "blocked, theory")) == match_digits(
        theory.blocked_fpr(10_000, bits, hashes)
    )


@pytest.mark.parametrize(("n", "m"), [(3.5, 5), (5.8, 7)])
def test_the_measured_point_of_the_curves_equals_pythons(page: Page, address: str, n: float, m: int) -> None:
    page.add_init_script(COUNT_TRIALS)
    show(page, address, "curves", n=n, m=m)
    items, bits = round(10**n), 10**m
    best = theory.num_hashes(bits, items)
    assert parse_int(read_fact(page, "best k")) == best
    assert parse_rate(read_fact(page, "theory")) == pytest.approx(
        theory.classic_fpr(items, bits, best), rel=0.03
    )
    assert float(read_fact(page, "bits per key").replace(",", "")) == match_digits(bits / items)
    page.wait_for_function("() => window.trials === 2_000_000", timeout=120_000)
    measured, want = read_fact(page, "measured"), measure("classic", bits, best, items, 2_000_000)
    print(f"{items} keys in {bits} bits: {measured}, Python {want}")
    assert parse_rate(measured) == (match_digits(want) if want > 0 else 0)


@pytest.mark.parametrize(("bits", "hashes", "items"), [(1024, 5, 142), (4096, 3, 2000), (256, 14, 1)])
def test_fill_and_rate_equal_pythons(page: Page, address: str, bits: int, hashes: int, items: int) -> None:
    show(page, address, "fill", m=bits, k=hashes, n=items)
    filter_ = fullbloom.BloomFilter.with_shape(bits, hashes, layout="classic")
    filter_.update(range(items))
    assert parse_rate(read_fact(page, "fill")) == match_digits(filter_.fill)
    assert parse_rate(read_fact(page, "rate now")) == match_digits(theory.classic_fpr(items, bits, hashes))
    assert float(read_fact(page, "bits per key").replace(",", "")) == match_digits(bits / items)
    assert parse_int(read_fact(page, "best k for this load")) == max(1, round(bits / items * math.log(2)))


def test_counting_facts_equal_pythons(page: Page, address: str) -> None:
    show(page, address, "counting", words="cat dog bird dog", removed="cat bird fish", ask="dog", n=5)
    filter_ = fullbloom.CountingBloomFilter(5, 0.05, layout="classic")
    filter_.update(["cat", "dog", "bird", "dog"])
    for word in ("cat", "bird"):
        filter_.remove(word)
    assert parse_int(read_fact(page, "keys in it")) == filter_.num_added
    assert parse_int(read_fact(page, "counters")) == filter_.num_counters
    assert parse_int(read_fact(page, "k")) == filter_.num_hashes
    assert parse_rate(read_fact(page, "rate now")) == match_digits(filter_.fpr())
    answer = page.locator(".answer").inner_text()
    shown = re.search(r"counters \(([\d, ]+)\) is (\d+)", answer)
    assert shown
    assert [int(cell) for cell in shown[1].split(", ")] == filter_.positions("dog")
    assert int(shown[2]) == filter_.count("dog") == 2


@pytest.mark.parametrize(("items", "growth", "fpr"), [(0, 2, 0.01), (6000, 2, 0.01), (20_000, 4, 0.001)])
def test_stage_sizes_and_rates_equal_pythons(
    page: Page, address: str, items: int, growth: int, fpr: float
) -> None:
    show(page, address, "growth", n=items, growth=growth, fpr=fpr)
    filter_ = fullbloom.ScalableBloomFilter(500, fpr, growth=growth, layout="classic")
    filter_.update(range(items))
    assert parse_int(read_fact(page, "stages")) == filter_.stages
    assert parse_rate(read_fact(page, "rate now")) == (match_digits(filter_.fpr()) if items else 0)
    assert parse_rate(read_fact(page, "target")) == match_digits(fpr)
    assert parse_size(read_fact(page, "memory")) == match_digits(filter_.nbytes)
    captions = page.locator(".stages .caption").all_inner_texts()
    pattern = r"Stage \d+ ([\d,]+) of ([\d,]+) keys, ([\d.]+ \w+), rate (.+)"
    found = [re.fullmatch(pattern, caption.replace("\n", " ").strip()) for caption in captions]
    keys = [parse_int(one[1]) for one in found if one]
    capacities = [parse_int(one[2]) for one in found if one]
    targets = [parse_rate(one[4]) for one in found if one]
    assert sum(keys) == filter_.num_added
    assert capacities == [500 * growth**stage for stage in range(filter_.stages)]
    assert targets == [match_digits(fpr / 2 ** (stage + 1)) for stage in range(filter_.stages)]


@pytest.mark.parametrize("kind", ["rolling", "aging"])
def test_window_rate_and_generations_equal_pythons(page: Page, address: str, kind: str) -> None:
    show(page, address, "window", n=137, window=30, kind=kind)
    filter_: Any = (
        fullbloom.RollingBloomFilter(30, 0.01, generations=4)
        if kind == "rolling"
        else fullbloom.AgingBloomFilter(30, 0.01)
    )
    visitors = [f"visitor-{i + 1}" for i in range(137)]
    filter_.update(visitors)
    assert parse_rate(read_fact(page, "rate now")) == match_digits(filter_.fpr())
    remembered = sum(filter_.contains_many(visitors))
    assert read_fact(page, "remembered of those shown") == f"{remembered} of 137"
    captions = page.locator(".stages .caption").all_inner_texts()
    fills = [parse_rate(re.search(r", ([\d.]+ %) of its bits", caption)[1]) for caption in captions]  # type: ignore[index]
    assert len(fills) == (4 if kind == "rolling" else 2)
    assert sum(fills) / len(fills) == pytest.approx(filter_.fill, rel=0.02)


def build_nest(items: int, slots: int = 4) -> fullbloom.CuckooFilter:
    """Return Python's filter with the first keys of the scene."""
    filter_ = fullbloom.CuckooFilter(24, 0.05, bucket_size=slots)
    filter_.update(f"nest-{i + 1}" for i in range(items))
    return filter_


def list_cells(filter_: fullbloom.CuckooFilter) -> list[int]:
    """Return the fingerprints of all slots, bucket by bucket."""
    return [int(cell) for cell in np.asarray(filter_.bits()).ravel()]


def list_slots(page: Page) -> list[int]:
    """Return the fingerprints that the page shows in all slots; 0 for a free slot."""
    return [int(text or "0", 16) for text in page.locator(".bucket span").all_inner_texts()]


@pytest.mark.parametrize("slots", [2, 4])
def test_each_cuckoo_slot_equals_pythons(page: Page, address: str, slots: int) -> None:
    for items in (0, 7, 20):
        show(page, address, "cuckoo", n=items, slots=slots)
        filter_ = build_nest(items, slots)
        assert list_slots(page) == list_cells(filter_)
        assert read_fact(page, "bits of a fingerprint") == str(filter_.fingerprint_bits)
        assert parse_rate(read_fact(page, "load")) == (match_digits(filter_.fill) if items else 0)
        assert parse_rate(read_fact(page, "rate now")) == (match_digits(filter_.fpr()) if items else 0)


def find_kicks(slots: int) -> dict[int, dict[int, tuple[int, int]]]:
    """Return the slots of Python's table that adding key n changes, for each n that relocates others."""
    kicks, before = {}, list_cells(build_nest(0, slots))
    for items in range(1, 61):
        try:
            after = list_cells(build_nest(items, slots))
        except fullbloom.FilterFull:
            break
        pairs = enumerate(zip(before, after, strict=True))
        changed = {at: (old, new) for at, (old, new) in pairs if old != new}
        if len(changed) > 1:
            kicks[items] = changed
        before = after
    return kicks


@pytest.mark.parametrize("slots", [2, 4])
def test_each_cuckoo_relocation_equals_pythons(page: Page, address: str, slots: int) -> None:
    """The page lists the fingerprints that moved in Python's table, with source and target."""
    kicks = find_kicks(slots)
    print(f"keys that push others out of buckets of {slots}: {list(kicks)}")
    assert len(kicks) >= 2
    step = re.compile(r"(\w+) was pushed out of bucket (\d+) and went to its other one, (\d+)")
    for items, changed in kicks.items():
        show(page, address, "cuckoo", n=items, slots=slots)
        assert list_slots(page) == list_cells(build_nest(items, slots))
        lines = page.locator(".moves li").all_inner_texts()
        if "walk" in lines[0]:  # a walk through one slot twice: the table shows only its end
            continue
        steps = [(int(one[1], 16), int(one[2]), int(one[3])) for one in map(step.match, lines) if one]
        assert len(steps) == len(changed) - 1
        for fingerprint, source, target in steps:
            assert any(old == fingerprint and at // slots == source for at, (old, _) in changed.items())
            assert any(new == fingerprint and at // slots == target for at, (_, new) in changed.items())
    # The button adds keys until the next relocation.
    first, second = list(kicks)[:2]
    show(page, address, "cuckoo", n=first, slots=slots)
    page.get_by_role("button", name="Add until one is pushed out").click()
    wait_for_hash(page, f"n={second}" if second != 38 else "cuckoo")
    assert page.get_by_role("slider", name="Keys added").input_value() == str(second)


def place_runs(fingerprints: list[tuple[int, int]], slots: int) -> dict[int, tuple[int, int]]:
    """Return the slot of each sorted fingerprint: after the previous one, or at its own quotient."""
    free, placed = 0, {}
    for quotient, remainder in fingerprints:
        free = max(free, quotient)
        assert free < slots, "a run wraps around: choose fewer keys"
        placed[free] = quotient, remainder
        free += 1
    return placed


@pytest.mark.parametrize("items", [1, 20, 34, 45])
def test_quotient_filter_runs_follow_the_placement_rule(page: Page, address: str, items: int) -> None:
    show(page, address, "quotient", n=items)
    filter_ = fullbloom.QuotientFilter(58, 0.05)
    keys = [f"shelf-{i + 1}" for i in range(items)]
    filter_.update(keys)
    q, r = filter_.quotient_bits, filter_.remainder_bits
    hashes = [fullbloom.hash_key(key) >> (64 - q - r) for key in keys]
    want = place_runs(sorted((value >> r, value & (2**r - 1)) for value in hashes), filter_.num_slots)
    shown = {}
    for slot, text in enumerate(page.locator(".slots > span").all_inner_texts()):
        parts = re.fullmatch(r"(\d+)(•?)\s*([01]*)\s*(?:of (\d+))?", text.replace("\n", " ").strip())
        assert parts, text
        assert int(parts[1]) == slot
        assert (parts[2] == "•") == (slot in {quotient for quotient, _ in want.values()})
        if parts[3]:
            shown[slot] = int(parts[4] or slot), int(parts[3], 2)
    assert shown == want
    assert read_fact(page, "slots taken") == f"{filter_.used_slots} of {filter_.num_slots}"
    assert read_fact(page, "pushed on") == str(sum(slot != quotient for slot, (quotient, _) in want.items()))
    assert read_fact(page, "bits of a remainder") == str(r)
    assert parse_rate(read_fact(page, "rate now")) == match_digits(filter_.fpr())
    page.get_by_label("Look up").fill("shelf-1")
    value = fullbloom.hash_key("shelf-1") >> (64 - q - r)
    page.wait_for_selector(f".answer:has-text('Its quotient is {value >> r} ')")


def test_golomb_codes_decode_to_pythons_values(page: Page, address: str) -> None:
    show(page, address, "golomb", n=30, fpr="0.02", ask="leak-7")
    filter_ = fullbloom.GolombSet.build([f"leak-{i + 1}" for i in range(30)], 0.02)
    codes = page.locator(".code b").all_inner_texts()
    assert sum(map(len, codes)) == filter_.code_bits == parse_int(read_fact(page, "bits of all codes"))
    rice = filter_.rice_bits
    values, value = [], -1
    for code in codes:
        zeros = code.index("1")
        value += 1 + (zeros << rice) + int(code[zeros + 1 :] or "0", 2)
        values.append(value)
    assert values == list(filter_.values())
    assert float(read_fact(page, "bits per key")) == match_digits(filter_.code_bits / 30)
    assert parse_rate(read_fact(page, "rate")) == match_digits(len(values) / filter_.universe)
    assert "leak-7: probably" in page.locator(".answer").inner_text()


@pytest.mark.parametrize(("revoked", "times"), [(200, 15), (500, 1)])
def test_cascade_levels_and_answers_equal_pythons(page: Page, address: str, revoked: int, times: int) -> None:
    show(page, address, "cascade", revoked=revoked, times=times, ask=revoked - 1)
    names = [f"certificate {i}" for i in range(revoked * (times + 1))]
    cascade = fullbloom.FilterCascade.build(names[:revoked], names[revoked:])
    assert parse_int(read_fact(page, "certificates")) == len(names)
    assert read_fact(page, "mistakes among all of them") == "0"
    assert parse_size(read_fact(page, "file")) == match_digits(len(cascade.to_bytes()))
    assert float(read_fact(page, "bits per revoked one")) == match_digits(cascade.num_bits / revoked)
    law = theory.cascade_bits(revoked, revoked * times) / revoked
    assert float(read_fact(page, "theory, bits per revoked one")) == match_digits(law)
    captions = page.locator(".levels .caption").all_inner_texts()
    shown = [parse_size(re.search(r"ones, ([\d.,]+ \w+), k", caption)[1]) for caption in captions]  # type: ignore[index]
    assert len(shown) == cascade.num_levels
    assert 8 * sum(shown) == pytest.approx(cascade.num_bits, abs=8 * len(shown) + 0.01 * cascade.num_bits)
    for asked in (0, revoked - 1, revoked, len(names) - 1):
        page.get_by_role("slider", name="Certificate").fill(str(asked))
        verdict = "revoked" if cascade.includes(names[asked]) else "good"
        page.wait_for_selector(f".answer:has-text('Certificate {asked:,} is {verdict}:')")


@pytest.mark.parametrize(("own", "shared", "fpr"), [(500, 40, "0.1"), (1000, 50, "0.01"), (300, 0, "0.001")])
def test_duplicates_equal_those_of_the_python_protocol(
    page: Page, address: str, own: int, shared: int, fpr: str
) -> None:
    show(page, address, "duplicates", own=own, shared=shared, fpr=fpr)
    machines = [
        [f"order-{machine}-{i}" for i in range(own - shared)]
        + [f"order-both-{machine // 2}-{i}" for i in range(shared)]
        for machine in range(4)
    ]

    def run(*, exact: bool) -> list[Any]:
        return run_local(
            4, lambda one: find_duplicates(one, machines[one.rank], fprs=(float(fpr),), exact=exact)
        )

    pairs = list(zip(machines, run(exact=True), strict=True))
    real = {key for keys, report in pairs for key, yes in zip(keys, report.mask, strict=True) if yes}
    assert parse_int(read_fact(page, "real duplicates")) == len(real) == 2 * shared
    # The values that two machines sent, computed with Python's hashes and the range of Python's sets.
    universe = fullbloom.GolombSet.build([], float(fpr), capacity=4 * own).universe
    senders: dict[int, set[int]] = {}
    for machine, keys in enumerate(machines):
        for key in keys:
            senders.setdefault(fullbloom.hash_key(key) * universe >> 64, set()).add(machine)
    candidates = {value for value, found in senders.items() if len(found) > 1}
    assert parse_int(read_fact(page, "candidate duplicates")) == len(candidates)
    unique = [key for keys in machines for key in keys if key not in real]
    in_vain = sum(fullbloom.hash_key(key) * universe >> 64 in candidates for key in unique)
    assert parse_int(read_fact(page, "keys checked in vain").split(", ")[0]) == in_vain
    # One round of the protocol returns as many as theory predicts, except for the rounding of its ranges.
    returned = sum(sum(report.mask) for report in run(exact=False)) - 4 * shared
    expected = len(unique) * theory.single_shot_fpr(float(fpr), 4)
    print(f"in vain: {in_vain} on the page, {returned} in Python, {expected:.1f} in theory")
    for count in (in_vain, returned):
        assert abs(count - expected) <= 5 * math.sqrt(2 * expected) + 2
    # Messages are Golomb-coded sets that equal Python's bit for bit and have the predicted length.
    rice = math.floor(math.log2(math.log(2) * 4 / float(fpr)))
    bits = 0
    for machine, keys in enumerate(machines):
        for quarter in range(4):
            part = [key for key in keys if fullbloom.hash_key(key) >> 62 == quarter]
            if quarter != machine:
                options: dict[str, Any] = {"capacity": 4 * own, "rice_bits": rice}
                bits += fullbloom.GolombSet.build(part, float(fpr), **options).code_bits
    assert parse_size(read_fact(page, "sent in all")) == match_digits(math.ceil(bits / 8))
    assert float(read_fact(page, "bits per key")) == pytest.approx(bits / (3 * own), abs=0.06)
    assert bits == pytest.approx(theory.single_shot_bits(4 * own, 4, float(fpr)), rel=0.03)
    assert parse_size(read_fact(page, "as 64-bit hashes")) == match_digits(4 * own * 8 * 3 / 4)
    assert parse_rate(read_fact(page, "saved")) == match_digits(1 - bits / 8 / (4 * own * 6))


#: Scene, index of the point, initial values, the value that the point changes, and pixels to drag.
DRAGS = [
    ("fill", 0, {"m": 1024, "k": 5, "n": 100}, "n", 90),
    ("rate", 0, {"bits": 10, "k": 7}, "bits", 80),
    ("rate", 1, {"bits": 10, "k": 7}, "k", -60),
    ("curves", 0, {"n": 5, "m": 6}, "n", 70),
    ("blocked", 0, {"bits": 10, "k": 8}, "bits", 60),
    ("growth", 0, {"n": 6000}, "n", -150),
]


@pytest.mark.parametrize(("scene", "knob", "values", "name", "distance"), DRAGS)
def test_dragging_a_point_updates_every_plot_and_its_numbers(
    page: Page, address: str, scene: str, knob: int, values: dict[str, float], name: str, distance: int
) -> None:
    show(page, address, scene, **values)
    point = find_knob(page, knob)
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    assert box
    start = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(start[0] + distance, start[1] + 5, steps=8)
    page.mouse.up()
    moved = wait_for_value(page, point, name)
    assert (moved > values[name]) == (distance > 0)
    now = {**values, name: moved}
    # The point is within one step of the pointer, and the scene shows its numbers.
    after = point.bounding_box()
    assert after
    place = point.evaluate("one => one.style.transform")
    point.press("ArrowRight")
    page.wait_for_function(
        "([at, place]) => document.querySelectorAll('.knob')[at].style.transform !== place", arg=[knob, place]
    )
    stepped = point.bounding_box()
    assert stepped
    point.press("ArrowLeft")
    step = abs(stepped["x"] - after["x"])
    print(f"one step is {step:.1f} pixels")
    assert abs(after["x"] + after["width"] / 2 - start[0] - distance) <= step / 2 + 2
    if scene == "rate":
        want = theory.classic_fpr(10_000, round(now["bits"] * 10_000), int(now["k"]))
        assert parse_rate(read_fact(page, "theory")) == match_digits(want)
    if scene == "curves":
        items = round(10 ** now["n"])
        assert parse_rate(read_fact(page, "theory")) == match_digits(
            theory.classic_fpr(items, 10**6, theory.num_hashes(10**6, items))
        )
    if scene == "blocked":
        want = theory.blocked_fpr(10_000, 512 * round(now["bits"] * 10_000 / 512), 8)
        assert parse_rate(read_fact(page, "blocked, theory")) == match_digits(want)
    if scene == "growth":
        filter_ = fullbloom.ScalableBloomFilter(500, 0.01, layout="classic")
        filter_.update(range(int(moved)))
        assert parse_rate(read_fact(page, "rate now")) == match_digits(filter_.fpr())
