"""Guarantee: every method finds the difference of two sets, exactly or as documented."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from cases import for_each

import fullbloom
from fullbloom import BloomFilter, CountingBloomFilter, InvertibleBloomFilter, hash_key, hash_many
from fullbloom.compose import (
    CharacteristicSketch,
    RatelessDecoder,
    RatelessEncoder,
    ReconciliationTree,
    StrataEstimator,
    count_differences,
)
from fullbloom.errors import (
    FilterFull,
    FormatError,
    IncompatibleFilters,
    KeyTypeError,
    ParameterError,
    ParameterTypeError,
)

SECRET = b"sixteen secrets!"


@for_each("seed", range(5))
@for_each("secret", [None, SECRET])
def test_streams_and_tables_agree_with_sets(seed, secret):
    draw = random.Random(seed)
    universe = [f"key {number}" for number in range(3000)]
    here, there = (set(draw.sample(universe, draw.choice([0, 1, 40, 2900]))) for _ in range(2))
    there |= set(draw.sample(sorted(here), len(here) // 2))
    hashes = dict(zip(universe, hash_many(universe, secret=secret), strict=True))
    mine = sorted(hashes[key] for key in here - there)
    theirs = sorted(hashes[key] for key in there - here)

    sender, receiver = RatelessEncoder(sorted(there), secret=secret), RatelessDecoder(here, secret=secret)
    while not receiver.feed(sender.produce(draw.choice([1, 10, 100]))):
        pass
    decoded = receiver.decoded()
    assert (decoded.mine, decoded.theirs, decoded.complete) == (mine, theirs, True)
    assert (receiver.num_keys, receiver.peer_keys, sender.num_keys) == (len(here), len(there), len(there))

    tables = [InvertibleBloomFilter(len(mine) + len(theirs) + 5, secret=secret) for _ in range(2)]
    for table, keys in zip(tables, (here, there), strict=True):
        table.update(keys)
    difference = tables[0] - tables[1]
    assert tuple(difference.decode()) == (mine, theirs, True)
    names = {hashed: key for key, hashed in hashes.items()}
    assert set(difference.decode(lookup=names.get).mine) == here - there
    tables[0] -= tables[1]
    assert tables[0] == difference
    tables[0].subtract(tables[0])
    assert tuple(tables[0].decode()) == ([], [], True)

    estimators = [StrataEstimator(sorted(keys), secret=secret) for keys in (here, there)]
    result, true = estimators[0].differences(estimators[1].to_bytes()), len(mine) + len(theirs)
    assert true / 2.5 <= result <= true * 2.5


@for_each("seed", range(4))
@for_each("secret", [None, SECRET])
def test_characteristic_sketches_are_exact_up_to_their_bound_and_say_so_beyond(seed, secret):
    draw = random.Random(seed)
    common = [f"key {number}" for number in range(draw.choice([0, 1, 3000]))]
    for mine, theirs in ((0, 0), (1, 0), (0, 1), (7, 33), (40, 1), (60, 60)):
        sides = [f"mine {n}" for n in range(mine)], [f"theirs {n}" for n in range(theirs)]
        bound = draw.randrange(max(1, mine + theirs), 200)
        here, there = (CharacteristicSketch(common + side, bound, secret=secret) for side in sides)
        found = here.differences(there.to_bytes())
        assert tuple(found) == (*(sorted(hash_many(side, secret=secret)) for side in sides), True)
        assert (here.num_keys, here.bound) == (len(common) + mine, bound)
        assert len(there.to_bytes()) == 24 + 8 * (bound + 3)
        few = max(1, mine + theirs - 1 - draw.randrange(3))
        if mine + theirs > few:
            small = CharacteristicSketch(common + sides[1], few, secret=secret)
            assert tuple(here.differences(small.to_bytes())) == ([], [], False)
            assert tuple(small.differences(here.to_bytes())) == ([], [], False)


def test_characteristic_sketches_refuse_nonsense():
    sketch = CharacteristicSketch(range(100), 10)
    sound, draw = CharacteristicSketch(range(5, 100), 10).to_bytes(), random.Random(1)
    for end in (0, 7, 24, 32, 48, len(sound) - 1):
        with pytest.raises(FormatError):
            sketch.differences(sound[:end])
    for _ in range(300):
        broken = bytearray(sound)
        broken[draw.randrange(8, len(sound))] ^= 1 << draw.randrange(8)
        with suppress(FormatError, IncompatibleFilters):
            assert tuple(sketch.differences(broken)) == ([], [], False)
    with pytest.raises(IncompatibleFilters):
        sketch.differences(CharacteristicSketch([], 10, seed=1).to_bytes())
    for bound in (0, -1, 1025, 2**70):
        with pytest.raises(ParameterError, match="bound"):
            CharacteristicSketch([1], bound)
    with pytest.raises(ParameterTypeError, match="bound"):
        CharacteristicSketch([1], "many")
    with pytest.raises(ParameterError, match="59"):
        CharacteristicSketch([2**64 - 1], 5, hashed=True)


def test_numbers_are_returned_unchanged_and_arguments_are_checked():
    table = InvertibleBloomFilter(10)
    numbers = [-(2**63), -1, 0, 7, 2**63 - 1]
    table.update(numbers)
    assert table.decode(numbers=True).mine == numbers
    with pytest.raises(ParameterError, match="exclude"):
        table.decode(numbers=True, lookup=print)
    with pytest.raises(ParameterTypeError, match="lookup"):
        table.decode(lookup=3)
    with pytest.raises(ParameterTypeError, match="numbers"):
        table.decode(numbers=1)
    with pytest.raises(ParameterError, match="secret"):
        InvertibleBloomFilter(10, secret=SECRET).decode(numbers=True)
    with pytest.raises(IncompatibleFilters, match="each"):
        table - InvertibleBloomFilter(99)
    with pytest.raises(ZeroDivisionError):
        table.decode(lookup=lambda _: 1 // 0)
    with pytest.raises(ParameterError, match="symbols"):
        RatelessEncoder([1]).produce(0)
    with pytest.raises(ParameterError, match="symbols"):
        RatelessEncoder([1]).produce(2**20 + 1)
    with pytest.raises(KeyTypeError):
        RatelessEncoder([object()])
    with pytest.raises(ParameterTypeError, match="hashed"):
        RatelessEncoder([1], hashed="no")


def test_hashed_keys_are_keys():
    keys = [f"k{number}" for number in range(100)]
    plain, ready = RatelessEncoder(keys), RatelessEncoder(hash_many(keys), hashed=True)
    assert plain.produce(300) == ready.produce(100) + ready.produce(200)


def test_a_table_reports_an_incomplete_listing():
    table = InvertibleBloomFilter(20)
    table.update(range(1000))
    assert not table.decode().complete
    table.clear()
    table.update([1, 2, 2])
    decoded = table.decode()
    assert (decoded.mine, decoded.complete) == ([hash_key(1)], False)


@pytest.mark.parametrize("seed", range(3))
def test_invalid_streams_raise_a_named_error(seed):
    draw = random.Random(seed)
    sound = RatelessEncoder(range(1000)).produce(1000)
    for _ in range(200):
        at = draw.randrange(len(sound))
        broken = (
            sound[:at] + draw.randbytes(draw.choice([1, 30, 9000])) + sound[at + draw.choice([0, 1, 9]) :]
        )
        decoder = RatelessDecoder(range(0, 2000, 2), max_symbols=600)
        with suppress(FormatError, FilterFull, IncompatibleFilters):
            decoder.feed(broken)
        assert len(decoder.decoded().mine) + len(decoder.decoded().theirs) <= 600
        assert not decoder.complete
    for data in (b"", sound[:23], sound[:24]):
        assert not RatelessDecoder([]).feed(data)
    with pytest.raises(FormatError):
        StrataEstimator([]).differences(sound)
    with pytest.raises(IncompatibleFilters):
        StrataEstimator([]).differences(StrataEstimator([], seed=1).to_bytes())
    with pytest.raises(IncompatibleFilters):
        RatelessDecoder([1], seed=1).feed(sound)


@pytest.mark.parametrize("differences", [0, 3, 50])
def test_a_counting_filter_counts_the_keys_that_are_not_local(differences):
    errors = []
    for fpr in (0.2, 0.01, 1e-5):
        theirs = CountingBloomFilter(2000, fpr=fpr)
        theirs.update(range(1000))
        own = [*range(differences, 1000), *range(5000, 5100)]
        before = theirs.to_bytes()
        result = count_differences(theirs, own)
        assert theirs.to_bytes() == before
        assert result <= differences
        errors.append(differences - result)
    # More cells, fewer collisions; with so many cells that no two keys share all of theirs, none.
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] == 0


@pytest.mark.parametrize("differences", [0, 1, 30, 400])
def test_a_tree_finds_most_missing_keys_and_no_others(differences):
    there = ReconciliationTree(range(differences, 3000))
    here = ReconciliationTree(range(3000))
    missing = {hash_key(number) for number in range(differences)}
    shares = []
    for correction in (0, 1, 4):
        found = here.missing(there.summary(fpr=0.02), correction=correction)
        assert found == sorted(found)
        assert set(found) <= missing
        shares.append(len(found))
    assert shares == sorted(shares)
    # False positives of leaves, and of five labels in a row, hide at most 2 % and a few keys.
    assert shares[-1] >= 0.98 * differences - 4.5 * (0.02 * differences) ** 0.5 - 1


def test_a_difference_with_an_empty_tree_is_everything():
    empty, full = ReconciliationTree([]), ReconciliationTree(range(20))
    assert len(empty) == 0
    assert empty.missing(full.summary()) == []
    assert full.missing(empty.summary()) == sorted(hash_many(range(20)))
    assert isinstance(full.summary().nodes, BloomFilter)
    assert fullbloom.loads(full.summary().leaves.to_bytes()).num_added == 20
