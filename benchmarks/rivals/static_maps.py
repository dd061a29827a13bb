"""Maps of other kinds: how each is built of keys and values, asked, and measured."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class MapRival:
    """``keys`` makes its keys of an array of integers; ``get_many`` takes the map and such keys."""

    name: str
    keys: Callable[[Any], list[Any]]
    build: Callable[[list[Any], list[int]], Any]
    get_many: Callable[[Any, list[Any]], Any]
    nbytes: Callable[[Any], int]


def _dict() -> MapRival:
    def nbytes(instance: dict[int, int]) -> int:
        # Values below 257 are objects that Python has anyway.
        return sys.getsizeof(instance) + sum(map(sys.getsizeof, instance))

    return MapRival(
        "dict",
        lambda array: list(array.tolist()),
        lambda keys, values: dict(zip(keys, values, strict=True)),
        lambda instance, keys: list(map(instance.get, keys)),
        nbytes,
    )


def _fastconstmap() -> MapRival:
    from fastconstmap import VerifiedConstMap

    return MapRival(
        "fastconstmap.VerifiedConstMap",
        lambda array: [f"{key:x}" for key in array.tolist()],
        lambda keys, values: VerifiedConstMap(dict(zip(keys, values, strict=True))),
        lambda instance, keys: instance.get_many(keys),
        lambda instance: int(instance.nbytes()),
    )


MAKERS: tuple[Callable[[], MapRival], ...] = (_fastconstmap, _dict)


def _tried(rival: MapRival) -> MapRival:
    import numpy as np

    keys = rival.keys(np.arange(1000))
    instance = rival.build(keys, [7] * 1000)
    if list(rival.get_many(instance, keys[:2])) != [7, 7] or rival.nbytes(instance) <= 0:
        raise ValueError(f"{rival.name} answers wrongly")
    return rival


def load() -> tuple[list[MapRival], list[str]]:
    """The rivals that can run here, and for each of the others one line with the reason."""
    ready, missing = [], []
    for make in MAKERS:
        try:
            ready.append(_tried(make()))
        except Exception as error:  # noqa: BLE001 - whatever a foreign package raises, it is left out
            missing.append(f"map rival: {type(error).__name__}: {error}")
    return ready, missing
