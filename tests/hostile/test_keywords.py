"""A keyword that a constructor does not have is refused with the one that was meant."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from cases import for_each
from support import Variant, every_variant

import fullbloom

#: What users of other libraries, and those who slip, write.
MEANT = {
    "capacity": [
        "Capacity",
        "capasity",
        "capacty",
        "max_elements",
        "expected_items",
        "expected_elements",
        "n",
    ],
    "initial_capacity": ["capacity", "max_elements", "n"],
    "fpr": ["error_rate", "fp_rate", "false_positive_rate", "p", "fr", "FPR"],
    "seed": ["sed", "sead", "Seed"],
    "secret": ["secert", "secret_"],
    "layout": ["layuot", "layouts"],
    "num_hashes": ["num_hash", "k"],
    "window": ["windw"],
}

#: What is made of all its keys at once has no constructor.
BUILT = [row for row in every_variant() if row.values[0].can("build")]
STATIC_ROWS = [row for row in every_variant() if not row.values[0].can("build")]


@for_each("variant", STATIC_ROWS)
def test_a_misspelled_keyword_gets_a_suggestion(variant: Variant) -> None:
    known = {name for name, _, _ in variant.row["parameters"]} | {"seed", "secret"}
    for name, slips in MEANT.items():
        for slip in slips:
            if slip in known:
                continue
            # Whether the slip stands for what is required, or for something else, or all is there but for it.
            for given in ((), (100,)):
                with pytest.raises(fullbloom.ParameterTypeError, match=f"'{slip}'") as caught:
                    variant.cls(*given, **{slip: 1})
                assert isinstance(caught.value, TypeError)
                assert variant.cls.__name__ in str(caught.value)
                if name in known:
                    assert f"did you mean `{name}`?" in str(caught.value)


@for_each("variant", STATIC_ROWS)
def test_keywords_of_other_libraries_get_a_suggestion(variant: Variant) -> None:
    known = [name for name, _, _ in variant.row["parameters"]]
    capacity = next(name for name in known if name.endswith("capacity"))
    calls = [{"n": 1000, "p": 0.01}, {"expected_elements": 1000}, {"max_elements": 1000, "error_rate": 0.01}]
    for words in calls:
        with pytest.raises(fullbloom.ParameterTypeError, match=f"did you mean `{capacity}`"):
            variant.cls(**words)


@for_each("variant", STATIC_ROWS)
def test_a_required_argument_that_is_missing_is_named(variant: Variant) -> None:
    cls = variant.cls
    required = [name for name, _, default in variant.row["parameters"] if default is None]
    signature = inspect.signature(cls).parameters
    empty = [name for name, parameter in signature.items() if parameter.default is inspect.Parameter.empty]
    assert [name for name in empty if name != "unknown"] == required
    assert list(signature)[: len(variant.row["parameters"])] == [
        name for name, _, _ in variant.row["parameters"]
    ]
    assert list(signature)[-3:] == ["seed", "secret", "unknown"]
    assert (signature["seed"].default, signature["secret"].default) == (0, None)
    for words in ({}, {"seed": 3}):
        if required:
            with pytest.raises(
                fullbloom.ParameterTypeError, match=rf"{cls.__name__}\(\) missing .* '{required[0]}'"
            ):
                cls(**words)
    if required:
        with pytest.raises(
            fullbloom.ParameterTypeError, match=f"{required[0]} must be a whole number, got None"
        ):
            cls(None)
        with pytest.raises(
            fullbloom.ParameterTypeError, match=f"{required[0]} must be a whole number, got None"
        ):
            cls(**{required[0]: None})


@for_each("variant", STATIC_ROWS)
def test_defaults_in_the_signature_equal_those_of_the_constructor(variant: Variant) -> None:
    signature = inspect.signature(variant.cls).parameters
    shown = {name: parameter.default for name, parameter in signature.items() if name != "unknown"}
    required = {name: 100 for name, default in shown.items() if default is inspect.Parameter.empty}
    instance, said = variant.cls(**required), variant.cls(**{**shown, **required})
    assert instance.info() == said.info()


@for_each("variant", STATIC_ROWS)
@for_each("name", ["callback", "x" * 10_000, "ß", "\N{SNOWMAN}", ""])
def test_an_unknown_keyword_lists_the_known_ones(variant: Variant, name: str) -> None:
    with pytest.raises(fullbloom.ParameterTypeError, match=r"it takes .*seed, secret"):
        variant.cls(100, **{name: 1})


@for_each("variant", BUILT)
@for_each("given", [((), {}), ((100, 0.01), {}), ((), {"capacity": 100, "sead": 1})])
def test_calling_a_class_that_is_built_names_build(variant: Variant, given: tuple[Any, Any]) -> None:
    with pytest.raises(fullbloom.ParameterTypeError, match=rf"call {variant.cls.__name__}\.build\("):
        variant.cls(*given[0], **given[1])


def test_existing_keywords_are_accepted() -> None:
    instance = fullbloom.BloomFilter(capacity=100, fpr=0.1, layout="classic", seed=3, secret=None)
    assert (instance.capacity, instance.target_fpr, instance.layout, instance.seed) == (
        100,
        0.1,
        "classic",
        3,
    )
    unknown: dict[str, Any] = {}
    assert fullbloom.BloomFilter(100, **unknown).capacity == 100
    assert next(iter(inspect.signature(fullbloom.BloomFilter).parameters)) == "capacity"
