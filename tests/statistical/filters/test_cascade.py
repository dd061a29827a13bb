"""A cascade is right about every key of its world; a delta yields another version exactly."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
from support import LONG, SECRET

import fullbloom
from fullbloom import FilterCascade, registry, theory


def world(included: int, excluded: int, seed: int) -> tuple[Any, Any]:
    """Two sets of integers without a common one, mixed over all of them."""
    keys = np.random.default_rng(seed).permutation(included + excluded)
    return keys[:included], keys[included:]


SIZES = [(1_000, 10_000), (10_000, 100_000), (100_000, 1_000_000), (100_000, 10_000), (20_000, 20_000)]


@pytest.mark.parametrize(("r", "s"), [*SIZES, *([(10_000, 10_000_000)] if LONG else [])])
def test_every_key_of_the_world_is_classified_and_the_size_follows_the_law(r: int, s: int) -> None:
    included, excluded = world(r, s, seed=r + s)
    cascade = FilterCascade.build(included, excluded, seed=r)
    assert cascade.verify(included, excluded) == 0
    assert cascade.includes_many(included).all()
    assert not cascade.includes_many(excluded, threads=2).any()
    assert (cascade.num_included, cascade.num_excluded, cascade.fpr()) == (r, s, 0.0)
    law = theory.cascade_bits(r, s)
    # What goes on to the next level scatters like its square root, and each key of it takes 4.2 bits in all;
    # whole numbers of probes cost 0.2 %.
    slack = 0.002 * law + 4.0 * 4.2 * math.sqrt(min(r, s))
    assert abs(cascade.num_bits - law) < slack
    if min(r, s) >= 10_000:
        assert abs(cascade.num_bits / law - 1) < 0.03
        assert len(cascade.to_bytes()) < 1.03 * law / 8 + 1024


def test_published_sizes_are_met() -> None:
    # Published with 1.44 and 4.2 for 1.4427 and 4.2044.
    for r, s, published in [(1e4, 1e5, 89_836), (1e5, 1e6, 898_358), (1e4, 1e7, 185_507)]:
        assert theory.cascade_bits(r, s) == pytest.approx(published, rel=0.002)
        assert theory.cascade_bits(s, r) == theory.cascade_bits(r, s)
    # 12.7 of 30 million certificates.
    assert theory.cascade_bits(12.7e6, 17.3e6) / 8e6 == pytest.approx(7.7, abs=0.05)


def test_the_smallest_worlds_are_classified() -> None:
    for r, s in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (0, 50), (50, 0), (1, 500)]:
        included, excluded = [f"in {i}" for i in range(r)], [f"out {i}" for i in range(s)]
        for options in ({}, {"seed": 5}, {"secret": SECRET}):
            cascade = FilterCascade.build([*included, *included[:1]], excluded, **options)
            assert cascade.includes_many(included) == [True] * r
            assert cascade.includes_many(excluded) == [False] * s
            assert cascade.num_included == r


def test_the_bytes_depend_on_the_sets_only() -> None:
    included, excluded = world(3_000, 30_000, seed=2)
    instance = FilterCascade.build(included, excluded, seed=9)
    again = FilterCascade.build(
        iter(included[::-1].tolist()),
        excluded[::-1],
        seed=9,
        threads=3,
        memory=1 << 24,
        progress=lambda *_: None,
    )
    assert instance.to_bytes() == again.to_bytes()
    assert instance == again
    assert instance != FilterCascade.build(included, excluded, seed=8)


def test_a_world_that_is_not_closed_shows_in_verify() -> None:
    included, excluded = world(1_000, 10_000, seed=3)
    cascade = FilterCascade.build(included, excluded)
    strangers = np.arange(20_000, 30_000)
    # A first level at 7 % lets some through; of those half are then taken for included, or more.
    assert 0 < cascade.verify(included, strangers) < 2_000
    assert cascade.verify(excluded, included) == 11_000


def test_sets_that_overlap_are_refused_with_an_example() -> None:
    draw = random.Random(5)
    words = [f"word {i}" for i in range(3_000)]
    for _ in range(10):
        at, there = draw.randrange(1_000), draw.randrange(2_000)
        excluded = [*words[1_000:][:there], words[at], *words[1_000:][there:]]
        with pytest.raises(fullbloom.ParameterError, match=rf"key {at} of .* key {there} of excluded"):
            FilterCascade.build(words[:1_000], excluded)


def test_a_build_reports_progress_and_can_be_cancelled() -> None:
    result = []
    FilterCascade.build(
        range(1_000), range(1_000, 9_000), progress=lambda done, total: result.append((done, total))
    )
    assert result[-1] == (1, 1)

    def stop(done: int, total: int) -> None:
        raise InterruptedError(done, total)

    with pytest.raises(InterruptedError):
        FilterCascade.build(range(1_000), range(1_000, 9_000), progress=stop)
    with pytest.raises(fullbloom.FilterMemoryError, match="memory=100000"):
        FilterCascade.build(range(100_000), range(100_000, 200_000), memory=100_000)


KINDS = [(kind, "auto") for kind in FilterCascade.kinds()]
LAYOUTS = [("bloom", layout) for layout in ("classic", "blocked", "split", "partitioned", "two-block")]
EVERY = [*KINDS, *LAYOUTS]


def ranges(included: int, excluded: int, first: int = 0) -> tuple[Any, Any]:
    """Two sets of integers without a common one."""
    keys = np.arange(first, first + included + excluded)
    return keys[:included], keys[included:]


def test_levels_may_be_any_static_structure_without_false_negatives() -> None:
    assert set(FilterCascade.kinds()) <= {
        row["name"] for row in fullbloom.variants() if row["false_negatives"] == "never"
    }
    assert {row["name"] for row in fullbloom.variants() if registry.is_built(row, "key")} < set(
        FilterCascade.kinds()
    )


@pytest.mark.parametrize(("kind", "layout"), EVERY)
@pytest.mark.parametrize(("r", "s"), [(0, 7), (3, 0), (1, 1), (50, 4000), (30_000, 60_000)])
def test_cascades_with_levels_of_any_kind_are_exact(kind: str, layout: str, r: int, s: int) -> None:
    included, excluded = ranges(r, s)
    instance = FilterCascade.build(included, excluded, kind=kind, layout=layout, seed=5)
    again = FilterCascade.build(excluded[::-1], included, kind=kind, layout=layout, seed=5, threads=2)
    assert (instance.kind, instance.layout in {layout, "auto"}) == (kind, True)
    assert instance.verify(included, excluded) == again.verify(excluded, included) == 0
    loaded = fullbloom.loads(instance.to_bytes())
    assert loaded == instance
    assert loaded.to_bytes() == instance.to_bytes()
    assert loaded.verify(included, excluded) == 0
    assert instance == FilterCascade.build(included[::-1], excluded, kind=kind, layout=layout, seed=5)
    assert (instance == FilterCascade.build(included, excluded, seed=5)) == (
        layout == "auto" and kind == "bloom"
    )


@pytest.mark.parametrize("kind", ["ribbon", "binary-fuse"])
@pytest.mark.parametrize(("r", "s"), [(100_000, 300_000), (200_000, 2_000_000), (150_000, 150_000)])
def test_static_levels_take_the_bits_of_their_law(kind: str, r: int, s: int) -> None:
    included, excluded = ranges(r, s)
    instance = FilterCascade.build(included, excluded, kind=kind)
    assert instance.verify(included, excluded) == 0
    # The law is of 1.4427 bits for each halving; smallest levels and tables stay as they are.
    law = theory.cascade_bits(r, s) / theory.bits_per_key(0.5, num_hashes=1)
    own = {"ribbon": 1.03, "binary-fuse": 1.18}[kind]
    rest = theory.cascade_bits(8192, 8192) + 8 * 320 * 12
    # Whole bits of a fingerprint keep a lower rate than was asked for: up to one bit more a key of the
    # first level.
    whole = r if kind == "binary-fuse" else 0
    assert 8 * instance.nbytes < own * (law + whole) + rest
    assert 8 * instance.nbytes < 8 * FilterCascade.build(included, excluded).nbytes


#: Share of the keys that go, and may go on coming: bytes of a delta beside those of the whole file.
SHARES = {0.0005: 0.05, 0.005: 0.14, 0.02: 0.29}


@pytest.mark.parametrize(("share", "most"), SHARES.items())
@pytest.mark.parametrize("r", [10_000, 30_000, 100_000])
def test_a_delta_is_proportional_to_the_change(r: int, share: float, most: float) -> None:
    s, gone = 10 * r, max(1, round(share * r))
    included, excluded = ranges(r, s)
    old = FilterCascade.build(included, excluded, seed=3)
    fresh = ranges(gone, 10 * gone, first=1 << 40)
    now = [np.concatenate(both) for both in ((included[gone:], fresh[0]), (excluded[10 * gone :], fresh[1]))]
    new = FilterCascade.build(*now, like=old)
    assert new.verify(*now) == 0
    # Kept shapes cost at most an eighth of the bits; the law is of shapes of their own.
    assert new.num_bits < 1.02 * theory.cascade_bits(r, s) + 2000
    delta = old.delta_to(new)
    patched = old.apply_delta(delta)
    assert patched == new
    assert patched.to_bytes() == new.to_bytes()
    whole = len(new.to_bytes())
    print(f"{r} {share}: {len(delta)} of {whole} bytes, {8 * len(delta) / (2 * gone):.1f} bits a change")
    assert len(delta) < most * whole + 100
    assert len(old.delta_to(old)) < 120
    # Shapes of their own share no bits: the delta is the file.
    alone = FilterCascade.build(*ranges(r + 3, s), seed=3)
    assert 0.9 * whole < len(old.delta_to(alone)) < 1.01 * len(alone.to_bytes()) + 200


#: Beside the file of the same version: half of what bits of all would take at 0.5 % and more.
STATIC = {0.0005: 0.035, 0.005: 0.07, 0.02: 0.17}


@pytest.mark.parametrize(("share", "most"), STATIC.items())
@pytest.mark.parametrize("kind", ["binary-fuse", "golomb", "ribbon", "xor"])
def test_static_levels_are_kept_and_the_delta_is_short(kind: str, share: float, most: float) -> None:
    r, gone = 100_000, round(share * 100_000)
    included, excluded = ranges(r, 10 * r)
    old = FilterCascade.build(included, excluded, kind=kind, seed=3)
    fresh = ranges(gone, 10 * gone, first=1 << 40)
    now = [np.concatenate(both) for both in ((included[gone:], fresh[0]), (excluded[10 * gone :], fresh[1]))]
    new = FilterCascade.build(*now, like=old)
    assert new.verify(*now) == 0
    delta, whole = old.delta_to(new), len(new.to_bytes())
    assert old.apply_delta(delta).to_bytes() == new.to_bytes()
    print(f"{kind} {share}: {len(delta)} of {whole} bytes")
    assert len(delta) < most * whole
    # Kept levels cost what is beside them: some two bytes for each new key and for what it is mistaken for.
    assert whole < len(old.to_bytes()) + 8 * gone + 1500
    assert FilterCascade.build(included, excluded, like=old) == old
    assert fullbloom.loads(new.to_bytes()).verify(*now) == 0


@pytest.mark.parametrize("kind", ["binary-fuse", "ribbon"])
def test_static_levels_are_rebuilt_if_too_much_has_changed(kind: str) -> None:
    days, r = 12, 20_000
    held = first = FilterCascade.build(*ranges(r, 5 * r), kind=kind)
    for day in range(1, days + 1):
        sets = ranges(r, 5 * r, first=day * r // 40)
        now = FilterCascade.build(*sets, like=held)
        delta = held.delta_to(now)
        assert now.verify(*sets) == 0
        assert held.apply_delta(delta) == now
        # Half of the file is the levels that are bits anyway.
        assert len(now.to_bytes()) < 1.5 * len(first.to_bytes())
        held = now
    assert FilterCascade.build(*ranges(r, 5 * r, first=r), like=held).num_bits < 1.1 * first.num_bits


def test_sets_that_grow_get_shapes_of_their_own_in_time() -> None:
    sizes = [1000, 1100, 1300, 2000, 500, 20, 4000]
    before = FilterCascade.build(*ranges(1000, 9000), seed=1)
    for size in sizes:
        sets = ranges(size, 9000)
        now = FilterCascade.build(*sets, like=before)
        assert now.verify(*sets) == 0
        assert before.apply_delta(before.delta_to(now)) == now
        assert now.num_bits < 1.13 * theory.cascade_bits(size, 9000) + 4.2 * 4 * size**0.5 + 64 * 512
        before = now


def test_a_delta_applies_to_its_own_version_only() -> None:
    versions = [FilterCascade.build(*ranges(2000, 8000), seed=9, secret=SECRET)]
    for day in range(1, 5):
        versions.append(FilterCascade.build(*ranges(2000, 8000, first=5 * day), like=versions[-1]))
    deltas = [old.delta_to(new) for old, new in itertools.pairwise(versions)]
    held = versions[0]
    for delta, version in zip(deltas, versions[1:], strict=True):
        held = held.apply_delta(bytearray(delta))
        assert held == version
        assert (held.keyed, held.seed) == (True, 9)
    for delta in deltas[1:]:
        with pytest.raises(fullbloom.IncompatibleFilters, match="another version"):
            versions[0].apply_delta(delta)
    with pytest.raises(fullbloom.IncompatibleFilters, match="seed"):
        versions[0].delta_to(FilterCascade.build([1], [2], seed=10, secret=SECRET))


def test_like_refuses_options_that_it_implies() -> None:
    old = FilterCascade.build(range(9), range(9, 99), kind="ribbon", seed=4)
    new = FilterCascade.build(range(8), range(9, 99), like=old)
    assert (new.kind, new.seed) == ("ribbon", 4)
    for options in ({"seed": 5}, {"secret": SECRET}, {"kind": "xor"}, {"layout": "blocked"}):
        with pytest.raises(fullbloom.ParameterError, match="drop"):
            FilterCascade.build([1], [2], like=old, **options)
    with pytest.raises(fullbloom.ParameterTypeError, match="FilterCascade"):
        FilterCascade.build([1], [2], like=7)
    with pytest.raises(fullbloom.ParameterError, match=r"kind must be one of bloom, .*got .cuckoo"):
        FilterCascade.build([1], [2], kind="cuckoo")


def test_forged_deltas_are_refused() -> None:
    old = FilterCascade.build(range(60), range(60, 700))
    delta = old.delta_to(FilterCascade.build(range(1, 60), range(60, 701), like=old))
    draw = random.Random(8)
    for end in range(len(delta)):
        with pytest.raises(fullbloom.FormatError):
            old.apply_delta(delta[:end])
    for _ in range(2000):
        lie = bytearray(delta)
        for _ in range(draw.randint(1, 4)):
            lie[draw.randrange(len(lie))] = draw.randrange(256)
        if lie != delta:
            with pytest.raises(fullbloom.FormatError):
                old.apply_delta(lie)
    for noise in (b"", b"\0" * 100, old.to_bytes(), draw.randbytes(300)):
        with pytest.raises(fullbloom.FormatError):
            old.apply_delta(noise)
    with pytest.raises(fullbloom.ParameterTypeError):
        old.apply_delta("delta")
