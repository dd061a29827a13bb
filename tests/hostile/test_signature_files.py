"""Files of signature indexes: golden bytes, and damaged and forged ones that end in FormatError."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from hostile.container import COUNT, NUM_BITS, NUM_HASHES, File

import fullbloom
from fullbloom import SignatureIndex

GOLDEN = Path(__file__).parent.parent / "golden" / "signatures"
BLOCK_ROWS, PRIVATE_ROWS, LISTED_TERMS, COLUMN_BITS = range(120, 124)


def make_examples() -> dict[str, SignatureIndex]:
    """The indexes of the golden files."""
    flat = SignatureIndex(40, 4, capacity=1, seed=7)
    flat.add_many([[f"t{i % 7}", i] for i in range(600)])
    ranked = SignatureIndex.for_terms(
        4,
        1e-3,
        fill=0.2,
        rank=2,
        frequencies={f"t{i}": 1 / (i + 1) ** 2 for i in range(9)},
        capacity=1,
        seed=7,
    )
    ranked.add_many([[f"t{j}" for j in range(9) if i % (j + 1) == 0] for i in range(2000)])
    rows = SignatureIndex(
        80, 2, columns={"city": 3, "Straße": 2}, capacity=1, seed=7, secret=b"sixteen secrets!"
    )
    rows.add_table({"city": [f"c{i % 5}" for i in range(100)], "Straße": list(range(100))})
    return {
        "flat": flat,
        "ranked": ranked,
        "columns": rows,
        "empty": SignatureIndex((64, 32), (2, 1), capacity=1),
    }


SECRETS = {"columns": b"sixteen secrets!"}


def load(data: bytes, name: str) -> SignatureIndex:
    return SignatureIndex.from_bytes(data, secret=SECRETS.get(name))


@pytest.mark.parametrize("name", ["flat", "ranked", "columns", "empty"])
def test_the_same_rows_make_the_same_bytes_as_ever(name: str) -> None:
    golden, example = (GOLDEN / f"{name}.bloom").read_bytes(), make_examples()[name]
    assert example.to_bytes() == golden
    assert load(golden, name) == example
    opened: Any = fullbloom.open(GOLDEN / f"{name}.bloom", secret=SECRETS.get(name), verify="full")
    assert opened == example


def test_golden_files_answer_as_ever() -> None:
    flat, ranked = SignatureIndex.open(GOLDEN / "flat.bloom"), SignatureIndex.open(GOLDEN / "ranked.bloom")
    rows = SignatureIndex.open(GOLDEN / "columns.bloom", secret=SECRETS["columns"])
    assert set(range(3, 600, 7)) <= set(flat.candidates(["t3"]))
    assert ranked.candidates(["t0"]) == list(range(2000))
    assert set(range(0, 2000, 12)) <= set(ranked.candidates(["t3", "t2"]))
    assert 42 in rows.candidates({"Straße": 42, "city": "c2"})


@for_each("name", ["flat", "ranked", "columns"])
@for_each("seed", [1, 2])
def test_damaged_bytes_are_refused_wherever_they_are(name: str, seed: int) -> None:
    rng, golden = random.Random(seed), (GOLDEN / f"{name}.bloom").read_bytes()
    for _ in range(150):
        at = rng.choice([rng.randrange(len(golden)), rng.randrange(min(800, len(golden)))])
        wrong = bytearray(golden)
        wrong[at] ^= 1 << rng.randrange(8)
        for data in (golden[:at], bytes(wrong), golden + bytes(wrong[:at])):
            if data != golden:
                with pytest.raises(fullbloom.FormatError):
                    load(data, name)


@for_each(
    ("name", "tag", "index", "value"),
    [
        ("flat", COUNT, 0, 0),
        ("flat", COUNT, 0, 513),
        ("flat", COUNT, 0, 2**63),
        ("flat", NUM_BITS, 0, 41),
        ("flat", NUM_BITS, 0, 0),
        ("flat", NUM_BITS, 0, 2**64 - 1),
        ("flat", NUM_HASHES, 0, 65),
        ("flat", BLOCK_ROWS, 0, 1024),
        ("flat", BLOCK_ROWS, 0, 500),
        ("flat", BLOCK_ROWS, 0, 0),
        ("flat", PRIVATE_ROWS, 0, 1),
        ("flat", PRIVATE_ROWS, 0, 2**64 - 1),
        ("flat", LISTED_TERMS, 0, 1),
        ("ranked", LISTED_TERMS, 0, 0),
        ("ranked", LISTED_TERMS, 0, 8),
        ("ranked", LISTED_TERMS, 0, 10),
        ("ranked", PRIVATE_ROWS, 0, 0),
        ("ranked", NUM_BITS, 2, 1),
        ("columns", COLUMN_BITS, 1, 0),
        ("columns", COLUMN_BITS, 1, 81),
    ],
)
def test_forged_parameters_are_refused(name: str, tag: int, index: int, value: int, tmp_path: Path) -> None:
    file = File.parse((GOLDEN / f"{name}.bloom").read_bytes())
    assert any((t, i) == (tag, index) for t, i, _, _ in file.params)
    file.set(tag, value, index)
    data = file.build()
    with pytest.raises(fullbloom.FormatError):
        load(data, name)
    (tmp_path / "f.bloom").write_bytes(data)
    with pytest.raises(fullbloom.FormatError):
        fullbloom.open(tmp_path / "f.bloom", secret=SECRETS.get(name), verify="full")


@pytest.mark.long
@for_each("name", ["flat", "ranked", "columns"])
@for_each("seed", [1, 2, 3])
def test_a_forged_file_that_opens_answers_and_copies_without_a_crash(
    name: str, seed: int, tmp_path: Path
) -> None:
    rng, golden = random.Random(seed), (GOLDEN / f"{name}.bloom").read_bytes()
    refused = 0
    for _ in range(150):
        file = File.parse(golden)
        tag, index, _, value = rng.choice(file.params)
        if rng.random() < 0.5:
            file.set(tag, rng.choice([value + 1, value - 1, rng.getrandbits(64), rng.getrandbits(8)]), index)
        else:
            payload = bytearray(file.payload)
            payload[rng.randrange(len(payload))] ^= 1 << rng.randrange(8)
            file.payload = bytes(payload)
        (tmp_path / "f.bloom").write_bytes(file.build())
        try:
            opened = SignatureIndex.open(tmp_path / "f.bloom", secret=SECRETS.get(name))
        except (fullbloom.FormatError, fullbloom.ParameterError):
            refused += 1
            continue
        query: Any = {"city": "c1"} if name == "columns" and "city" in opened.columns else []
        if name == "columns" or not opened.columns:
            try:
                assert all(
                    row < len(opened) for row in opened.candidates(query if opened.columns else ["t1"])
                )
                opened.copy().to_bytes()
            except fullbloom.FullbloomError:
                refused += 1
    assert refused > 20


def test_names_of_columns_that_no_index_has_are_refused() -> None:
    golden = (GOLDEN / "columns.bloom").read_bytes()
    for old, new in (
        (b"city\0", b"\0"),
        (b"city\0", b"\xff\xfe\xfd\xfc\0"),
        (b"city\0", b"cityX"),
        ("Straße\0".encode(), b"city\0"),
        ("Straße\0".encode(), b"a\0b\0"),
    ):
        file = File.parse(golden)
        file.payload = file.payload.replace(old, new.ljust(len(old), b"\0"), 1)
        with pytest.raises(fullbloom.FormatError):
            load(file.build(), "columns")


def test_a_limit_on_bytes_and_a_foreign_class_are_errors(tmp_path: Path) -> None:
    data = (GOLDEN / "flat.bloom").read_bytes()
    with pytest.raises(fullbloom.FilterMemoryError, match="max_bytes"):
        SignatureIndex.from_bytes(data, max_bytes=100)
    with pytest.raises(fullbloom.FormatError):
        SignatureIndex.from_bytes(fullbloom.BloomFilter(10).to_bytes())
    with pytest.raises(fullbloom.FormatError):
        fullbloom.BloomFilter.from_bytes(data)
    fullbloom.BloomFilter(10).save(tmp_path / "b.bloom")
    with pytest.raises(fullbloom.FormatError, match="SignatureIndex"):
        SignatureIndex.open(tmp_path / "b.bloom")
