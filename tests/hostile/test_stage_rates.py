"""A growing filter never ends because a stage cannot have its rate: it has the least, and says so."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from typing import Any

import pytest
from cases import for_each
from hostile.container import File
from support import LONG, SCALE, pool, sigmas_of

import fullbloom
from fullbloom import theory

RUNS, PROBES = 6 * SCALE, 20_000
STAGE_VARIANT, FPR, CAPACITY, WHOLE = 11, 2, 1, 0xFFFF


def plan_stages(instance: fullbloom.ScalableBloomFilter) -> list[float]:
    """The rates that the stages have while there are such rates."""
    first = instance.target_fpr * (1 - instance.tightening)
    return [first * instance.tightening**i for i in range(instance.stages)]


@for_each(
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
def test_stages_use_the_lowest_possible_rate_and_refuse_no_key(
    arguments: tuple[int, float], options: dict[str, Any], keys: int
) -> None:
    instance = fullbloom.ScalableBloomFilter(*arguments, **options)
    instance.update(range(keys))
    assert instance.contains_many(range(keys)) == [True] * keys
    rates = [stage["target_fpr"] for stage in instance.stage_info()]
    held = [rate for rate, plan in zip(rates, plan_stages(instance), strict=True) if rate > plan * (1 + 1e-6)]
    assert held
    assert held == rates[-len(held) :], "from the first such stage on"
    assert instance.at_least_rate == instance.info()["at_least_rate"] == len(held)
    for capacity, rate in zip(instance.stage_capacities[-len(held) :], held, strict=True):
        # The first stage has half of the rate; a millionth less cannot be had.
        with pytest.raises(fullbloom.ParameterError, match="fpr"):
            fullbloom.ScalableBloomFilter(capacity, 2 * rate * (1 - 1e-6), kind=options.get("kind", "bloom"))
    again = fullbloom.ScalableBloomFilter.from_bytes(instance.to_bytes())
    assert again == instance
    again.update(range(keys, 2 * keys))
    again.clear()
    assert again == fullbloom.ScalableBloomFilter(*arguments, **options)
    assert again.at_least_rate == 0


def test_a_rate_below_that_of_the_first_stage_is_refused() -> None:
    with pytest.raises(fullbloom.ParameterError, match="use CuckooFilter or BloomFilter for lower ones"):
        fullbloom.ScalableBloomFilter(100, 1e-6, kind="prefix")
    with pytest.raises(fullbloom.ParameterError, match="fingerprints have at most 32 bits"):
        fullbloom.ScalableBloomFilter(100, 1e-9, kind="cuckoo")


def test_only_the_maximum_number_of_stages_ends_growth() -> None:
    instance = fullbloom.ScalableBloomFilter(1, 0.5, growth=1.0)
    with pytest.raises(fullbloom.FilterFull, match="1024 stages"):
        instance.update(range(10_000))
    assert instance.stages == 1024
    assert instance.at_least_rate > 900
    assert fullbloom.loads(instance.to_bytes()) == instance


@pytest.fixture(scope="module")
def grown() -> fullbloom.ScalableBloomFilter:
    """Nine stages, the last of them at the least rate."""
    instance = fullbloom.ScalableBloomFilter(1000, 1e-13, kind="quotient")
    instance.update(range(300_000))
    assert instance.stages == 9
    assert instance.at_least_rate > 1
    return instance


@pytest.mark.parametrize("tag", [FPR, CAPACITY])
@pytest.mark.parametrize("factor", [0.5, 0.999, 1.001, 2.0, 1e6])
def test_a_stage_with_a_forged_plan_is_refused(
    tag: int, factor: float, grown: fullbloom.ScalableBloomFilter
) -> None:
    stored = grown.to_bytes()
    for index, stage in enumerate(grown.stage_info()):
        file = File.parse(stored)
        if tag == FPR:
            file.set_float(FPR, stage["target_fpr"] * factor, index)
        else:
            file.set(CAPACITY, round(stage["capacity"] * factor), index)
        with pytest.raises(fullbloom.FormatError):
            fullbloom.loads(file.build())


@for_each("variant", [0, 1, 2, 4, 5, 7, 8, 9, 18, 999])
def test_an_unknown_kind_of_stage_is_refused(variant: int) -> None:
    instance = fullbloom.ScalableBloomFilter(100, kind="cuckoo")
    instance.update(range(500))
    file = File.parse(instance.to_bytes())
    file.set(STAGE_VARIANT, variant, WHOLE)
    with pytest.raises(fullbloom.FormatError, match="names stages of an unknown kind; use a newer release"):
        fullbloom.loads(file.build())


# Growth between 1 and 4 from a few keys on: many stages, soon.
def random_growth(rng: random.Random) -> tuple[tuple[int, float], dict[str, float]]:
    growth = rng.choice([1.0, 1.02, 1.2, 2.0, rng.uniform(1, 4)])
    least = 30 if growth < 1.1 else 1
    fpr = 10 ** rng.uniform(-15, -0.1)
    return (rng.randint(least, 60), fpr), {"growth": growth, "tightening": rng.choice([0.05, 0.5, 0.95])}


def most_found(stages: list[dict[str, Any]]) -> float:
    """The rate if every stage found keys of its own, in its fullest blocks.

    Of a block's keys a stage of rate R lets 1 - R pass, of all keys 1 - P: so a block of a later stage holds
    1 / (1 - P) times its share at most, and the rate of a block grows no faster than load^k. Keys that are
    stored once are all unlike: where P is the chance of any of them, that of all is -ln(1 - P) at most.
    """
    found, fullest = 0.0, 1.0
    for stage in stages:
        all_unlike = -math.log1p(-min(stage["fpr"], 1 - 1e-9))
        found += all_unlike * fullest ** stage.get("num_hashes", 1)
        fullest *= math.exp(all_unlike)
    return found


@for_each("kind", fullbloom.ScalableBloomFilter.kinds())
def test_no_kind_stops_growing_because_of_its_rate(kind: str) -> None:
    rng, grown, many = random.Random(f"growing {kind}"), 0, 0
    while grown < 8 * SCALE:
        arguments, options = random_growth(rng)
        try:
            instance = fullbloom.ScalableBloomFilter(*arguments, kind=kind, **options)
        except fullbloom.ParameterError:
            # Not even the first stage can have its rate: refused at once, never later.
            continue
        grown += 1
        for start in range(0, 3000, 500):
            instance.update(range(start, start + 500))
            assert all(instance.contains_many(range(start + 500))), (arguments, options)
        stages = instance.stage_info()
        many = max(many, len(stages))
        for stage, plan in zip(stages, plan_stages(instance), strict=True):
            assert stage["target_fpr"] >= plan * (1 - 1e-9), (arguments, options)
        # The rate that is told: between the largest of the stages' rates and the most that all can find.
        rates = [stage["fpr"] for stage in stages]
        assert max(rates) <= instance.fpr() * (1 + 1e-9)
        assert instance.fpr() <= min(1.0, most_found(stages)) * (1 + 1e-9)
        # No stage is above its share but those that are counted.
        above = sum(stage["target_fpr"] for stage in stages) - sum(plan_stages(instance))
        assert instance.at_least_rate > 0 or above <= 1e-9 * instance.target_fpr
    assert many > 40


@for_each("kind", fullbloom.ScalableBloomFilter.kinds())
def test_the_rate_of_many_small_stages_is_at_most_the_stated_one(kind: str) -> None:
    above, below, result = [], [], 0.0
    for seed in range(RUNS):
        instance = fullbloom.ScalableBloomFilter(40, 0.4, kind=kind, growth=1.0, tightening=0.9, seed=seed)
        instance.update(range(2000))
        found = sum(instance.contains_many(range(10**6, 10**6 + PROBES))) / PROBES
        result = instance.fpr()
        above.append(found - result)
        # Stages that know nothing of each other find least.
        below.append(found - theory.compound_fpr([stage["fpr"] for stage in instance.stage_info()]))
    # Stages of bits tell a rate by their fill, around which filters scatter: as the runs show.
    far = sigmas_of(len(fullbloom.ScalableBloomFilter.kinds()))
    mean, sd = pool(above, result, PROBES)
    assert mean <= far * sd
    mean, sd = pool(below, result, PROBES)
    assert mean >= -far * sd


@for_each("seed", range(6))
def test_dynamic_stages_hold_their_capacity(seed: int) -> None:
    rng = random.Random(f"dynamic {seed}")
    capacity, most = rng.randint(20, 200), rng.choice([1, 3, 16, 64])
    instance = fullbloom.DynamicCuckooFilter(capacity, 10 ** rng.uniform(-6, -1), max_stages=most, seed=seed)
    keys = range(capacity * most)
    instance.update(keys)
    assert all(instance.contains_many(keys))
    assert instance.stages <= most
    assert instance.fpr() <= instance.target_fpr * (1 + 1e-9)


@pytest.mark.parametrize(
    ("command", "fpr", "lines", "long"),
    [("seen", 1e-13, 70_000, False), ("seen", 1.5e-14, 70_000, False), ("dedup", 1e-12, 3_000_000, True)],
)
def test_dedup_of_a_long_stream_is_not_stopped_by_its_rate(
    command: str, fpr: float, lines: int, long: bool
) -> None:
    if long and not LONG:
        pytest.skip("three million lines: FULLBLOOM_LONG=1 runs them")
    text = b"".join(b"%d\n" % line for line in range(lines))
    done = subprocess.run(
        [sys.executable, "-m", "fullbloom", command, "--fpr", str(fpr)],
        input=text,
        capture_output=True,
        timeout=600,
    )
    assert done.returncode == 0 or b"Traceback" not in done.stderr
    assert not done.stderr.startswith(b"fullbloom: "), done.stderr[:300]
    assert done.stdout == (text if command == "dedup" else done.stdout)
