"""Guarantee: no figure of the page has drifted: all of them are measured again, with other keys."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("numpy")
pytest.importorskip("pyarrow", reason="the times of base hashes need pyarrow")

from benchmarks.figures import record
from benchmarks.figures.drift import find_drift

SUBJECTS = {subject.name: subject for subject in record.list_subjects()}
RECORD = record.load()


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_row_of_a_subject_is_measured_again(name: str) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    rows = sum(len(subject.cases) for subject in SUBJECTS.values())
    wrong = [
        find_drift(name, at, case, row, seed, rows)
        for at, (case, row) in enumerate(zip(SUBJECTS[name].cases, RECORD.rows[name], strict=True))
    ]
    assert not any(wrong), [each for each in wrong if each]
