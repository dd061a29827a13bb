"""`positions(key)` names the cells that adding the key writes: those of a naive computation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conformance.oracle import positions
from support import SCHEMES, Variant, bits_of, every_variant, layouts

import fullbloom

CELLS = ("num_bits", "num_counters", "num_cells")
KEYS = [*range(40), "a", b"bytes", 2.5, ("t", 1)]


def set_bits(data: bytes) -> set[int]:
    return {8 * i + bit for i, byte in enumerate(data) for bit in range(8) if byte >> bit & 1}


@pytest.mark.parametrize("layout", layouts())
def test_bits_are_the_oracles(layout: str) -> None:
    for scheme in SCHEMES[layout]:
        made = fullbloom.BloomFilter(300, 0.01, layout=layout, scheme=scheme)
        for key in KEYS:
            wanted = positions(layout, scheme, made.num_bits, made.num_hashes, fullbloom.hash_key(key))
            found = made.positions(key)
            assert sorted(found) == sorted(set(wanted))
            if layout in {"classic", "partitioned"}:
                assert found == list(dict.fromkeys(wanted)), "in the order of the probes"


@pytest.mark.parametrize("layout", layouts())
def test_adding_sets_them_and_no_others(layout: str) -> None:
    for key in KEYS:
        made = fullbloom.BloomFilter(300, layout=layout, seed=3)
        before = made.to_bytes()
        named = made.positions(key)
        assert made.to_bytes() == before
        made.add(key)
        assert set_bits(bits_of(made)) == set(named)


@pytest.mark.parametrize("variant", every_variant("positions", "keys"))
def test_they_are_distinct_cells_of_the_filter(variant: Variant) -> None:
    made = variant.make(300)
    cells = next(getattr(made, name) for name in CELLS if hasattr(made, name))
    for key in KEYS:
        found = made.positions(key)
        assert all(type(cell) is int and 0 <= cell < cells for cell in found)
        assert len(set(found)) == len(found)
        assert 1 <= len(found) <= made.num_hashes
        assert found == made.positions(key) == made.copy().positions(key)
        made.add(key)
        assert found == made.positions(key), "cells of a key do not depend on what is held"


#: Whose cells tell more than that they were written.
TELLING = {"variable-increment", "invertible"}


@pytest.mark.parametrize("variant", every_variant("positions", "keys", "keeps"))
def test_a_key_is_found_exactly_when_its_cells_were_written(variant: Variant) -> None:
    """What all cells were written for is found, and nothing else."""
    made = variant.make(50)
    members, others = range(50), range(1000, 3000)
    made.update(members)
    written = {cell for key in members for cell in made.positions(key)}
    for key in others:
        if key not in made:
            assert not written.issuperset(made.positions(key)) or variant.name in TELLING
        else:
            assert written.issuperset(made.positions(key))


def test_the_cell_of_a_number_is_the_number() -> None:
    (variant,) = (parameter.values[0] for parameter in every_variant("positions", "numbers"))
    made = variant.make(100)
    assert made.positions(42) == [42]
    assert made.positions(100) == made.positions("x") == []


@pytest.mark.parametrize("variant", every_variant())
def test_a_filter_knows_the_file_it_was_opened_from(variant: Variant, tmp_path: Path) -> None:
    made = variant.make(100)
    assert made.path is None
    path = tmp_path / "f \u00e9.bloom"
    made.save(path)
    assert made.path is None
    for opened in (variant.cls.open(path), variant.cls.open(str(path)), fullbloom.open(bytes(path))):
        assert opened.path == str(path)
        assert opened.copy().path is None
    assert fullbloom.loads(path.read_bytes()).path is None
    if variant.can("write-in-place"):
        with variant.cls.open(path, mode="r+") as writer:
            assert writer.path == str(path)


def test_a_path_is_absolute_and_may_be_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.chdir(tmp_path)
    fullbloom.BloomFilter(10).save(b"no-text-\xff.bloom")
    opened: Any = fullbloom.open(b"no-text-\xff.bloom")
    assert opened.path == os.fsdecode(os.fsencode(tmp_path) + b"/no-text-\xff.bloom")
    assert fullbloom.open(opened.path) == opened


WINDOWS = [p for p in every_variant() if hasattr(p.values[0].cls, "advance")]


@pytest.mark.parametrize("window", [None, 60.0])
@pytest.mark.parametrize("variant", WINDOWS)
def test_generations_turn_by_hand(variant: Variant, window: float | None) -> None:
    made = variant.make(100, window=window)
    if window:
        made.advance(5.0)
    made.add("old")
    for _ in range(made.generations - 1):
        assert made.advance() == 1
        assert "old" in made
    made.add("new")
    assert made.advance() == 1
    assert "old" not in made
    assert "new" in made
    assert sum(made.generation_counts()) == made.num_added == 1
    again = fullbloom.loads(made.to_bytes())
    assert again == made
    if window:
        # Time goes on from where it was, and the newest generation began there.
        assert made.now == 5.0
        assert made.advance(5.0) == 0
        with pytest.raises(fullbloom.ParameterError):
            made.advance(4.0)
        assert made.advance(1e6) == made.generations
        assert not made
    else:
        with pytest.raises(fullbloom.ParameterError, match="window="):
            made.advance(1.0)


@pytest.mark.parametrize("variant", WINDOWS)
def test_a_mapped_window_does_not_turn(variant: Variant, tmp_path: Path) -> None:
    made = variant.make(100)
    made.add("key")
    made.save(tmp_path / "f")
    with pytest.raises(fullbloom.ReadOnlyFilter):
        variant.cls.open(tmp_path / "f").advance()
