"""Attempts to build a binary fuse filter fail as often as their law says, at its own cells and at fewer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hostile.container import File
from support import SCALE, binomial_sd, sigmas_of

import fullbloom
from fullbloom import theory

SHARDS, ATTEMPT = 70, 3
#: What the docstring states.
OWN, OTHER = 0.02, 0.13


def attempts(made: fullbloom.BinaryFuseFilter) -> int:
    """The attempt that placed the keys of a filter of one shard, from 0, as its file tells."""
    file = File.parse(made.to_bytes())
    number = next(i for i, section in enumerate(file.sections) if section[0] == SHARDS)
    row = np.frombuffer(file.payload, "<u8", 4, file.start(number))
    return int(row[ATTEMPT])


OWN_SIZES = [(3, 3000), (3, 10_000), (3, 30_000), (4, 1000), (4, 3000), (4, 20_000)]


@pytest.mark.parametrize(("arity", "size"), OWN_SIZES)
def test_first_attempts_fail_as_often_as_the_law_says(arity: int, size: int) -> None:
    law, trials = theory.fuse_failure(size, arity), min(1000, 8_000_000 // size) * SCALE
    draw = np.random.default_rng(size)
    failed = 0
    for _ in range(trials):
        hashes = draw.integers(0, 1 << 64, size, dtype=np.uint64)
        failed += attempts(fullbloom.BinaryFuseFilter.build_hashed(hashes, bits=8, arity=arity)) > 0
    print(f"{arity} {size}: {failed} of {trials}, law {law:.4f}")
    most = max(law, failed / trials)
    assert abs(failed / trials - law) <= OWN + sigmas_of(len(OWN_SIZES)) * binomial_sd(most, trials)


def is_placed(keys: int, arity: int, factor: float, draw: np.random.Generator) -> bool:
    """Whether keys with cells in segments that follow each other come out, those alone in a cell first."""
    segment = SEGMENT[arity, keys]
    begins = max(math.ceil(factor * keys / segment) - arity + 1, 1)
    first = draw.integers(0, begins, keys)
    cells = np.stack([(first + i) * segment + draw.integers(0, segment, keys) for i in range(arity)])
    while cells.size:
        held = np.bincount(cells.ravel(), minlength=(begins + arity) * segment)
        stays = (held[cells] > 1).all(axis=0)
        if stays.all():
            return False
        cells = cells[:, stays]
    return True


#: Cells of a segment: the law's own, said once more.
SEGMENT = {
    (3, 5000): 256,
    (3, 10_000): 512,
    (3, 30_000): 1024,
    (4, 3000): 64,
    (4, 10_000): 256,
    (4, 30_000): 512,
}
CASES = [
    *((3, 5000, 1.15), (3, 5000, 1.2), (3, 5000, 1.25), (3, 10_000, 1.2), (3, 30_000, 1.18)),
    *((4, 3000, 1.2), (4, 3000, 1.23), (4, 3000, 1.25), (4, 10_000, 1.17), (4, 30_000, 1.12)),
]


@pytest.mark.parametrize(("arity", "size", "factor"), CASES)
def test_fewer_cells_fail_as_often_as_the_law_says(arity: int, size: int, factor: float) -> None:
    law, trials = theory.fuse_failure(size, arity, factor), 600_000 // size * SCALE
    draw = np.random.default_rng(round(size * factor))
    failed = sum(not is_placed(size, arity, factor, draw) for _ in range(trials))
    print(f"{arity} {size} {factor}: {failed} of {trials}, law {law:.4f}")
    assert abs(failed / trials - law) <= OTHER + sigmas_of(len(CASES)) * binomial_sd(law, trials)


def test_what_there_is_no_law_for_is_refused() -> None:
    for arguments in ((999,), (5000, 5), (5000, 3, 0.0), (5000.5, 3)):
        with pytest.raises(fullbloom.ParameterError):
            theory.fuse_failure(*arguments)
    chances = [theory.fuse_failure(1_000_000, 3, factor) for factor in (0.9, 1.0, 1.1, 1.12, 1.14)]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] == 1.0
