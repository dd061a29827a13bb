"""A growing filter never ends because a stage cannot have its rate: it has the least, and says so."""

from __future__ import annotations

from typing import Any

import pytest
from hostile.container import File

import bloomery

STAGE_VARIANT, FPR, CAPACITY, WHOLE = 11, 2, 1, 0xFFFF


def planned(made: bloomery.ScalableBloomFilter) -> list[float]:
    """The rates that the stages have while there are such rates."""
    first = made.target_fpr * (1 - made.tightening)
    return [first * made.tightening**i for i in range(made.stages)]


@pytest.mark.parametrize(
    ("arguments", "options", "keys"),
    [
        ((100, 1e-4), {"kind": "prefix"}, 20_000),
        ((100, 1e-8), {"kind": "cuckoo"}, 20_000),
        ((10_000, 1e-12), {}, 1_000_000),
        ((100, 0.01), {"growth": 1.0}, 8_000),
        ((100, 1e-14), {"kind": "d-left"}, 20_000),
        ((100, 1e-14), {"kind": "quotient", "tightening": 0.3}, 20_000),
        ((100, 1e-7), {"kind": "counting", "tightening": 0.05, "growth": 1.0}, 3000),
        ((100, 1e-5), {"kind": "layered", "tightening": 0.05, "growth": 1.0}, 3000),
    ],
)
def test_stages_have_the_least_rate_there_is_and_no_key_is_refused(
    arguments: tuple[int, float], options: dict[str, Any], keys: int
) -> None:
    made = bloomery.ScalableBloomFilter(*arguments, **options)
    made.update(range(keys))
    assert made.contains_many(range(keys)) == [True] * keys
    rates = [stage["target_fpr"] for stage in made.stage_info()]
    held = [rate for rate, plan in zip(rates, planned(made), strict=True) if rate > plan * (1 + 1e-6)]
    assert held
    assert held == rates[-len(held) :], "from the first such stage on"
    assert made.at_least_rate == made.info()["at_least_rate"] == len(held)
    for capacity, rate in zip(made.stage_capacities[-len(held) :], held, strict=True):
        # The first stage has half of the rate; a millionth less cannot be had.
        with pytest.raises(bloomery.ParameterError, match="fpr"):
            bloomery.ScalableBloomFilter(capacity, 2 * rate * (1 - 1e-6), kind=options.get("kind", "bloom"))
    again = bloomery.ScalableBloomFilter.from_bytes(made.to_bytes())
    assert again == made
    again.update(range(keys, 2 * keys))
    again.clear()
    assert again == bloomery.ScalableBloomFilter(*arguments, **options)
    assert again.at_least_rate == 0


def test_a_rate_that_the_first_stage_cannot_have_is_refused() -> None:
    with pytest.raises(bloomery.ParameterError, match="use CuckooFilter or BloomFilter for lower ones"):
        bloomery.ScalableBloomFilter(100, 1e-6, kind="prefix")
    with pytest.raises(bloomery.ParameterError, match="fingerprints have at most 32 bits"):
        bloomery.ScalableBloomFilter(100, 1e-9, kind="cuckoo")


def test_only_the_most_stages_end_it() -> None:
    made = bloomery.ScalableBloomFilter(1, 0.5, growth=1.0)
    with pytest.raises(bloomery.FilterFull, match="1024 stages"):
        made.update(range(10_000))
    assert made.stages == 1024
    assert made.at_least_rate > 900
    assert bloomery.loads(made.to_bytes()) == made


@pytest.fixture(scope="module")
def grown() -> bloomery.ScalableBloomFilter:
    """Nine stages, the last of them at the least rate."""
    made = bloomery.ScalableBloomFilter(1000, 1e-13, kind="quotient")
    made.update(range(300_000))
    assert made.stages == 9
    assert made.at_least_rate > 1
    return made


@pytest.mark.parametrize("tag", [FPR, CAPACITY])
@pytest.mark.parametrize("factor", [0.5, 0.999, 1.001, 2.0, 1e6])
def test_a_stage_that_lies_about_its_plan_is_refused(
    tag: int, factor: float, grown: bloomery.ScalableBloomFilter
) -> None:
    stored = grown.to_bytes()
    for index, stage in enumerate(grown.stage_info()):
        file = File.parse(stored)
        if tag == FPR:
            file.set_float(FPR, stage["target_fpr"] * factor, index)
        else:
            file.set(CAPACITY, round(stage["capacity"] * factor), index)
        with pytest.raises(bloomery.FormatError):
            bloomery.loads(file.build())


@pytest.mark.parametrize("variant", [0, 1, 2, 4, 5, 7, 8, 9, 18, 999])
def test_a_kind_that_no_stage_has_is_refused(variant: int) -> None:
    made = bloomery.ScalableBloomFilter(100, kind="cuckoo")
    made.update(range(500))
    file = File.parse(made.to_bytes())
    file.set(STAGE_VARIANT, variant, WHOLE)
    with pytest.raises(bloomery.FormatError, match="names stages of an unknown kind; use a newer release"):
        bloomery.loads(file.build())
