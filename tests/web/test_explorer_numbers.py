"""Every number that a scene of the explorer shows is Python's: of the same filters, or of its theory."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from web.explorer_page import fact, rate, show, wait_for_hash, whole

import fullbloom
from fullbloom import theory
from fullbloom.compose.networked import find_duplicates, run_local

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytest_plugins = ["web.explorer_page"]

#: Absent keys of a measurement begin here.
ABSENT = 2**40
#: How far a rate of three digits may be from the number that it shows.
DIGITS = 0.006


def nearly(number: float) -> Any:
    """A number as the page shows it."""
    return pytest.approx(number, rel=DIGITS)


def size_of(text: str) -> float:
    """Bytes as the page writes them."""
    number, unit = text.split(" ")
    return float(number.replace(",", "")) * {"byte": 1, "bytes": 1, "kB": 1e3, "MB": 1e6}[unit]


def show_toy(page: Page, address: str, view: str, asked: str, gone: str = "nobody") -> str:
    """Ask an example by hand for a key, the bits of another cleared; return the answer."""
    show(page, address, "words", view=view)
    page.get_by_role("group", name="Ask for").get_by_role("radio", name=asked, exact=True).check()
    page.get_by_role("group", name="Clear the bits of").get_by_role("radio", name=gone, exact=True).check()
    return page.locator(".answer").inner_text()


def set_bits(page: Page) -> list[int]:
    """The bits that a figure shows as set."""
    return page.locator(".bit").evaluate_all(
        "found => found.flatMap((one, i) => one.classList.contains('set') ? [i] : [])"
    )


def test_the_pets_in_8_bits_show_why_removal_breaks_a_filter(page: Page, address: str) -> None:
    assert "cat: probably, and it was added" in show_toy(page, address, "pets", "cat")
    assert set_bits(page) == [1, 4, 6]
    assert page.locator(".bit").count() == 8
    assert page.locator(".bit.probed").count() == 2
    # Bit 1 belongs to both.
    answer = show_toy(page, address, "pets", "dog", gone="cat")
    assert set_bits(page) == [6]
    assert "dog: no, because bit 1 is 0" in answer
    assert "clearing the bits of one key broke another" in answer
    assert "bird: probably, yet it was never added" in show_toy(page, address, "pets", "bird")
    assert "cow: no, because bit 2 is 0" in show_toy(page, address, "pets", "cow")


def test_the_fruit_in_10_bits_and_the_figure_in_18(page: Page, address: str) -> None:
    assert "grape: probably, yet it was never added" in show_toy(page, address, "fruit", "grape")
    assert set_bits(page) == [1, 2, 4, 7, 9]
    assert "melon: no, because bit 3 is 0" in show_toy(page, address, "fruit", "melon")
    assert "banana: no, because bit 4 is 0" in show_toy(page, address, "fruit", "banana", gone="apple")
    assert "w: no, because bit 15 is 0" in show_toy(page, address, "figure", "w")
    assert set_bits(page) == [1, 3, 4, 5, 11, 13, 16]


def read_measurement(page: Page, names: dict[str, str]) -> dict[str, str]:
    """Facts of one moment."""
    script = """names => Object.fromEntries(Object.entries(names).map(
        ([key, name]) => [key, document.querySelector(`[data-fact="${name}"]`).innerText]))"""
    found: dict[str, str] = page.evaluate(script, names)
    return found


def measure(layout: str, bits: int, hashes: int, items: int, trials: int) -> float:
    """The share of absent keys that Python's filter of this shape reports as present."""
    filter_ = fullbloom.BloomFilter.with_shape(bits, hashes, layout=layout)
    filter_.update(range(items))
    return sum(filter_.contains_many(range(ABSENT, ABSENT + trials))) / trials


@pytest.mark.parametrize(("bits", "hashes"), [(6, 4), (10, 7)])
def test_a_live_measurement_has_asked_what_python_asks(
    page: Page, address: str, bits: int, hashes: int
) -> None:
    show(page, address, "rate", bits=bits, k=hashes)
    enough = "() => Number(document.querySelector('[data-fact^=absent]').innerText.replaceAll(',', '')) > 1e5"
    page.wait_for_function(enough)
    found = read_measurement(page, {"trials": "absent keys asked", "rate": "measured"})
    trials = whole(found["trials"])
    want = measure("classic", 10_000 * bits, hashes, 10_000, trials)
    print(f"{trials} keys: {found['rate']}, Python {want}")
    assert rate(found["rate"]) == nearly(want)
    best = theory.num_hashes(10_000 * bits, 10_000)
    shown = fact(page, "best k here").split(", ")
    assert (int(shown[0]), rate(shown[1])) == (
        best,
        nearly(theory.classic_fpr(10_000, 10_000 * bits, best)),
    )


def test_a_hundred_thousand_absent_keys_are_asked_a_second(page: Page, address: str) -> None:
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
    print(f"absent keys a second: {[round(pace) for pace in paces]}")
    assert 80_000 <= max(paces) <= 120_000


def test_blocked_and_classic_are_measured_as_python_measures_them(page: Page, address: str) -> None:
    bits, hashes = 512 * round(10 * 10_000 / 512), 8
    show(page, address, "blocked", bits=10, k=hashes)
    page.set_default_timeout(60_000)
    page.wait_for_function(
        "() => document.querySelector('[data-fact=\"absent keys asked\"]').innerText === '2,000,000'"
    )
    for layout in ("classic", "blocked"):
        want = measure(layout, bits, hashes, 10_000, 2_000_000)
        print(f"{layout}: {fact(page, f'{layout}, measured')}, Python {want}")
        assert rate(fact(page, f"{layout}, measured")) == nearly(want)
    assert rate(fact(page, "blocked, measured")) > 1.2 * rate(fact(page, "classic, measured"))
    assert rate(fact(page, "blocked, theory")) == nearly(theory.blocked_fpr(10_000, bits, hashes))


@pytest.mark.parametrize(("n", "m"), [(3.5, 5), (5.8, 7)])
def test_the_point_of_the_curves_is_measured_as_python_measures_it(
    page: Page, address: str, n: float, m: int
) -> None:
    show(page, address, "curves", n=n, m=m)
    items, bits = round(10**n), 10**m
    best = theory.num_hashes(bits, items)
    assert whole(fact(page, "best k")) == best
    assert rate(fact(page, "theory")) == pytest.approx(theory.classic_fpr(items, bits, best), rel=0.03)
    assert float(fact(page, "bits per key").replace(",", "")) == nearly(bits / items)
    page.set_default_timeout(120_000)
    last, waited = "", ""
    while last != waited or not last.endswith(("%", "⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹")):
        last = waited
        page.wait_for_timeout(3000)
        waited = fact(page, "measured")
    want = measure("classic", bits, best, items, 2_000_000)
    print(f"{items} keys in {bits} bits: {waited}, Python {want}")
    assert rate(waited) == (nearly(want) if want > 0 else 0)


@pytest.mark.parametrize(("bits", "hashes", "items"), [(1024, 5, 142), (4096, 3, 2000), (256, 14, 1)])
def test_fill_and_its_rate_are_pythons(page: Page, address: str, bits: int, hashes: int, items: int) -> None:
    show(page, address, "fill", m=bits, k=hashes, n=items)
    filter_ = fullbloom.BloomFilter.with_shape(bits, hashes, layout="classic")
    filter_.update(range(items))
    assert rate(fact(page, "fill")) == nearly(filter_.fill)
    assert rate(fact(page, "rate now")) == nearly(theory.classic_fpr(items, bits, hashes))
    assert float(fact(page, "bits per key").replace(",", "")) == nearly(bits / items)
    assert whole(fact(page, "best k for this load")) == max(1, round(bits / items * math.log(2)))


def test_the_facts_of_counting_are_pythons(page: Page, address: str) -> None:
    show(page, address, "counting", words="cat dog bird dog", removed="cat bird fish", ask="dog", n=5)
    filter_ = fullbloom.CountingBloomFilter(5, 0.05, layout="classic")
    filter_.update(["cat", "dog", "bird", "dog"])
    for word in ("cat", "bird"):
        filter_.remove(word)
    assert whole(fact(page, "keys in it")) == filter_.num_added
    assert whole(fact(page, "counters")) == filter_.num_counters
    assert whole(fact(page, "k")) == filter_.num_hashes
    assert rate(fact(page, "rate now")) == nearly(filter_.fpr())
    answer = page.locator(".answer").inner_text()
    shown = re.search(r"counters \(([\d, ]+)\) is (\d+)", answer)
    assert shown
    assert [int(cell) for cell in shown[1].split(", ")] == filter_.positions("dog")
    assert int(shown[2]) == filter_.count("dog") == 2


@pytest.mark.parametrize(("items", "growth", "fpr"), [(0, 2, 0.01), (6000, 2, 0.01), (20_000, 4, 0.001)])
def test_stages_their_sizes_and_rates_are_pythons(
    page: Page, address: str, items: int, growth: int, fpr: float
) -> None:
    show(page, address, "growth", n=items, growth=growth, fpr=fpr)
    filter_ = fullbloom.ScalableBloomFilter(500, fpr, growth=growth, layout="classic")
    filter_.update(range(items))
    assert whole(fact(page, "stages")) == filter_.stages
    assert rate(fact(page, "rate now")) == (nearly(filter_.fpr()) if items else 0)
    assert rate(fact(page, "target")) == nearly(fpr)
    assert size_of(fact(page, "memory")) == nearly(filter_.nbytes)
    captions = page.locator(".stages .caption").all_inner_texts()
    pattern = r"Stage \d+ ([\d,]+) of ([\d,]+) keys, ([\d.]+ \w+), rate (.+)"
    found = [re.fullmatch(pattern, caption.replace("\n", " ").strip()) for caption in captions]
    keys = [whole(one[1]) for one in found if one]
    capacities = [whole(one[2]) for one in found if one]
    targets = [rate(one[4]) for one in found if one]
    assert sum(keys) == filter_.num_added
    assert capacities == [500 * growth**stage for stage in range(filter_.stages)]
    assert targets == [nearly(fpr / 2 ** (stage + 1)) for stage in range(filter_.stages)]


@pytest.mark.parametrize("kind", ["rolling", "aging"])
def test_the_rate_and_the_generations_of_a_window_are_pythons(page: Page, address: str, kind: str) -> None:
    show(page, address, "window", n=137, window=30, kind=kind)
    filter_: Any = (
        fullbloom.RollingBloomFilter(30, 0.01, generations=4)
        if kind == "rolling"
        else fullbloom.AgingBloomFilter(30, 0.01)
    )
    visitors = [f"visitor-{i + 1}" for i in range(137)]
    filter_.update(visitors)
    assert rate(fact(page, "rate now")) == nearly(filter_.fpr())
    remembered = sum(filter_.contains_many(visitors))
    assert fact(page, "remembered of those shown") == f"{remembered} of 137"
    captions = page.locator(".stages .caption").all_inner_texts()
    fills = [rate(re.search(r", ([\d.]+ %) of its bits", caption)[1]) for caption in captions]  # type: ignore[index]
    assert len(fills) == (4 if kind == "rolling" else 2)
    assert sum(fills) / len(fills) == pytest.approx(filter_.fill, rel=0.02)


def nest(items: int, slots: int = 4) -> fullbloom.CuckooFilter:
    """Python's filter with the first keys of the scene."""
    filter_ = fullbloom.CuckooFilter(24, 0.05, bucket_size=slots)
    filter_.update(f"nest-{i + 1}" for i in range(items))
    return filter_


def cells_of(filter_: fullbloom.CuckooFilter) -> list[int]:
    """The fingerprints of all slots, bucket by bucket."""
    return [int(cell) for cell in np.asarray(filter_.bits()).ravel()]


def slots_shown(page: Page) -> list[int]:
    """The fingerprints of all slots; 0 where one is free."""
    return [int(text or "0", 16) for text in page.locator(".bucket span").all_inner_texts()]


@pytest.mark.parametrize("slots", [2, 4])
def test_each_slot_of_the_cuckoo_filter_is_pythons(page: Page, address: str, slots: int) -> None:
    for items in (0, 7, 20):
        show(page, address, "cuckoo", n=items, slots=slots)
        filter_ = nest(items, slots)
        assert slots_shown(page) == cells_of(filter_)
        assert fact(page, "bits of a fingerprint") == str(filter_.fingerprint_bits)
        assert rate(fact(page, "load")) == (nearly(filter_.fill) if items else 0)
        assert rate(fact(page, "rate now")) == (nearly(filter_.fpr()) if items else 0)


def find_kicks(slots: int) -> dict[int, dict[int, tuple[int, int]]]:
    """The slots that adding key number n changes in Python's table, for each n that pushes others out."""
    kicks, before = {}, cells_of(nest(0, slots))
    for items in range(1, 61):
        try:
            after = cells_of(nest(items, slots))
        except fullbloom.FilterFull:
            break
        pairs = enumerate(zip(before, after, strict=True))
        changed = {at: (old, new) for at, (old, new) in pairs if old != new}
        if len(changed) > 1:
            kicks[items] = changed
        before = after
    return kicks


@pytest.mark.parametrize("slots", [2, 4])
def test_each_kick_of_the_cuckoo_filter_is_pythons(page: Page, address: str, slots: int) -> None:
    """What changes in Python's table is what the page says was moved, and where it went."""
    kicks = find_kicks(slots)
    print(f"keys that push others out of buckets of {slots}: {list(kicks)}")
    assert len(kicks) >= 2
    step = re.compile(r"(\w+) was pushed out of bucket (\d+) and went to its other one, (\d+)")
    for items, changed in kicks.items():
        show(page, address, "cuckoo", n=items, slots=slots)
        assert slots_shown(page) == cells_of(nest(items, slots))
        lines = page.locator(".moves li").all_inner_texts()
        if "walk" in lines[0]:  # through one slot twice: the table shows its end only
            continue
        steps = [(int(one[1], 16), int(one[2]), int(one[3])) for one in map(step.match, lines) if one]
        assert len(steps) == len(changed) - 1
        for fingerprint, source, target in steps:
            assert any(old == fingerprint and at // slots == source for at, (old, _) in changed.items())
            assert any(new == fingerprint and at // slots == target for at, (_, new) in changed.items())
    # The button leads from one to the next.
    first, second = list(kicks)[:2]
    show(page, address, "cuckoo", n=first, slots=slots)
    page.get_by_role("button", name="Add until one is pushed out").click()
    wait_for_hash(page, f"n={second}" if second != 38 else "cuckoo")
    assert page.get_by_role("slider", name="Keys added").input_value() == str(second)


def place_runs(fingerprints: list[tuple[int, int]], slots: int) -> dict[int, tuple[int, int]]:
    """Where a quotient filter stores sorted fingerprints: behind the one before, or at their own quotient."""
    free, placed = 0, {}
    for quotient, remainder in fingerprints:
        free = max(free, quotient)
        assert free < slots, "a run goes on at the front: choose fewer keys"
        placed[free] = quotient, remainder
        free += 1
    return placed


@pytest.mark.parametrize("items", [1, 20, 34, 45])
def test_each_run_of_the_quotient_filter_is_where_the_rule_puts_it(
    page: Page, address: str, items: int
) -> None:
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
    assert fact(page, "slots taken") == f"{filter_.used_slots} of {filter_.num_slots}"
    assert fact(page, "pushed on") == str(sum(slot != quotient for slot, (quotient, _) in want.items()))
    assert fact(page, "bits of a remainder") == str(r)
    assert rate(fact(page, "rate now")) == nearly(filter_.fpr())
    page.get_by_label("Ask for").fill("shelf-1")
    value = fullbloom.hash_key("shelf-1") >> (64 - q - r)
    page.wait_for_selector(f".answer:has-text('Its quotient is {value >> r} ')")


def test_codes_of_a_golomb_coded_set_add_up(page: Page, address: str) -> None:
    show(page, address, "golomb", n=30, fpr="0.02", ask="leak-7")
    filter_ = fullbloom.GolombSet.build([f"leak-{i + 1}" for i in range(30)], 0.02)
    codes = page.locator(".code b").all_inner_texts()
    assert sum(map(len, codes)) == filter_.code_bits == whole(fact(page, "bits of all codes"))
    rice = filter_.rice_bits
    values, value = [], -1
    for code in codes:
        zeros = code.index("1")
        value += 1 + (zeros << rice) + int(code[zeros + 1 :] or "0", 2)
        values.append(value)
    assert values == list(filter_.values())
    assert float(fact(page, "bits per key")) == nearly(filter_.code_bits / 30)
    assert rate(fact(page, "rate")) == nearly(len(values) / filter_.universe)
    assert "leak-7: probably" in page.locator(".answer").inner_text()


@pytest.mark.parametrize(("revoked", "times"), [(200, 15), (500, 1)])
def test_a_cascade_has_pythons_levels_and_answers(page: Page, address: str, revoked: int, times: int) -> None:
    show(page, address, "cascade", revoked=revoked, times=times, ask=revoked - 1)
    names = [f"certificate {i}" for i in range(revoked * (times + 1))]
    cascade = fullbloom.FilterCascade.build(names[:revoked], names[revoked:])
    assert whole(fact(page, "certificates")) == len(names)
    assert fact(page, "mistakes among all of them") == "0"
    assert size_of(fact(page, "file")) == nearly(len(cascade.to_bytes()))
    assert float(fact(page, "bits per revoked one")) == nearly(cascade.num_bits / revoked)
    law = theory.cascade_bits(revoked, revoked * times) / revoked
    assert float(fact(page, "theory, bits per revoked one")) == nearly(law)
    captions = page.locator(".levels .caption").all_inner_texts()
    shown = [size_of(re.search(r"ones, ([\d.,]+ \w+), k", caption)[1]) for caption in captions]  # type: ignore[index]
    assert len(shown) == cascade.num_levels
    assert 8 * sum(shown) == pytest.approx(cascade.num_bits, abs=8 * len(shown) + 0.01 * cascade.num_bits)
    for asked in (0, revoked - 1, revoked, len(names) - 1):
        page.get_by_role("slider", name="Certificate").fill(str(asked))
        verdict = "revoked" if cascade.includes(names[asked]) else "good"
        page.wait_for_selector(f".answer:has-text('Certificate {asked:,} is {verdict}:')")


@pytest.mark.parametrize(("own", "shared", "fpr"), [(500, 40, "0.1"), (1000, 50, "0.01"), (300, 0, "0.001")])
def test_duplicates_are_those_of_pythons_exchange(
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
    assert whole(fact(page, "real duplicates")) == len(real) == 2 * shared
    # The values that two machines sent, by Python's hashes and the range of Python's sets.
    universe = fullbloom.GolombSet.build([], float(fpr), capacity=4 * own).universe
    senders: dict[int, set[int]] = {}
    for machine, keys in enumerate(machines):
        for key in keys:
            senders.setdefault(fullbloom.hash_key(key) * universe >> 64, set()).add(machine)
    candidates = {value for value, found in senders.items() if len(found) > 1}
    assert whole(fact(page, "candidate duplicates")) == len(candidates)
    unique = [key for keys in machines for key in keys if key not in real]
    in_vain = sum(fullbloom.hash_key(key) * universe >> 64 in candidates for key in unique)
    assert whole(fact(page, "keys checked in vain").split(", ")[0]) == in_vain
    # One round of the exchange itself returns as many, but for the rounding of its ranges, as by the law.
    returned = sum(sum(report.mask) for report in run(exact=False)) - 4 * shared
    expected = len(unique) * theory.single_shot_fpr(float(fpr), 4)
    print(f"in vain: {in_vain} on the page, {returned} in Python, {expected:.1f} by the law")
    for count in (in_vain, returned):
        assert abs(count - expected) <= 5 * math.sqrt(2 * expected) + 2
    # Messages are Golomb-coded sets of Python, bit for bit, and have the length of the law.
    rice = math.floor(math.log2(math.log(2) * 4 / float(fpr)))
    bits = 0
    for machine, keys in enumerate(machines):
        for quarter in range(4):
            part = [key for key in keys if fullbloom.hash_key(key) >> 62 == quarter]
            if quarter != machine:
                options: dict[str, Any] = {"capacity": 4 * own, "rice_bits": rice}
                bits += fullbloom.GolombSet.build(part, float(fpr), **options).code_bits
    assert size_of(fact(page, "sent in all")) == nearly(math.ceil(bits / 8))
    assert float(fact(page, "bits per key")) == pytest.approx(bits / (3 * own), abs=0.06)
    assert bits == pytest.approx(theory.single_shot_bits(4 * own, 4, float(fpr)), rel=0.03)
    assert size_of(fact(page, "as 64-bit hashes")) == nearly(4 * own * 8 * 3 / 4)
    assert rate(fact(page, "saved")) == nearly(1 - bits / 8 / (4 * own * 6))


#: Scene, number of its knob, its values, the value that the knob moves, and pixels to move it.
DRAGS = [
    ("fill", 0, {"m": 1024, "k": 5, "n": 100}, "n", 90),
    ("rate", 0, {"bits": 10, "k": 7}, "bits", 80),
    ("rate", 1, {"bits": 10, "k": 7}, "k", -60),
    ("curves", 0, {"n": 5, "m": 6}, "n", 70),
    ("blocked", 0, {"bits": 10, "k": 8}, "bits", 60),
    ("growth", 0, {"n": 6000}, "n", -150),
]


@pytest.mark.parametrize(("scene", "knob", "values", "name", "distance"), DRAGS)
def test_the_point_of_every_plot_is_dragged(
    page: Page, address: str, scene: str, knob: int, values: dict[str, float], name: str, distance: int
) -> None:
    show(page, address, scene, **values)
    page.wait_for_timeout(300)
    point = page.locator(".knob").nth(knob)
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    assert box
    start = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(start[0] + distance, start[1] + 5, steps=8)
    page.mouse.up()
    page.wait_for_timeout(600)  # the address follows
    found = re.search(rf"[?&]{name}=([\d.]+)", page.evaluate("location.hash"))
    assert found, page.evaluate("location.hash")
    moved = float(found[1])
    assert (moved > values[name]) == (distance > 0)
    now = {**values, name: moved}
    # The point is under the pointer, within a step, and the scene shows its numbers.
    after = point.bounding_box()
    assert after
    step = abs(after["x"] - box["x"]) / abs(moved - values[name])
    assert abs(after["x"] + after["width"] / 2 - start[0] - distance) <= max(2, step)
    if scene == "rate":
        want = theory.classic_fpr(10_000, round(now["bits"] * 10_000), int(now["k"]))
        assert rate(fact(page, "theory")) == nearly(want)
    if scene == "curves":
        items = round(10 ** now["n"])
        assert rate(fact(page, "theory")) == nearly(
            theory.classic_fpr(items, 10**6, theory.num_hashes(10**6, items))
        )
    if scene == "blocked":
        want = theory.blocked_fpr(10_000, 512 * round(now["bits"] * 10_000 / 512), 8)
        assert rate(fact(page, "blocked, theory")) == nearly(want)
    if scene == "growth":
        filter_ = fullbloom.ScalableBloomFilter(500, 0.01, layout="classic")
        filter_.update(range(int(moved)))
        assert rate(fact(page, "rate now")) == nearly(filter_.fpr())
