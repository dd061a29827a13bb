"""An argument of the wrong type is refused by its name: every signature of the stub and the modules."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cases import for_each
from support import Variant, variants_with

import fullbloom
from fullbloom import _core

STUB = ast.parse((Path(_core.__file__).parent / "_core.pyi").read_text())
# Anything may be a key; what no batch can be made of says so without a name.
ANYTHING = {"object", "Any", "object | None"}
# The kinds of batches, which have tests of their own.
BATCHES = {"_Series", "OtherColumns", "NumPyArray", "Frame", "ArrowArray", "SupportsIndex", "KeyBuffer"}
BATCHES |= {"Mapping", "Sequence", "Key", "Keys", "Hashes", "Numbers", "ListedKeys", "ListedHashes"}
#: What is of no use to anybody, and what is of use as something else.
WRONG: dict[str, list[Any]] = {
    "int": [object(), "x", 1.5, True, [1]],
    "float": [object(), "x", [1.0]],
    "bool": [object(), "x", 2],
    "str": [object(), 5, None, b"r"],
    "bytes": [object(), 5, "x"],
    "other": [object(), 5],
    "Callable[[int, int], object]": [object(), 5, "x"],
    "Callable[[int], object]": [object(), 5, "x"],
    "Callable[[Any], Any]": [object(), 5, "x"],
    "Iterable[tuple[int, bytes]]": [object(), 5, "x", [1]],
    "path": [object(), 5.5, [1]],
}
# By name, for what an annotation does not tell.
VALUES: dict[str, Any] = {
    "capacity": 100,
    "initial_capacity": 100,
    "fpr": 0.01,
    "num_bits": 512,
    "num_counters": 512,
    "num_hashes": 3,
    "key": 7,
    "keys": [7],
    "value": 1,
    "values": [1],
    "pieces": [],
    "label": 1,
    "labels": [1],
    "areas": 3,
    "layers": 3,
    "at_least": 1,
    "age": 1.0,
    "now": 1.0,
    "share": 0.1,
    "path": "/nowhere/at all",
    "hashes": [7],
    "included": [7],
    "excluded": [8],
    "mode": "r",
    "format": "spark",
    "terms": 3,
    "bits_per_term": 3,
    "query": [7],
    "documents": [[7]],
    "recheck": bool,
    "owners": 5,
}


class Argument(NamedTuple):
    """One argument of one public call."""

    owner: str
    call: str
    name: str
    annotation: str
    others: tuple[tuple[str, bool], ...]

    @property
    def wrong(self) -> list[Any]:
        """Values that it cannot be."""
        if self.name in ("other", "like", "path"):
            return WRONG["other" if self.name == "like" else self.name]
        if self.annotation.startswith("Literal"):
            return [value for value in WRONG["str"] if value is not None]
        first = self.annotation.split(" | ")[0]
        allowed = self.annotation.split(" | ")
        values = WRONG[first]
        if "None" in allowed:
            values = [value for value in values if value is not None]
        return [value for value in values if type(value).__name__ not in allowed]


def arguments() -> list[Any]:
    """Every annotated argument of every public function and method of the stub."""
    found = []
    classes = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}

    def walk(body: list[ast.stmt], owner: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef) and node.name in fullbloom.__all__:
                shared = [statement for base in node.bases for statement in classes[ast.unparse(base)].body]
                walk([*shared, *node.body], node.name)
            public = isinstance(node, ast.FunctionDef) and (
                node.name in ("__new__", "merge") or not node.name.startswith("_")
            )
            if not public or not (owner or node.name in fullbloom.__all__):
                continue
            assert isinstance(node, ast.FunctionDef)
            required = [
                a.arg for a in [*node.args.posonlyargs, *node.args.args][: -len(node.args.defaults) or None]
            ]
            named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            required += [a.arg for a, default in named if default is None]
            only = {a.arg for a in node.args.posonlyargs}
            for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
                if a.annotation is None or ast.unparse(a.annotation) in ANYTHING:
                    continue
                if re.split(r"[\[ ]", ast.unparse(a.annotation).strip("'"))[0] in BATCHES:
                    continue
                others = tuple((name, name in only) for name in required if name not in ("self", "cls"))
                found.append(
                    Argument(owner, node.name, a.arg, ast.unparse(a.annotation).replace("'", ""), others)
                )

    walk(STUB.body, "")
    return [pytest.param(a, id=f"{a.owner}.{a.call}({a.name})") for a in found]


def called(argument: Argument, value: Any) -> Any:
    """Calls with everything right but one value."""
    instance: Any = fullbloom
    if argument.owner:
        instance = getattr(fullbloom, argument.owner)
        static = isinstance(inspect.getattr_static(instance, argument.call), classmethod | staticmethod) or (
            argument.call in ("from_bytes", "open", "nbytes_for", "with_shape", "kinds")
        )
        if not static and argument.call != "__new__":
            instance = example(argument.owner)
    call = instance if argument.call == "__new__" else getattr(instance, argument.call)
    filled = example(argument.owner) if argument.owner else fullbloom.BloomFilter(9)
    foreign = argument.call in ("from_foreign", "open_foreign")
    values = VALUES | {"data": filled.to_foreign() if foreign else filled.to_bytes()}
    if argument.owner == "ForeignStaticFilter":
        values["format"] = "fuse8"
    first, named = [], {}
    for name, positional in argument.others:
        given = value if name == argument.name else values[name]
        if positional:
            first.append(given)
        else:
            named[name] = given
    if argument.name == "times":
        first.append(value)
    elif argument.name not in dict(argument.others):
        named[argument.name] = value
    return call(*first, **named)


def example(owner: str) -> Any:
    """A filter of the class."""
    if owner == "ForeignFilter":
        return fullbloom.ForeignFilter("spark", 100, 0.01)
    if owner == "ForeignStaticFilter":
        return fullbloom.ForeignStaticFilter.build("fuse8", ["key"], key_type="str")
    if owner == "SignatureIndex":
        return fullbloom.SignatureIndex(64, 3)
    if owner in ("ForeignScalableFilter", "ForeignCuckooFilter"):
        return getattr(fullbloom, owner)(100)
    if owner == "FilterBank":
        return fullbloom.FilterBank(100)
    variant: Variant = next(
        v for v in (*variants_with(), *variants_with("worlds")) if v.cls.__name__ == owner
    )
    options = {"window": 60.0} if hasattr(variant.cls, "advance") else {}
    return variant.make(100, **options)


@pytest.mark.long
@for_each("argument", arguments())
def test_a_wrong_type_is_refused_by_the_name_of_the_argument(argument: Argument) -> None:
    for value in argument.wrong:
        with pytest.raises(fullbloom.ParameterTypeError, match=rf"\b{argument.name}\b"):
            called(argument, value)


#: What the laws take, by name; 10 for what is not here.
LAWS: dict[str, Any] = {
    "fpr": 0.01,
    "load": 0.5,
    "growth": 2.0,
    "tightening": 0.5,
    "share": 0.1,
    "fill": 0.5,
    "rank": 2,
    "query_terms": 3,
    "deviation": 0.1,
    "spare_fpr": 0.01,
    "fprs": [0.1],
    "layout": "classic",
    "num_bits": 1024,
    "num_hashes": 4,
    "num_cells": 1000,
    "bits_a": 100,
    "bits_b": 100,
    "bits_or": 150,
    "set_bits": 100,
    "decrements": 2,
    "max_value": 1,
    "area_items": [10],
    "label_cells": [10],
    "bucket_size": 4,
    "items_both": 5,
    "threshold": 1,
    "choices": 2,
    "subtables": 4,
    "num_slots": 128,
    "metadata_bits": 2.125,
    "extra": 1,
    "increments": 4,
    "stage": 1,
    "stages": 2,
    "block_bits": 512,
    "first_capacity": 100,
    "kept": fullbloom.BloomFilter(9),
    "removed": fullbloom.BloomFilter(9),
}
# What is given beside, where nothing is required and nothing would do.
BESIDE: dict[str, dict[str, Any]] = {
    "reference_card": {"num_bits": 1024, "num_hashes": 4},
    "choices": {"items": 100, "fpr": 0.01},
    "level_fprs": {"capacities": [100, 1000]},
    "single_shot_answer_bits": {"returned": 0.1},
    "fuse_failure": {"keys": 1000, "arity": 3, "factor": 1.2},
    "two_block_bits_per_key": {"num_hashes": 8},
    "two_block_fpr": {"num_hashes": 8},
    "two_block_limit_fpr": {"num_hashes": 8},
}
MODULES = ["theory", "plan"]


def laws() -> list[Any]:
    """Every annotated argument of every public function of the modules in Python."""
    found = []
    for module in MODULES:
        loaded = importlib.import_module(f"fullbloom.{module}")
        for name, call in vars(loaded).items():
            if name.startswith("_") or not inspect.isfunction(call) or "fullbloom" not in call.__module__:
                continue
            parameters = inspect.signature(call).parameters
            # Rows of the registry are what the rooms of the package hand each other.
            if "row" not in parameters:
                found += [
                    pytest.param(call, parameter, id=f"{module}.{name}({parameter.name})")
                    for parameter in parameters.values()
                ]
    return found


@for_each(("call", "parameter"), laws())
def test_a_law_names_the_invalid_argument(call: Any, parameter: inspect.Parameter) -> None:
    given = {
        p.name: LAWS.get(p.name, 10)
        for p in inspect.signature(call).parameters.values()
        if p.default is p.empty
    } | BESIDE.get(call.__name__, {})
    call(**given)
    for value in (object(), "x", [object()]):
        if type(value).__name__ in parameter.annotation or (value == "x" and "str" in parameter.annotation):
            continue
        with pytest.raises(TypeError, match=rf"\b{parameter.name}\b"):
            call(**given | {parameter.name: value})
