"""A keyword that a constructor does not have is refused with the one that was meant."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from support import Variant, every_variant

import bloomery

#: What users of other libraries, and those who slip, write.
MEANT = {
    "capacity": ["Capacity", "capasity", "capacty", "max_elements", "expected_items"],
    "fpr": ["error_rate", "fp_rate", "false_positive_rate", "p", "fr", "FPR"],
    "seed": ["sed", "sead", "Seed"],
    "secret": ["secert", "secret_"],
    "layout": ["layuot", "layouts"],
    "num_hashes": ["num_hash", "k"],
    "window": ["windw"],
}

#: What is made of all its keys at once has no constructor.
BUILT = [row for row in every_variant() if row.values[0].can("build")]
MADE = [row for row in every_variant() if not row.values[0].can("build")]


@pytest.mark.parametrize("variant", MADE)
def test_a_slip_is_told_what_was_meant(variant: Variant) -> None:
    known = {name for name, _, _ in variant.row["parameters"]} | {"seed", "secret"}
    for name, slips in MEANT.items():
        for slip in slips:
            with pytest.raises(bloomery.ParameterTypeError, match=f"'{slip}'") as caught:
                variant.cls(100, **{slip: 1})
            assert isinstance(caught.value, TypeError)
            assert variant.cls.__name__ in str(caught.value)
            if name in known:
                assert f"did you mean `{name}`?" in str(caught.value)


@pytest.mark.parametrize("variant", MADE)
@pytest.mark.parametrize("name", ["callback", "x" * 10_000, "ß", "\N{SNOWMAN}", ""])
def test_a_keyword_like_no_other_is_told_what_there_is(variant: Variant, name: str) -> None:
    with pytest.raises(bloomery.ParameterTypeError, match=r"it takes .*seed, secret"):
        variant.cls(100, **{name: 1})


@pytest.mark.parametrize("variant", BUILT)
@pytest.mark.parametrize("given", [((), {}), ((100, 0.01), {}), ((), {"capacity": 100, "sead": 1})])
def test_what_is_built_says_so_when_it_is_called(variant: Variant, given: tuple[Any, Any]) -> None:
    with pytest.raises(bloomery.ParameterTypeError, match=rf"call {variant.cls.__name__}\.build\("):
        variant.cls(*given[0], **given[1])


def test_keywords_that_there_are_go_on_being_taken() -> None:
    made = bloomery.BloomFilter(capacity=100, fpr=0.1, layout="classic", seed=3, secret=None)
    assert (made.capacity, made.target_fpr, made.layout, made.seed) == (100, 0.1, "classic", 3)
    unknown: dict[str, Any] = {}
    assert bloomery.BloomFilter(100, **unknown).capacity == 100
    assert next(iter(inspect.signature(bloomery.BloomFilter).parameters)) == "capacity"
