"""Guarantee: words are hyphenated as the dictionary says, with the accesses of Bloom's formula."""

from __future__ import annotations

import dbm.dumb
import math
import random

import pytest

from fullbloom import ParameterError, theory
from fullbloom.recipes.hyphenation import Hyphenator, find_exceptions

SEED = 1970


def split(word: str) -> str:
    return word[:2] + "-" + word[2:]


def draw_words(draw: random.Random, count: int) -> list[str]:
    return [f"{number:x}{draw.getrandbits(32):x}" for number in range(count)]


def test_every_word_is_hyphenated_as_without_a_filter():
    draw = random.Random(SEED)
    words = draw_words(draw, 5000)
    truth = {word: split(word) if draw.random() < 0.9 else word for word in words}
    program = Hyphenator(find_exceptions(truth, split), split, seed=draw.getrandbits(64))
    assert {word: program.hyphenate(word) for word in words} == truth, SEED
    assert program.words == 5000
    assert program.accesses - program.wasted == sum(word == parts for word, parts in truth.items())


def test_accesses_avoided_match_the_formula_of_1970_for_random_shapes():
    draw = random.Random(SEED)
    for _ in range(5):
        words = draw_words(draw, 40_000)
        known = draw.randint(2000, 8000)
        num_bits, num_hashes = known * draw.randint(2, 9), draw.randint(1, 6)
        program = Hyphenator(
            dict.fromkeys(words[:known], ""),
            split,
            num_bits=num_bits,
            num_hashes=num_hashes,
            seed=draw.getrandbits(64),
        )
        for word in words:
            program.hyphenate(word)
        strangers = len(words) - known
        rate = theory.classic_fpr(known, num_bits, num_hashes)
        # The fill of the filter varies, too: by less than sqrt(bits) / 2 of its bits.
        fill = theory.fill(known, num_bits, num_hashes)
        of_the_fill = num_hashes * fill ** (num_hashes - 1) / (2 * math.sqrt(num_bits))
        error = math.hypot(math.sqrt(rate * (1 - rate) / strangers), of_the_fill)
        assert abs(program.wasted / strangers - rate) < 4.5 * error, (SEED, num_bits, num_hashes)


def test_the_dictionary_may_be_a_file(tmp_path):
    with dbm.dumb.open(str(tmp_path / "exceptions"), "c") as exceptions:
        exceptions["father"] = "fa-ther"
        program = Hyphenator(exceptions, split)
        assert program.hyphenate("father") == "fa-ther"


def test_an_empty_dictionary_needs_no_access():
    program = Hyphenator({}, split)
    assert program.avoided == 1.0
    assert program.hyphenate("word") == "wo-rd"
    assert program.accesses == 0


@pytest.mark.parametrize("shape", [{"num_bits": 0}, {"num_hashes": 0}])
def test_a_shape_that_no_filter_has_is_refused(shape):
    with pytest.raises(ParameterError):
        Hyphenator({"a": "a"}, split, **shape)
