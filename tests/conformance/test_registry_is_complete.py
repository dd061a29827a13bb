"""One registry row a variant, and everything that must follow from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import Variant, every_variant

import bloomery

ROWS = bloomery.variants()
FIELDS = {
    "id",
    "name",
    "class",
    "family",
    "capabilities",
    "layouts",
    "ns",
    "false_negatives",
    "merging",
    "formula",
    "paper",
}
METHODS = {
    "add": ("add", "update", "add_many", "add_hashed", "contains_many", "contains_hashed", "clear"),
    "merge": ("merge",),
    "remove": ("remove", "discard", "discard_many"),
    "count": ("count", "count_many"),
    "union": ("union", "__or__", "__ior__", "issubset", "union_count"),
    "intersect": ("intersection", "__and__", "__iand__", "intersection_count", "jaccard"),
    "estimate": ("approx_count", "fpr"),
    "map": ("open", "save"),
    "write-in-place": ("flush", "close"),
    "grow": ("stages", "stage_info", "growth", "tightening"),
}


def test_rows_are_whole_and_unique() -> None:
    for row in ROWS:
        assert set(row) >= FIELDS
        assert row["paper"]
        assert row["formula"]
        assert row["false_negatives"] in {"never", "only on misuse", "by design"}
    for field in ("id", "name", "class"):
        values = [row[field] for row in ROWS]
        assert len(set(values)) == len(values)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["name"]))
def test_a_capability_is_a_set_of_methods(row: dict[str, Any]) -> None:
    cls = getattr(bloomery, row["class"])
    assert row["class"] in bloomery.__all__
    for capability in row["capabilities"]:
        assert capability in METHODS, f"say in METHODS what {capability!r} promises"
        for method in METHODS[capability]:
            assert hasattr(cls, method), method
    # What a structure cannot do is absent from its class, not an exception.
    for capability in {"merge", "remove", "count", "union", "intersect", "grow"} - set(row["capabilities"]):
        for method in METHODS[capability]:
            assert not hasattr(cls, method) or method.startswith("__"), method


@pytest.mark.parametrize("variant", every_variant())
def test_every_row_has_a_golden_file(variant: Variant, golden: Path) -> None:
    assert (golden / f"{variant.name}-{variant.layout}.bloom").is_file(), "run tests/golden/make.py"


@pytest.mark.parametrize("variant", every_variant())
def test_classes_are_final(variant: Variant) -> None:
    with pytest.raises(TypeError):
        type("Sub", (variant.cls,), {})


@pytest.mark.parametrize("variant", every_variant("add"))
def test_what_a_filter_says_of_itself(variant: Variant) -> None:
    bloom = variant.make(1000, 0.01, seed=3)
    bloom.update(range(500))
    assert bloom.layout in {variant.layout, "auto"}
    assert (bloom.target_fpr, bloom.seed, bloom.keyed) == (0.01, 3, False)
    assert bloom.capacity >= 1000
    assert 0 < bloom.fill < 1
    assert 490 <= bloom.num_added <= 500
    assert bloom.nbytes > 0
    info = bloom.info()
    assert info["num_added"] == bloom.num_added
    assert info["seed"] == 3
    shown = repr(bloom)
    assert variant.cls.__name__ in shown
    assert len(shown) < 400
