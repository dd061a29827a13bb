"""Guarantee: a filter freezes to the smallest static filter of its keys for the rate, under its own hash."""

from __future__ import annotations

import pytest
from support import SECRET, Variant, every_variant

import fullbloom

STATIC = [row for row in fullbloom.variants() if "static" in row["capabilities"]]
RATED = [
    row for row in STATIC if row["adds"] == "build" and any(name == "fpr" for name, _, _ in row["parameters"])
]
KEYS = [f"key {i}" for i in range(3000)]


def smallest(fpr: float, keys: int = len(KEYS)) -> int:
    sizes = []
    for row in RATED:
        try:
            sizes.append(getattr(fullbloom, row["class"]).nbytes_for(keys, fpr))
        except fullbloom.ParameterError:
            continue
    return min(sizes)


@pytest.mark.parametrize("variant", every_variant(), ids=str)
def test_every_class_freezes(variant: Variant) -> None:
    made = variant.make(3000, 0.01, seed=7)
    frozen = made.freeze(keys=[*KEYS, *KEYS[:10]], fpr=0.001)
    assert "static" in next(row for row in STATIC if row["class"] == type(frozen).__name__)["capabilities"]
    assert (frozen.seed, frozen.keyed) == (7, False)
    # A key that was found already may not be counted: 1.5 of them, and more than 12 once in 10**8 seeds.
    assert 2988 <= frozen.num_added <= 3000
    assert all(frozen.contains_many(KEYS))
    assert frozen.target_fpr == 0.001


@pytest.mark.parametrize("fpr", [0.3, 0.01, 1e-4, 1e-9])
def test_auto_is_the_smallest_for_the_rate(fpr: float) -> None:
    frozen = fullbloom.BloomFilter(3000, fpr).freeze(keys=KEYS)
    assert frozen.target_fpr == fpr
    assert type(frozen).nbytes_for(3000, fpr) == smallest(fpr)


@pytest.mark.parametrize("row", RATED, ids=lambda row: str(row["name"]))
def test_a_named_kind_is_what_its_class_builds(row: dict[str, object]) -> None:
    seen = fullbloom.BloomFilter(3000, 0.01, seed=3)
    frozen = seen.freeze(str(row["name"]), keys=KEYS, threads=2)
    assert frozen == getattr(fullbloom, str(row["class"])).build(KEYS, 0.01, seed=3)


@pytest.mark.parametrize("secret", [SECRET, True], ids=["given", "drawn"])
def test_a_secret_goes_along_and_is_not_shown(secret: bytes | bool) -> None:
    seen = fullbloom.BloomFilter(3000, 0.01, seed=3, secret=secret)
    frozen = seen.freeze(keys=KEYS)
    assert frozen.keyed
    assert all(frozen.contains_many(KEYS))
    if secret is True:
        with pytest.raises(fullbloom.SecretError):
            frozen.to_bytes()
        kept = seen.take_secret()
    else:
        kept = SECRET
    again = type(frozen).from_bytes(frozen.to_bytes(), secret=kept)
    assert again == frozen == type(frozen).build(KEYS, 0.01, seed=3, secret=kept)


def test_no_keys_and_what_is_refused() -> None:
    seen = fullbloom.BloomFilter(10, 0.01)
    assert seen.freeze(keys=[]).num_added == 0
    with pytest.raises(fullbloom.ParameterError, match=r"kind must be auto or one of .*got .bloom."):
        seen.freeze("bloom", keys=[1])
    with pytest.raises(fullbloom.ParameterError, match="fpr"):
        seen.freeze(keys=[1], fpr=1.5)
    with pytest.raises(fullbloom.KeyTypeError):
        seen.freeze(keys=[object()])
    with pytest.raises(TypeError):
        seen.freeze()
    with pytest.raises(TypeError):
        seen.freeze(keys=None)


def test_progress_may_end_it() -> None:
    told: list[tuple[int, int]] = []
    fullbloom.BloomFilter(10).freeze(keys=KEYS, progress=lambda done, total: told.append((done, total)))
    assert told

    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fullbloom.BloomFilter(10).freeze(keys=KEYS, progress=stop)


def test_hashes_that_come_in_pieces_build_what_keys_do() -> None:
    for row in RATED:
        cls = getattr(fullbloom, row["class"])
        buffer = fullbloom._core.KeyBuffer(seed=5)
        assert buffer.lines(b"a\r\nb") == 2
        assert buffer.lines(bytearray(b"c\n")) == 1
        made = cls.build(["a", "b", "c"], 0.01, seed=5)
        assert cls.build_hashed(buffer, 0.01) == cls.build_hashed(buffer, 0.01, seed=5) == made
        with pytest.raises(fullbloom.ParameterError, match="again"):
            buffer.lines(b"d\n")
        with pytest.raises(fullbloom.ParameterError, match="seed"):
            cls.build_hashed(buffer, 0.01, seed=6)
