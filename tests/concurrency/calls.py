"""Every public call of every class: how it is made on a filter of any size."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import fullbloom

if TYPE_CHECKING:
    import numpy.typing as npt
    from support import Variant


class Scene(NamedTuple):
    """The objects that a call may use."""

    variant: Variant
    #: Large, filled with ``keys``.
    filter: Any
    #: Another one, which may be combined with it.
    other: Any
    keys: npt.NDArray[np.int64]
    folder: Path
    #: The file with the filter, in memory that does not change and in memory that does.
    data: bytes
    changing: bytearray

    def batch(self) -> tuple[Any, ...]:
        """The arguments of a batch that adds."""
        return (self.keys, 1) if self.variant.can("pairs") else (self.keys,)

    def build_arguments(self) -> tuple[Any, ...]:
        """The arguments of a build other than keys or hashes."""
        if self.variant.can("worlds"):
            return (-1 - self.keys,)
        return (1,) if self.variant.can("valued") else ()

    def one(self) -> tuple[Any, ...]:
        """The arguments of ``add``."""
        return (7, 1) if self.variant.can("pairs") else (7,)

    def path(self) -> Path:
        """A file with the filter."""
        return self.folder / "filter.bloom"


Call = Callable[[Scene], object]


def _writing(s: Scene) -> None:
    with s.variant.cls.open(s.path(), mode="r+") as instance:
        instance.add(1)
        instance.flush()


def _dropped(s: Scene) -> None:
    instance = s.filter.copy()
    del instance


def _suppressed(error: type[Exception], call: Callable[[], object]) -> None:
    with contextlib.suppress(error):
        call()


def _regenerated(s: Scene) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fullbloom.CapacityWarning)
        s.filter.regenerate(s.keys)


def _into(name: str) -> Call:
    def call(s: Scene) -> None:
        getattr(s.filter, name)(s.other)

    return call


# What methods want beside the keys; every other one is called without anything.
ARGUMENTS: dict[str, Call] = {
    "add": lambda s: _suppressed(fullbloom.FilterFull, lambda: s.filter.add(*s.one())),
    "add_false_positive": lambda s: s.filter.add_false_positive(5),
    "add_false_positives": lambda s: s.filter.add_false_positives(s.keys[:20_000]),
    "add_hashed": lambda s: s.filter.add_hashed(fullbloom.hash_many(s.keys)),
    "add_many": lambda s: s.filter.add_many(*s.batch()),
    "advance": lambda s: s.variant.cls(s.filter.capacity, window=10.0).advance(1e6),
    "apply_delta": lambda s: s.filter.apply_delta(s.filter.delta_to(s.other)),
    "bits": lambda s: _suppressed(fullbloom.FilterMemoryError, s.filter.bits),
    "build": lambda s: s.variant.cls.build(s.keys, *s.build_arguments()),
    "build_hashed": lambda s: s.variant.cls.build_hashed(fullbloom.hash_many(s.keys), *s.build_arguments()),
    "clear": lambda s: s.filter.copy().clear(),
    "clear_random": lambda s: s.filter.clear_random(0.01, seed=1),
    "contains": lambda s: s.filter.contains(7, at_least=2),
    "contains_hashed": lambda s: s.filter.contains_hashed(fullbloom.hash_many(s.keys)),
    "contains_many": lambda s: s.filter.contains_many(s.keys),
    "contains_many_at_least": lambda s: s.filter.contains_many_at_least(s.keys, 2),
    "count": lambda s: s.filter.count(7),
    "count_many": lambda s: s.filter.count_many(s.keys),
    "decode": lambda s: _suppressed(fullbloom.ParameterError, s.filter.decode),
    "delta_to": lambda s: s.filter.delta_to(s.other),
    "depth": lambda s: s.filter.depth(7),
    "depth_many": lambda s: s.filter.depth_many(s.keys),
    "discard": lambda s: s.filter.discard(7),
    "discard_many": lambda s: s.filter.discard_many(s.keys),
    "fpr_at_least": lambda s: s.filter.fpr_at_least(2),
    "freeze": lambda s: s.filter.freeze(keys=s.keys, fpr=0.01),
    "from_bytes": lambda s: s.variant.cls.from_bytes(s.data),
    "get": lambda s: s.filter.get(7),
    "get_hashed": lambda s: s.filter.get_hashed(fullbloom.hash_many(s.keys)),
    "get_many": lambda s: s.filter.get_many(s.keys),
    "includes": lambda s: s.filter.includes(7),
    "includes_many": lambda s: s.filter.includes_many(s.keys),
    "label": lambda s: s.filter.label(7),
    "label_many": lambda s: s.filter.label_many(s.keys),
    "merge": lambda s: s.filter.copy().merge(s.other),
    "nbytes_for": lambda s: s.variant.cls.nbytes_for(s.filter.capacity),
    "open": lambda s: s.variant.cls.open(s.path(), verify="full") if s.variant.can("map") else None,
    "positions": lambda s: s.filter.positions(7),
    "recall": lambda s: s.filter.recall(10),
    "regenerate": _regenerated,
    "remove": lambda s: (s.filter.add(7), _suppressed(KeyError, lambda: s.filter.remove(7))),
    "remove_many": lambda s: _suppressed(KeyError, lambda: s.filter.remove_many(s.keys)),
    "retouch": lambda s: s.filter.retouch(7),
    "retouch_many": lambda s: s.filter.retouch_many(s.keys[:2000]),
    "save": lambda s: s.filter.save(s.folder / "saved.bloom"),
    "update": lambda s: s.filter.update(*s.batch()),
    "set_many": lambda s: s.filter.set_many(s.keys, 1),
    "subtract": lambda s: s.filter.subtract(s.other),
    "take_secret": lambda s: _suppressed(fullbloom.SecretError, s.filter.take_secret),
    "verify": lambda s: s.filter.verify(s.keys, s.keys),
    "with_shape": lambda s: s.variant.cls.with_shape(8 * s.filter.nbytes, 7),
    "__and__": lambda s: s.filter & s.other,
    "__bool__": lambda s: bool(s.filter),
    "__contains__": lambda s: 7 in s.filter,
    "__copy__": lambda s: copy.copy(s.filter),
    "__deepcopy__": lambda s: copy.deepcopy(s.filter),
    "__eq__": lambda s: s.filter == s.filter.copy(),
    "__exit__": _writing,
    "__ge__": lambda s: s.filter >= s.other,
    "__getitem__": lambda s: s.filter[int(s.keys[0])],
    "__gt__": lambda s: s.filter > s.other,
    "__iand__": _into("__iand__"),
    "__ior__": _into("__ior__"),
    "__isub__": _into("__isub__"),
    "__ixor__": _into("__ixor__"),
    "__le__": lambda s: s.filter <= s.other,
    "__lt__": lambda s: s.filter < s.other,
    "__or__": lambda s: s.filter | s.other,
    "__reduce__": lambda s: s.filter.__reduce__(),
    "__repr__": lambda s: repr(s.filter),
    "__setitem__": lambda s: s.filter.__setitem__(int(s.keys[0]), 1),
    "__sub__": lambda s: s.filter - s.other,
    "__xor__": lambda s: s.filter ^ s.other,
}
WITH_ANOTHER = (
    "difference",
    "difference_update",
    "intersection",
    "intersection_count",
    "intersection_update",
    "isdisjoint",
    "issubset",
    "issuperset",
    "jaccard",
    "symmetric_difference",
    "symmetric_difference_update",
    "union",
    "union_count",
)
ARGUMENTS |= {name: lambda s, name=name: getattr(s.filter, name)(s.other) for name in WITH_ANOTHER}

#: What has no name of a method: freeing, buffers of others, the functions of the module.
FURTHER: dict[str, Call] = {
    "(freed)": _dropped,
    "(from bytearray)": lambda s: s.variant.cls.from_bytes(s.changing),
    "(loads)": lambda s: fullbloom.loads(s.data),
    "(open)": lambda s: fullbloom.open(s.path(), verify="full"),
    "(hash_many)": lambda s: fullbloom.hash_many(s.keys),
}

#: Dunders with a body of their own; their mirrors and the context manager's entry have none.
SPOKEN = {name for name in ARGUMENTS if name.startswith("__")}


def calls_of(variant: Variant) -> Iterator[tuple[str, Call]]:
    """Every public method, operator and attribute of the class, and what belongs to no class."""
    for name in sorted(name for name in dir(variant.cls) if hasattr(variant.cls, name)):
        own = (
            not name.startswith("_")
            or (name in SPOKEN and name not in dir(object))
            or name in {"__eq__", "__reduce__", "__repr__"}
        )
        if not own:
            continue
        if name in ARGUMENTS:
            yield name, ARGUMENTS[name]
        elif callable(getattr(variant.cls, name)):
            yield name, lambda s, name=name: getattr(s.filter, name)()
        else:
            yield name, lambda s, name=name: getattr(s.filter, name)
    for name, call in FURTHER.items():
        if variant.can("map") or name != "(open)":
            yield name, call


def _two(variant: Variant, nbytes: int, keys: npt.NDArray[np.int64]) -> tuple[Any, Any]:
    capacity, power = nbytes // 4, 1.0
    if variant.can("zones"):
        capacity, power = 1000, 0.5
    instance = variant.make(capacity)
    instance = variant.make(max(1000, int(capacity * (nbytes / instance.nbytes) ** power)))
    other = variant.make(instance.capacity)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fullbloom.CapacityWarning)
        for one in (instance, other):
            one.update(*((keys, 1) if variant.can("pairs") else (keys,)))
    return instance, other


def _two_built(variant: Variant, nbytes: int, keys: npt.NDArray[np.int64]) -> tuple[Any, Any]:
    """Built ones have the size of their keys, here of 4 bytes each, among which are ``keys``."""
    if variant.can("worlds"):
        # Some 6 bits for each of two sets of one size.
        many = np.arange(nbytes)
        return variant.cls.build(many, -1 - many), variant.cls.build(many, -1 - many)
    many = np.concatenate([keys, np.arange(max(0, nbytes // 4 - len(keys)))])
    if variant.can("valued"):
        options: dict[str, Any] = {"value_bits": 8, "check_bits": 20, "mutable": True}
        return variant.cls.build(many, 1, **options), variant.cls.build(many, 1, **options)
    return variant.cls.build(many, bits=32), variant.cls.build(many, bits=32)


def scene(variant: Variant, nbytes: int, keys: npt.NDArray[np.int64], folder: Path) -> Scene:
    """Two filters of about ``nbytes`` with ``keys`` in each, or small ones where they take no others."""
    if variant.can("numbers"):
        keys = keys % (4 * nbytes)
    if variant.can("zones"):
        keys = keys[:1000]  # each has thousands of cells
    built = variant.can("build") or variant.can("worlds")
    instance, other = _two_built(variant, nbytes, keys) if built else _two(variant, nbytes, keys)
    instance.save(folder / "filter.bloom")
    data = instance.to_bytes()
    return Scene(variant, instance, other, keys, folder, data, bytearray(data))
