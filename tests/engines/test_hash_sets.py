"""Guarantee: sets of digits come back as they were sent, dense or sparse, and other bytes are one error."""

from __future__ import annotations

import random

import pytest

from fullbloom.errors import FormatError

np = pytest.importorskip("numpy", reason="numpy is not installed")

from fullbloom.engines import hash_sets  # noqa: E402 - needs NumPy


def draw(bits, size, seed):
    """So many sorted, distinct values of so many bits."""
    values = np.random.default_rng(seed).choice(1 << bits, min(size, 1 << bits), replace=False)
    return np.sort(values).astype(np.uint32)


@pytest.mark.parametrize("seed", range(30))
def test_a_set_comes_back_and_is_no_longer_than_a_bitmap(seed):
    generator = random.Random(seed)
    bits = generator.randint(1, 16)
    values = draw(bits, generator.randint(0, 1 << bits), seed)
    data = hash_sets.encode(values, bits)
    assert hash_sets.decode(data).tolist() == values.tolist()
    assert hash_sets.read_size(data) == len(values)
    last = int(values[-1]) + 1 if len(values) else 0
    assert len(data) <= 10 + -(-last // 8) + (0 if len(values) else 1)


@pytest.mark.parametrize("marked_bits", [0, 26])
def test_repeated_digits_are_those_of_a_count(monkeypatch, marked_bits):
    monkeypatch.setattr(hash_sets, "_MARKED_BITS", marked_bits)  # sorted, and marked
    parts = [draw(12, size, size) for size in (0, 5, 900, 4096)]
    again = draw(12, 40, 1)
    sent = [(hash_sets.encode(part, 12), hash_sets.encode(again[:0], 12)) for part in parts]
    sent.append((hash_sets.encode(again, 12), hash_sets.encode(again, 12)))
    values, counts = np.unique(np.concatenate([*parts, again, again]), return_counts=True)
    found = hash_sets.decode(hash_sets.find_repeated(sent, 12))
    assert found.tolist() == values[counts > 1].tolist()


@pytest.mark.parametrize("marked_bits", [0, 26])
@pytest.mark.parametrize("size", [3, 4000])
def test_digits_beyond_those_of_an_owner_are_an_error(monkeypatch, marked_bits, size):
    monkeypatch.setattr(hash_sets, "_MARKED_BITS", marked_bits)
    wide = draw(12, size, 1)
    wide[-1] = 4095
    part = hash_sets.encode(wide, 12)
    for sent in ((part, hash_sets.encode(wide[:0], 12)), (hash_sets.encode(wide[:0], 12), part)):
        with pytest.raises(FormatError, match="has the value 4095"):
            hash_sets.find_repeated([sent], 11)


def test_changed_bytes_are_an_error_or_a_set():
    generator = random.Random(1)
    for size in (1, 50, 4000):
        data = hash_sets.encode(draw(12, size, size), 12)
        for _ in range(300):
            changed = bytearray(data)
            changed[generator.randrange(len(changed))] ^= 1 << generator.randrange(8)
            try:
                values = hash_sets.decode(bytes(changed[: generator.randint(0, len(changed))]))
            except FormatError:
                continue
            assert len(values) == hash_sets.read_size(bytes(changed))
