"""Each format of the table is among the inputs from which the fuzz target starts."""

from __future__ import annotations

import base64

from compat.foreign import samples

from fullbloom.formats import detect, open_foreign, rows

LINES = [base64.b64decode(line) for line in samples.seeds.KEPT.read_text(encoding="ascii").split()]


def test_every_format_that_is_written_has_the_input_that_the_table_gives() -> None:
    assert {name for name, data in samples.seeds.create_seeds().items() if data not in LINES} == set()


def test_every_format_that_is_read_only_has_an_input() -> None:
    found = {detect(data) for data in LINES}
    for row in rows():
        if not row["written"] and row["detected"]:
            assert row["name"] in found
    assert [open_foreign(data, "pyprobables").num_hashes for data in LINES if len(data) == 32] == [7]


def test_every_class_has_files_of_ours_among_the_golden_ones() -> None:
    import fullbloom

    folder = samples.seeds.KEPT.parents[2] / "tests" / "golden" / "foreign"
    classes = {type(fullbloom.open(path)).__name__ for path in folder.glob("*.bloom")}
    assert classes == {row["class"] for row in rows()}
