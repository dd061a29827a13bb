"""One registry row a variant, and everything that must follow from it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from support import Variant, every_variant

import fullbloom
from fullbloom import registry

ROWS = fullbloom.variants()
EVERY = [*every_variant(), *every_variant("worlds")]
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
    "role",
    "adds",
    "entry",
    "once",
    "fixed",
}
# What a word of the registry promises: each of these methods. Classes whose add takes pairs have batches of
# their own, so they promise less under "add".
METHODS: dict[str, tuple[str, ...]] = {
    "static": ("build", "build_hashed", "contains_many", "contains_hashed"),
    "add": ("add", "update", "add_many", "add_hashed", "contains_many", "contains_hashed", "clear"),
    "merge": ("merge", "union", "__or__", "__ior__"),
    "remove": ("remove", "discard", "remove_many", "discard_many"),
    "delete": ("remove", "discard", "remove_many", "discard_many"),
    "positions": ("positions",),
    "bits": ("bits",),
    "count": ("count", "count_many"),
    # bit for bit the filter of the united keys
    "union": ("union", "issubset"),
    "intersect": (
        "intersection",
        "intersection_update",
        "__and__",
        "__iand__",
        "issubset",
        "issuperset",
        "isdisjoint",
        "union_count",
        "intersection_count",
        "jaccard",
    ),
    # of values, exactly
    "overlap": ("intersection", "__and__", "__iand__", "intersection_count", "isdisjoint"),
    "estimate": ("approx_count", "fpr"),
    "expire": (),
    "retouch": ("retouch", "add_false_positive", "clear_random"),
    "label": ("label", "label_many"),
    "value": ("get", "get_many"),
    "decode": ("decode", "subtract", "__sub__"),
    "map": ("open", "save"),
    "write-in-place": ("flush", "close"),
}
WORLD = ("build", "includes", "includes_many", "verify", "kinds", "delta_to", "apply_delta")
PAIRS_ADD = ("add", "contains_many", "contains_hashed", "clear")
# Growing is either a chain of stages or one table that is made larger.
GROWING = (("stages", "stage_info"), ("grow",))
# Words whose methods are absent from a class without them.
ABSENT = (
    "add",
    "static",
    "merge",
    "remove",
    "delete",
    "count",
    "intersect",
    "label",
    "value",
    "positions",
    "bits",
)
EVERYWHERE = (
    "contains_many",
    "fpr",
    "fill",
    "nbytes",
    "nbytes_for",
    "capacity",
    "target_fpr",
    "num_added",
    "seed",
    "keyed",
    "info",
    "to_bytes",
    "from_bytes",
    "save",
    "open",
    "copy",
    "freeze",
    "_repr_html_",
)
#: What wants an answer for any key, or a number of keys in place of the keys.
OPEN = ("contains_many", "nbytes_for", "freeze")
ROOT = Path(__file__).resolve().parents[2]


def methods_of(row: dict[str, Any], capability: str) -> tuple[str, ...]:
    """The methods that ``capability`` promises in this row."""
    if capability == "add" and {"label", "value"} & set(row["capabilities"]):
        return PAIRS_ADD
    if registry.is_built(row, "included", "excluded"):
        return WORLD if capability == "static" else METHODS[capability]
    return METHODS[capability]


def test_rows_are_whole_and_unique() -> None:
    for row in ROWS:
        assert set(row) >= FIELDS
        assert row["paper"]
        assert row["formula"]
        assert row["merging"]
        assert row["false_negatives"] in {"never", "only on misuse", "by design"}
        assert all(0 < ns < 10_000 for ns in row["ns"])
    for field in ("id", "name", "class"):
        values = [row[field] for row in ROWS]
        assert len(set(values)) == len(values)


def test_each_role_is_played_by_one_structure() -> None:
    assert sorted(row["role"] for row in ROWS if row["role"]) == ["growing", "plain"]


@for_each("row", ROWS, ids=lambda row: str(row["name"]))
def test_a_row_states_the_arguments_of_add(row: dict[str, Any]) -> None:
    static = "static" in row["capabilities"]
    assert ("add" in row["capabilities"]) == (not static)
    if static:
        values = "values" in inspect.signature(getattr(fullbloom, row["class"]).build).parameters
        assert registry.is_built(row, "key", "value") == values
        assert tuple(row["entry"]) in {("key",), ("key", "value"), ("included", "excluded")}
        return
    arguments = inspect.signature(getattr(fullbloom, row["class"]).add).parameters
    counted = {"times"} if "count" in row["capabilities"] else set()
    assert registry.is_open(row, "key", "value") == (set(arguments) != {"self", "key"} | counted)
    if registry.is_open(row, "number"):
        instance = getattr(fullbloom, row["class"])(10)
        assert instance.add(9)
        with pytest.raises(fullbloom.ParameterError):
            instance.add("9")


@pytest.mark.parametrize("row", [row for row in ROWS if row["fixed"]], ids=lambda row: str(row["name"]))
def test_fixed_keywords_keep_a_filter_at_its_bytes(row: dict[str, Any]) -> None:
    cls = getattr(fullbloom, row["class"])
    fixed, free = cls(1000, 0.01, **row["fixed"]), cls(1000, 0.01)
    free.update(range(5000))
    with pytest.raises(fullbloom.FilterFull):
        fixed.update(range(5000))
    assert fixed.nbytes <= cls.nbytes_for(1000, 0.01) < free.nbytes


@for_each("row", ROWS, ids=lambda row: str(row["name"]))
def test_a_capability_is_a_set_of_methods(row: dict[str, Any]) -> None:
    cls = getattr(fullbloom, row["class"])
    assert row["class"] in fullbloom.__all__
    for method in EVERYWHERE:
        assert hasattr(cls, method) == (
            not registry.is_built(row, "included", "excluded") or method not in OPEN
        ), method
    for capability in set(row["capabilities"]) - {"grow"}:
        assert capability in METHODS, f"say in METHODS what {capability!r} promises"
        for method in methods_of(row, capability):
            assert hasattr(cls, method), method
    grows = any(all(hasattr(cls, method) for method in methods) for methods in GROWING)
    assert grows == ("grow" in row["capabilities"])
    # What a structure cannot do is absent from its class, not an exception.
    promised = {method for word in set(row["capabilities"]) - {"grow"} for method in methods_of(row, word)}
    for capability in set(ABSENT) - set(row["capabilities"]):
        for method in set(METHODS[capability]) - promised:
            assert not hasattr(cls, method) or method.startswith("__"), method


@for_each("variant", EVERY)
def test_files_lead_to_the_class_of_the_row(variant: Variant, golden: Path) -> None:
    assert type(fullbloom.open(golden / f"{variant.id}.bloom")) is variant.cls


@for_each("variant", EVERY)
def test_every_row_has_a_golden_file(variant: Variant, golden: Path) -> None:
    path = golden / f"{variant.id}.bloom"
    assert path.is_file(), "run tests/golden/make.py"
    assert type(fullbloom.open(path)) is variant.cls


@for_each("row", ROWS, ids=lambda row: str(row["name"]))
def test_every_row_has_a_page(row: dict[str, Any]) -> None:
    assert (ROOT / "docs" / "filters" / f"{row['name']}.md").is_file(), "run python -m scripts.pages"


@for_each("variant", EVERY)
def test_classes_are_final(variant: Variant) -> None:
    with pytest.raises(TypeError):
        type("Sub", (variant.cls,), {})


@for_each("variant", every_variant("add"))
def test_info_and_repr_state_the_parameters(variant: Variant) -> None:
    bloom = variant.make(1000, 0.01, seed=3)
    variant.update(bloom, range(500))
    assert getattr(bloom, "layout", None) in {variant.layout, "auto"}
    assert (bloom.target_fpr, bloom.seed, bloom.keyed) == (0.01, 3, False)
    assert bloom.capacity >= 1000
    assert 0 < bloom.fill < 1
    assert 480 <= bloom.num_added <= 500
    assert bloom.nbytes > 0
    assert 0 <= bloom.fpr() <= 0.05
    assert variant.cls.nbytes_for(1000, 0.01) <= variant.cls.nbytes_for(100_000, 0.01)
    info = bloom.info()
    assert info["num_added"] == bloom.num_added
    assert info["seed"] == 3
    shown = repr(bloom)
    assert variant.cls.__name__ in shown
    assert len(shown) < 400
    assert f": {bloom.num_added} keys" in shown
    assert "nan" not in shown.lower()
    assert ("layout=" in shown) == (variant.layout is not None)
