"""Guarantee: an archive loses no block and stores none twice, and no block that has a key is left out."""

from __future__ import annotations

import dbm.dumb
import random

import pytest

from fullbloom import FilterMemoryError
from fullbloom.recipes.blocks import Archive, BlockFilters

SEED = 1970


def test_every_block_is_read_back_and_stored_once():
    draw = random.Random(SEED)
    fpr = draw.choice([0.05, 0.01])
    archive = Archive({}, fpr=fpr)
    blocks = [draw.randbytes(draw.randint(0, 20)) for _ in range(5000)]
    writes = [draw.choice(blocks) for _ in range(10_000)]
    scores = {data: archive.write(data) for data in writes}
    assert all(archive.read(score) == data for data, score in scores.items())
    assert archive.written == len(archive.index) == len(scores)
    lookups = archive.lookups - len(scores) - (10_000 - len(scores))  # of new blocks
    assert lookups <= len(scores) * fpr + 5 * (len(scores) * fpr) ** 0.5, SEED


def test_an_absent_block_is_an_error_mostly_without_a_lookup():
    archive = Archive({}, fpr=0.01)
    archive.write(b"data")
    before = archive.lookups
    for number in range(1000):
        with pytest.raises(KeyError):
            archive.read(number.to_bytes(32))
    assert archive.lookups - before < 40  # 10 on average


def test_an_archive_on_disk_goes_on_after_it_was_opened_again(tmp_path):
    for run in range(2):
        with dbm.dumb.open(str(tmp_path / "archive"), "c") as index:
            archive = Archive(index)
            archive.write(b"data")
            assert archive.written == 1 - run


class FailingIndex(dict):
    """Fails each third time that a block is stored."""

    def __setitem__(self, score, data):
        self.stored = getattr(self, "stored", 0) + 1
        if self.stored % 3 == 0:
            raise OSError("no space left on the device")
        super().__setitem__(score, data)


def test_a_write_that_fails_at_either_step_leaves_an_archive_in_which_every_block_is_found():
    draw = random.Random(SEED)
    archive = Archive(FailingIndex())

    class FailingFilter:
        """Fails now and then when it has to grow, before anything is added."""

        def __init__(self, filter_):
            self.filter = filter_

        def __contains__(self, score):
            return score in self.filter

        def add(self, score):
            if draw.random() < 0.3:
                raise FilterMemoryError("no memory")
            return self.filter.add(score)

    archive.filter = FailingFilter(archive.filter)
    failed = 0
    for number in range(3000):
        data = b"%d" % draw.randrange(500)
        try:
            score = archive.write(data)
        except (OSError, FilterMemoryError):
            failed += 1
        else:
            assert archive.read(score) == data, number
        assert all(score in archive.filter for score in archive.index)
    assert failed > 100
    assert archive.written == len(archive.index)


def test_every_block_that_has_a_key_is_found():
    draw = random.Random(SEED)
    bits = draw.randint(6, 12)
    filters = BlockFilters(bits=bits)
    held = {f"block {at}": [draw.getrandbits(128).to_bytes(16) for _ in range(2000)] for at in range(30)}
    for name, keys in held.items():
        filters.add(name, keys)
    assert all(name in filters.find(key) for name, keys in held.items() for key in keys[:50])
    found = sum(len(filters.find(draw.randbytes(16))) for _ in range(2000))
    expected = 2000 * 30 / 2**bits
    assert found <= expected + 5 * expected**0.5, SEED


def test_a_block_can_be_replaced_and_removed():
    filters = BlockFilters(bits=16)
    filters.add("a", ["old"])
    filters.add("a", ["new"])
    assert (filters.find("old"), filters.find("new")) == ([], ["a"])
    filters.remove("a")
    assert (filters.find("new"), filters.nbytes) == ([], 0)
    with pytest.raises(KeyError):
        filters.remove("a")


def test_a_block_without_keys_is_never_found():
    filters = BlockFilters()
    filters.add("empty", [])
    assert filters.find("key") == []
