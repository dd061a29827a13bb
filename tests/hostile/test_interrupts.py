"""Guarantee: no count that is only stated keeps a call from ending, or from hearing a signal."""

from __future__ import annotations

import inspect
import itertools
import json
import random
import subprocess
import sys
import textwrap
from typing import Any

import pyarrow as pa
import pytest
from hostile.capsules import Column, array, schema
from support import LONG

import fullbloom
from fullbloom import registry

NAMES = [row["name"] for row in fullbloom.variants()]
#: Seconds that a call may take; a machine that runs other tests beside is slower.
BOUND = 1 if LONG else 5
COUNTS = (10**7, 2**40, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**5000)

#: Calls each public method of a class with a hostile number, or batch, for each parameter, under an alarm.
SCRIPT = """
    import inspect, itertools, json, signal, sys, time, warnings
    from hostile.capsules import Column, array, schema
    from hostile.test_interrupts import BOUND, COUNTS, SANE, make_small
    import fullbloom, numpy

    class Alarm(BaseException):
        pass

    def ring(*_):
        raise Alarm

    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, ring)
    BATCHES = {
        "endless": lambda: itertools.repeat(7),
        "nulls": lambda: Column(schema(b"n"), array(2**40)),
        "views of one": lambda: numpy.broadcast_to(numpy.uint64(7), 2**40),
        "dates of one": lambda: numpy.broadcast_to(numpy.datetime64(7, "s"), 2**40),
        "texts of one": lambda: numpy.broadcast_to(numpy.array("x" * 100), 2**40),
    }
    tried = 0
    for name in sys.argv[1:]:
        plain = make_small(name)
        for method, call in inspect.getmembers(type(plain), callable):
            if method.startswith("_") or method in {"take_secret", "open", "save"}:
                continue
            try:
                parameters = list(inspect.signature(call).parameters)
            except ValueError:
                continue
            wanted = [one for one in parameters if one != "self"]
            for at, parameter in enumerate(wanted):
                batch = parameter in {"keys", "hashes", "values", "labels", "included", "excluded"}
                for hostile in [*COUNTS, *(BATCHES if batch else ())]:
                    filter_ = make_small(name)
                    given = {one: SANE.get(one, 1) for one in wanted[: at + 1]}
                    given[parameter] = BATCHES[hostile]() if isinstance(hostile, str) else hostile
                    value = hostile if isinstance(hostile, str) else hostile.bit_length()
                    print(name, method, parameter, value, flush=True)
                    positional = list(given.values())
                    began = time.perf_counter()
                    signal.setitimer(signal.ITIMER_REAL, 0.01)
                    try:
                        try:
                            getattr(filter_, method)(*positional)
                        except TypeError:
                            last = positional.pop()
                            getattr(filter_, method)(*positional, **{parameter: last})
                    except (Alarm, Exception):
                        pass
                    finally:
                        signal.setitimer(signal.ITIMER_REAL, 0)
                    took = time.perf_counter() - began
                    assert took < BOUND, (name, method, parameter, took)
                    tried += 1
    print(json.dumps(tried))
"""

SANE: dict[str, Any] = {
    "key": 7, "keys": [7], "hashes": [7], "included": [7], "excluded": [8], "fpr": 0.01, "capacity": 100,
    "values": [1], "kind": "auto", "layout": "auto", "share": 0.1, "data": b"",
}  # fmt: skip


def make_small(name: str) -> Any:
    """A small filter of this name."""
    row = next(row for row in fullbloom.variants() if row["name"] == name)
    class_ = getattr(fullbloom, row["class"])
    if registry.is_built(row, "included", "excluded"):
        return class_.build([7], [8])
    if "static" in row["capabilities"]:
        return class_.build({7: 1} if registry.is_built(row, "key", "value") else [7])
    instance = class_(100)
    instance.add(7, 1) if registry.is_open(row, "key", "value") else instance.add(7)
    return instance


@pytest.mark.long
@pytest.mark.timed
def test_every_method_returns_or_handles_a_signal_for_any_count() -> None:
    """Without ``FULLBLOOM_LONG`` those that count, and one of each way to add."""
    few = ["spectral", "d-left", "spatial", "bloomier"]
    names = NAMES if LONG else few
    code = f"import sys; sys.path[:0] = {sys.path!r}\n" + textwrap.dedent(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-c", code, *names], capture_output=True, text=True, timeout=600, check=False
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (lines[-1:], done.stderr[-2000:])
    assert json.loads(lines[-1]) > 100


@pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")
@pytest.mark.parametrize("mode", ["minimum-selection", "minimal-increase", "recurring-minimum"])
def test_a_spectral_add_of_n_equals_n_adds(mode: str) -> None:
    draw = random.Random(5)
    once, each = (fullbloom.SpectralBloomFilter(20, fpr=0.3, mode=mode, counter_bits=8) for _ in range(2))
    refused = 0
    for _ in range(60):
        key, times = draw.randrange(40), draw.choice([1, 2, 3, 10, 90, 250])
        for instance, calls in ((once, [(key, times)]), (each, [(key,)] * times)):
            try:
                for call in calls:
                    instance.add(*call)
            except fullbloom.FilterFull:
                refused += 1
        assert once.to_bytes() == each.to_bytes()
        assert once.count_many(range(40)) == each.count_many(range(40))
    assert refused > 2
    assert refused % 2 == 0


def test_d_left_adds_and_removals_of_n_equal_n_calls() -> None:
    draw = random.Random(5)
    once, each = (fullbloom.DLeftCountingFilter(20, subtables=2, cells=6) for _ in range(2))
    refused = 0
    for step in range(300):
        key, times = draw.randrange(10), draw.choice([1, 2, 3, 10, 90, 3000])
        if step % 3 == 2:
            assert once.discard(key, times) == (each.count(key) >= times)
            for _ in range(times if each.count(key) >= times else 0):
                each.remove(key)
        for instance, calls in ((once, [(key, times)]), (each, [(key,)] * times)) if step % 3 < 2 else ():
            try:
                for call in calls:
                    instance.add(*call)
            except fullbloom.FilterFull:
                refused += 1
        assert once.count_many(range(10)) == each.count_many(range(10))
        assert once.num_added == each.num_added
        assert fullbloom.loads(once.to_bytes()) == once
    assert refused % 2 == 0


@pytest.mark.parametrize("times", [10**7, 2**40, 2**62])
def test_a_key_may_occur_any_number_of_times(times: int) -> None:
    stock = fullbloom.DLeftCountingFilter(1000)
    stock.add("apple", times)
    assert (stock.count("apple"), stock.num_added) == (times, 1)
    stock.remove("apple", times - 5)
    assert stock.count("apple") == 5
    spectral = fullbloom.SpectralBloomFilter(1000, counter_bits=64)
    spectral.add("apple", times)
    assert (spectral.count("apple"), spectral.num_added) == (times, times)
    small = fullbloom.SpectralBloomFilter(1000, counter_bits=16)
    with pytest.raises(fullbloom.FilterFull, match="reached its maximum, 65535"):
        small.add("apple", times)
    assert small.count("apple") == 65535


@pytest.mark.parametrize(
    "keys", [[7, 8, 9], (7, 8, 9), (key for key in [7, 8, 9]), {7: 0, 8: 0, 9: 0}.keys()]
)
def test_at_most_one_value_more_than_keys_is_read(keys: Any) -> None:
    keys = list(keys) if inspect.isgenerator(keys) else keys
    fresh: list[Any] = [lambda: keys, lambda: iter(keys)]
    maps = fullbloom.BloomierMap.build([7, 8, 9], [1, 2, 3], mutable=True)
    calls = [
        fullbloom.SpatialBloomFilter(100).update,
        fullbloom.SpatialBloomFilter(100).add_many,
        fullbloom.CompactApproximator(100).update,
        fullbloom.BloomierMap.build,
        maps.set_many,
    ]
    for call, given in itertools.product(calls, fresh):
        values = itertools.count(1)
        with pytest.raises(fullbloom.ParameterError, match=r"got more than 3 .* for 3 keys"):
            call(given(), values)
        assert next(values) == 5
        with pytest.raises(fullbloom.ParameterTypeError, match="got None"):
            call(given(), Column(schema(b"n"), array(2**40)))
        with pytest.raises(fullbloom.ParameterError, match="for 3 keys"):
            call(given(), [1, 2])


def test_a_batch_of_hashes_may_be_all_null() -> None:
    bloom = fullbloom.BloomFilter(100)
    assert pa.array(bloom.add_hashed(Column(schema(b"n"), array(3)))).to_pylist() == [None] * 3
    assert bloom.num_added == 0


def test_an_integer_too_long_to_print_is_named_by_its_bits(capfd: pytest.CaptureFixture[str]) -> None:
    """Where an error would hold a number of 5,000 digits, Python raised another error within it."""
    bloom = fullbloom.BloomFilter(100)
    for call in (
        bloom.add_hashed,
        bloom.contains_hashed,
        lambda n: bloom.add_hashed([n]),
        fullbloom.BloomFilter,
    ):
        for number in (10**5000, -(10**5000)):
            with pytest.raises(fullbloom.ParameterError, match="int of 16610 bits"):
                call(number)
    with pytest.raises(fullbloom.ParameterError, match="int of 16610 bits"):
        fullbloom.BloomFilter(100, seed=10**5000)
    assert capfd.readouterr() == ("", "")
