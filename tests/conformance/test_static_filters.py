"""Static filters: the bytes depend on the set of keys alone; `freeze` builds the smallest for the rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import for_each
from support import SECRET, Variant, every_variant

import fullbloom
from fullbloom import registry

STATIC_ROWS = {
    row["name"]: row
    for row in fullbloom.variants()
    if registry.is_built(row, "key") or registry.is_built(row, "key", "value")
}
#: Above what one thread takes at a time.
NUMBER = 200_000


def build_bytes(name: str, keys: Any, **options: Any) -> bytes:
    instance = getattr(fullbloom, STATIC_ROWS[name]["class"])
    values = [] if registry.is_built(STATIC_ROWS[name], "key") else [keys.astype(np.uint64) % np.uint64(251)]
    return instance.build(keys, *values, **options).to_bytes()


@pytest.mark.long
@pytest.mark.parametrize("name", STATIC_ROWS)
def test_static_bytes_do_not_depend_on_threads_order_or_repetitions(name: str) -> None:
    keys = np.arange(NUMBER, dtype=np.int64)
    wanted = build_bytes(name, keys)
    few, many = np.append(keys, 123_456), np.concatenate([keys, keys[::3]])
    for some in (keys[::-1], few, many):
        for threads in (1, 2, 5):
            assert build_bytes(name, some, threads=threads) == wanted
    assert build_bytes(name, few, memory=1 << 24) == wanted
    assert build_bytes(name, many, memory=1 << 24, threads=2) == wanted


STATIC = [row for row in fullbloom.variants() if "static" in row["capabilities"]]
RATED = [
    row
    for row in STATIC
    if registry.is_built(row, "key") and any(name == "fpr" for name, _, _ in row["parameters"])
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


@for_each("variant", every_variant(), ids=str)
def test_every_class_freezes(variant: Variant) -> None:
    instance = variant.make(3000, 0.01, seed=7)
    frozen = instance.freeze(keys=[*KEYS, *KEYS[:10]], fpr=0.001)
    assert "static" in next(row for row in STATIC if row["class"] == type(frozen).__name__)["capabilities"]
    assert (frozen.seed, frozen.keyed) == (7, False)
    # A key that was found already may not be counted: 1.5 of them, and more than 12 once in 10**8 seeds.
    assert 2988 <= frozen.num_added <= 3000
    assert all(frozen.contains_many(KEYS))
    assert frozen.target_fpr == 0.001


@pytest.mark.parametrize("fpr", [0.3, 0.01, 1e-4, 1e-9])
def test_auto_freezes_to_the_smallest_filter_for_the_rate(fpr: float) -> None:
    frozen = fullbloom.BloomFilter(3000, fpr).freeze(keys=KEYS)
    assert frozen.target_fpr == fpr
    assert type(frozen).nbytes_for(3000, fpr) == smallest(fpr)


@pytest.mark.parametrize("row", RATED, ids=lambda row: str(row["name"]))
def test_freezing_to_a_kind_equals_building_its_class(row: dict[str, object]) -> None:
    seen = fullbloom.BloomFilter(3000, 0.01, seed=3)
    frozen = seen.freeze(str(row["name"]), keys=KEYS, threads=2)
    assert frozen == getattr(fullbloom, str(row["class"])).build(KEYS, 0.01, seed=3)


@pytest.mark.parametrize("secret", [SECRET, True], ids=["given", "drawn"])
def test_freezing_keeps_the_secret_and_does_not_show_it(secret: bytes | bool) -> None:
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


def test_freezing_refuses_missing_keys_and_invalid_kinds() -> None:
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


def test_the_progress_callback_may_cancel_freezing() -> None:
    result: list[tuple[int, int]] = []
    fullbloom.BloomFilter(10).freeze(keys=KEYS, progress=lambda done, total: result.append((done, total)))
    assert result

    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fullbloom.BloomFilter(10).freeze(keys=KEYS, progress=stop)


def test_hashes_in_pieces_build_the_same_bytes_as_keys() -> None:
    for row in RATED:
        cls = getattr(fullbloom, row["class"])
        buffer = fullbloom._core.KeyBuffer(seed=5)
        assert buffer.lines(b"a\r\nb") == 2
        assert buffer.lines(bytearray(b"c\n")) == 1
        instance = cls.build(["a", "b", "c"], 0.01, seed=5)
        assert cls.build_hashed(buffer, 0.01) == cls.build_hashed(buffer, 0.01, seed=5) == instance
        with pytest.raises(fullbloom.ParameterError, match="again"):
            buffer.lines(b"d\n")
        with pytest.raises(fullbloom.ParameterError, match="seed"):
            cls.build_hashed(buffer, 0.01, seed=6)
