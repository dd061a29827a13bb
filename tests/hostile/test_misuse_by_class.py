"""Over every row: unlike merges, wrong keys, mapped files. A clear error, and nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import for_each
from support import SECRET, Variant, every_variant, variants_with

import fullbloom

BAD_KEYS: dict[str, Any] = {
    "None": None,
    "list": ["a"],
    "object": object(),
    "set": {1},
    "None in a tuple": ("a", None),
    "complex": 1j,
}


def fill(variant: Variant, **options: Any) -> Any:
    return variant.build_from(range(100), options.pop("capacity", 200), options.pop("fpr", 0.01), **options)


@for_each("difference", ["seed", "secret"])
@for_each("variant", every_variant("merge"))
def test_filters_with_other_seeds_or_secrets_do_not_merge(variant: Variant, difference: str) -> None:
    options: dict[str, Any] = {"seed": {"seed": 2}, "secret": {"secret": SECRET}}[difference]
    left, right = fill(variant), fill(variant, **options)
    before = left.to_bytes(), right.to_bytes()
    for one, other in ((left, right), (right, left)):
        with pytest.raises(fullbloom.IncompatibleFilters, match=difference):
            one.merge(other)
    assert (left.to_bytes(), right.to_bytes()) == before
    assert left != right


@for_each("options", [{"capacity": 5000}, {"fpr": 1e-5}], ids=["capacity", "fpr"])
@for_each("variant", every_variant("merge"))
def test_filters_of_other_shapes_merge_atomically(variant: Variant, options: dict[str, Any]) -> None:
    left = fill(variant)
    right = variant.build_from(range(1000, 1050), options.get("capacity", 200), options.get("fpr", 0.01))
    before = left.to_bytes(), right.to_bytes()
    try:
        left.merge(right)
    except fullbloom.IncompatibleFilters as error:
        assert left.to_bytes() == before[0]
        assert "(" in str(error), "the message names the fields that differ"
    else:
        assert all(left.contains_many([*range(100), *range(1000, 1050)]))
    assert right.to_bytes() == before[1]


@for_each("variant", every_variant("merge"))
def test_other_classes_do_not_merge(variant: Variant) -> None:
    instance = fill(variant)
    before = instance.to_bytes()
    others = [other.make(100) for other in variants_with() if other.cls is not variant.cls]
    for other in (set(), None, 5, *others):
        with pytest.raises(TypeError):
            instance.merge(other)
        assert instance != other
    assert instance.to_bytes() == before


@for_each("bad", BAD_KEYS)
@for_each("variant", every_variant("add"))
def test_unsupported_keys_are_refused(variant: Variant, bad: str) -> None:
    instance, key = fill(variant), BAD_KEYS[bad]
    before = instance.to_bytes()
    calls: list[Callable[[], Any]] = [lambda: key in instance]
    if variant.can("pairs"):
        calls.append(lambda: instance.add(key, 1))
    else:
        calls.append(lambda: instance.add(key))
        if key is not None:  # a null of a batch is skipped
            calls += [lambda: instance.add_many([key]), lambda: instance.update([key])]
    if key is not None:
        calls.append(lambda: instance.contains_many([key]))
    for word, method in (
        ("remove", "remove"),
        ("remove", "discard"),
        ("count", "count"),
        ("delete", "remove"),
        ("positions", "positions"),
    ):
        if variant.can(word):
            calls.append(lambda method=method: getattr(instance, method)(key))
    for word, method in (("label", "label"), ("value", "get")):
        if variant.can(word):
            calls.append(lambda method=method: getattr(instance, method)(key))
    for call in calls:
        with pytest.raises(fullbloom.KeyTypeError):
            call()
    assert instance.to_bytes() == before


def writes(variant: Variant) -> dict[str, Callable[[Any], Any]]:
    """Every way to change a filter of this row."""
    ways: dict[str, Callable[[Any], Any]] = {}
    if not variant.can("build"):
        ways |= {"add": lambda f: variant.add(f, "x"), "clear": lambda f: f.clear()}
    if variant.can("keys"):
        ways |= {
            "update": lambda f: f.update(["x"]),
            "add_many": lambda f: f.add_many(["x"]),
            "update numpy": lambda f: f.update(np.arange(5)),
            "add_hashed": lambda f: f.add_hashed(5),
            "add_hashed numpy": lambda f: f.add_hashed(np.arange(5, dtype=np.uint64)),
        }
    if variant.can("union"):
        ways |= {"|=": lambda f: f.__ior__(f.copy()), "&=": lambda f: f.__iand__(f.copy())}
    if variant.can("remove"):
        ways |= {
            "remove": lambda f: f.remove(1),
            "discard": lambda f: f.discard(1),
            "remove times": lambda f: f.remove(1, 1) if variant.can("count") else f.remove(1),
            "remove_many": lambda f: f.remove_many([1, 2]),
            "discard_many": lambda f: f.discard_many([1, 2]),
            "discard_many numpy": lambda f: f.discard_many(np.arange(5)),
        }
    if variant.can("delete"):
        ways |= {"remove": lambda f: f.remove(1), "remove_many": lambda f: f.remove_many([1, 2])}
    if variant.can("merge"):
        ways["merge"] = lambda f: f.merge(f.copy())
    return ways


@for_each("variant", every_variant("map"))
def test_mapped_files_are_read_only(variant: Variant, tmp_path: Path) -> None:
    path = tmp_path / "filter.bloom"
    instance = fill(variant)
    instance.save(path)
    stored = path.read_bytes()
    for name, write in writes(variant).items():
        mapped = fullbloom.open(path)
        with pytest.raises(fullbloom.ReadOnlyFilter) as caught:
            write(mapped)
        assert "copy()" in str(caught.value), name
        assert mapped == instance, name
        assert path.read_bytes() == stored
        write(mapped.copy())
        assert path.read_bytes() == stored


@for_each("variant", every_variant("add"))
def test_secrets_are_not_serialised(variant: Variant) -> None:
    import pickle

    instance = fill(variant, secret=SECRET)
    assert instance.keyed
    shown = [instance.to_bytes(), repr(instance).encode(), repr(instance.info()).encode()]
    assert not any(SECRET in text for text in shown)
    with pytest.raises(TypeError, match="secret"):
        pickle.dumps(instance)
    with pytest.raises(fullbloom.ParameterError, match="secret"):
        fullbloom.loads(instance.to_bytes())
    assert fullbloom.loads(instance.to_bytes(), secret=SECRET) == instance
