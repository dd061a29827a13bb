"""Static filters of other packages: how each is built of an array of 64-bit hashes, asked, and measured."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: The C originals of these, by what they are held against.
ORIGINALS = {"binary-fuse": "C fuse8", "xor": "C xor8"}


@dataclass(frozen=True)
class StaticRival:
    """``build`` takes a uint64 array, ``contains_many`` the filter and a list, ``nbytes`` the filter."""

    name: str
    build: Callable[[Any], Any]
    nbytes: Callable[[Any], int] | None
    contains_many: Callable[[Any, list[Any]], Any] | None = None
    slow: bool = False
    """Takes a list of Python objects: timed on a tenth of the keys."""


def _original(name: str, kind: str, populate: str) -> StaticRival:
    module = importlib.import_module("pyfusefilter._xorfilter")
    ffi, lib = module.ffi, module.lib

    def build(hashes: Any) -> Any:
        instance = ffi.gc(ffi.new(f"{kind}_t *"), getattr(lib, f"{kind}_free"))
        keys = ffi.from_buffer("uint64_t[]", hashes)
        if not getattr(lib, f"{kind}_allocate")(len(keys), instance):
            raise MemoryError
        if not getattr(lib, f"{kind}_{populate}")(keys, len(keys), instance):
            raise ValueError(f"{name} did not build")
        return instance

    return StaticRival(name, build, lambda instance: int(getattr(lib, f"{kind}_size_in_bytes")(instance)))


def _user(module: str, cls: str, nbytes: str, **options: float) -> StaticRival:
    instance = getattr(importlib.import_module(module), cls)
    return StaticRival(
        f"{module}.{cls}",
        lambda keys: instance(keys, **options),
        lambda f: int(getattr(f, nbytes)()),
        lambda f, keys: list(map(f.contains, keys)),
        slow=True,
    )


def _populated(module: str, cls: str) -> StaticRival:
    instance = getattr(importlib.import_module(module), cls)

    def build(keys: list[int]) -> Any:
        f = instance(len(keys))
        f.populate(keys)
        return f

    return StaticRival(
        f"{module}.{cls}",
        build,
        lambda f: int(f.size_in_bytes()),
        lambda f, keys: list(map(f.contains, keys)),
        slow=True,
    )


def _sketch_fuse() -> StaticRival:
    instance = importlib.import_module("sketch_oxide").BinaryFuseFilter
    return StaticRival(
        "sketch_oxide.BinaryFuseFilter",
        lambda keys: instance(keys, bits_per_entry=8),
        None,
        lambda f, keys: f.contains_batch(keys),
        slow=True,
    )


def _sketch_ribbon() -> StaticRival:
    instance = importlib.import_module("sketch_oxide").RibbonFilter

    def build(keys: list[int]) -> Any:
        f = instance(len(keys), fpr=0.01)
        f.insert_batch([key.to_bytes(8, "little") for key in keys])
        f.finalize()
        return f

    return StaticRival(
        "sketch_oxide.RibbonFilter",
        build,
        lambda f: int(f.memory_usage()),
        lambda f, keys: f.contains_batch([key.to_bytes(8, "little") for key in keys]),
        slow=True,
    )


#: By the set of rivals that a definition names.
MAKERS: dict[str, tuple[Callable[[], StaticRival], ...]] = {
    "bits": (
        lambda: _original("C fuse8", "binary_fuse8", "populate"),
        lambda: _original("C xor8", "xor8", "buffered_populate"),
        lambda: _user("pyfusefilter", "Fuse8", "size_in_bytes"),
        lambda: _user("pyfusefilter", "Xor8", "size_in_bytes"),
        lambda: _populated("pyxorfilter", "Fuse8"),
        lambda: _populated("pyxorfilter", "Xor8"),
        lambda: _user("binary_fuse", "BinaryFuse8", "memory_usage_bytes"),
        _sketch_fuse,
    ),
    "percent": (_sketch_ribbon,),
}


def _tried(rival: StaticRival) -> StaticRival:
    import numpy as np

    hashes = np.arange(1000, dtype=np.uint64) << np.uint64(54)
    rival.build(hashes.tolist() if rival.slow else hashes)
    return rival


def load(which: str) -> tuple[list[StaticRival], list[str]]:
    """The rivals of a set that can run here, and for each of the others one line with the reason."""
    ready, missing = [], []
    for make in MAKERS[which]:
        try:
            ready.append(_tried(make()))
        except Exception as error:  # noqa: BLE001 - whatever a foreign package raises, it is left out
            missing.append(f"static rival: {type(error).__name__}: {error}")
    return ready, missing
