"""Files with forged counts, tables and cells: FormatError, or a filter that answers without a crash."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hostile.container import COUNT, NUM_BITS, NUM_HASHES, File
from support import SCALE, Variant, every_variant

import fullbloom

SUBTABLES, BUCKET_CELLS, BUCKETS, REMAINDER_BITS, REGIONS = range(30, 35)
NAMES = ["d-left", "deletable", "retouched"]
TAGS = [COUNT, NUM_BITS, NUM_HASHES, SUBTABLES, BUCKET_CELLS, BUCKETS, REMAINDER_BITS, REGIONS]
VALUES = [0, 1, 2, 3, 5, 6, 8, 61, 62, 64, 65, 2**31, 2**32, 2**52, 2**60, 2**63, 2**64 - 1]


def use(f: Any) -> None:
    """Every operation there is; the errors of the table itself are fine."""
    keys = list(range(-300, 300))
    f.contains_many(keys)
    f.info()
    try:
        copy = f.copy()
    except fullbloom.FormatError:  # a copy checks all cells against each other
        return
    for name in (
        "update",
        "add_many",
        "count_many",
        "discard_many",
        "remove_many",
        "add_false_positives",
        "retouch_many",
    ):
        if hasattr(copy, name):
            try:
                getattr(copy, name)(keys)
            except fullbloom.FilterFull:
                assert name in {"update", "add_many"}
            except KeyError:
                assert name == "remove_many"
    if hasattr(copy, "merge"):
        try:
            copy.merge(f)
        except fullbloom.FilterFull:
            assert isinstance(f, fullbloom.DLeftCountingFilter)
    copy.info()
    assert fullbloom.loads(copy.to_bytes()) == copy


@pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")
@pytest.mark.parametrize("name", NAMES)
def test_lying_parameters(name: str, golden: Path, tmp_path: Path) -> None:
    stored = (golden / f"{name}.bloom").read_bytes()
    path, sound = tmp_path / "lie.bloom", 0
    for tag in TAGS:
        for value in VALUES:
            file = File.parse(stored)
            file.set(tag, value)
            path.write_bytes(file.build())
            try:
                f = fullbloom.open(path, verify="header")
            except fullbloom.FormatError:
                continue
            sound += 1
            use(f)
    assert sound > 0


@pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")
@pytest.mark.parametrize("name", NAMES)
def test_any_cells_are_survived(name: str, golden: Path, tmp_path: Path) -> None:
    stored = (golden / f"{name}.bloom").read_bytes()
    path, draw, sound = tmp_path / "cells.bloom", random.Random(1), 0
    for _ in range(30 * SCALE):
        file = File.parse(stored)
        payload = bytearray(file.payload)
        for _, _, offset, length, _, _ in file.sections:
            start = offset - (len(stored) - len(payload))
            # The end of a section is left alone: it holds padding.
            noise = os.urandom(length) if draw.random() < 0.5 else bytes([draw.choice([0, 255])]) * length
            payload[start : start + length - 64] = noise[: length - 64]
        file.payload = bytes(payload)
        path.write_bytes(file.build())
        try:
            f = fullbloom.open(path, verify="header")
        except fullbloom.FormatError:
            continue
        sound += 1
        use(f)
    assert sound > 0


COUNTS = sorted({sign + value for sign in (-1, 0, 1) for value in (2**i for i in range(65))} - {-1})


@pytest.mark.parametrize("seed", range(4 * SCALE))
def test_fill_and_rate_are_shares_whatever_count_is_told(seed: int, golden: Path, tmp_path: Path) -> None:
    """Whatever number of keys a file tells, what is opened tells a fill and a rate of at most 1."""
    path, draw, sound = tmp_path / "lie.bloom", random.Random(seed), 0
    for stored in sorted(golden.glob("*.bloom")):
        file = File.parse(stored.read_bytes())
        if file.secret:
            continue
        true = next((value for tag, _, _, value in file.params if tag == COUNT), 1)
        for count in {*draw.sample(COUNTS, 8), *(true + draw.randrange(true + 2) for _ in range(8))}:
            file.set(COUNT, count)
            path.write_bytes(file.build())
            try:
                f = fullbloom.open(path, verify="header")
            except fullbloom.FormatError:
                continue
            sound += 1
            assert 0 <= f.fill <= 1, (stored.name, count)
            assert not hasattr(f, "fpr") or 0 <= f.fpr() <= 1, (stored.name, count)
    assert sound > 0


PROBER = Path(__file__).parent / "prober.py"


def probe(variant: Variant, kind: str, rounds: int, golden: Path) -> dict[str, int]:
    """What the prober says of this row's golden file; fails when it says nothing or something is wrong."""
    command = [sys.executable, str(PROBER), str(golden / f"{variant.id}.bloom"), kind, str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    last = done.stdout.strip().rsplit("\n", 1)[-1]
    assert done.returncode == 0, f"ended by {done.returncode} at {last!r}: {done.stderr[-500:]}"
    outcome: dict[str, int] = json.loads(last)
    problems = outcome.pop("problems")
    assert not problems, "\n".join(problems[:20])  # type: ignore[index]
    return outcome


@pytest.mark.parametrize("variant", every_variant())
def test_any_cells_at_all(variant: Variant, golden: Path) -> None:
    outcome = probe(variant, "payload", 60 * SCALE, golden)
    assert outcome["variations"] >= 60


@pytest.mark.parametrize("variant", every_variant())
def test_any_header_parameters(variant: Variant, golden: Path) -> None:
    outcome = probe(variant, "params", 100 * SCALE, golden)
    assert 0 < outcome["opened"] < 2 * outcome["variations"], "some lies are harmless, others are refused"
