"""Parameters of a filter in Redis, from those of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fullbloom import registry as structures
from fullbloom.service.failures import Refused
from fullbloom.service.redis.refusals import cannot

if TYPE_CHECKING:
    from collections.abc import Callable

#: Those that may be given besides capacity and rate, and how their texts are read.
_OPTIONS: dict[str, Callable[[str], Any]] = {
    "layout": str,
    "scheme": str,
    "hash": str,
    "shards": int,
    "allow_eviction": lambda text: text == "true",
}


def parameters(kind: str, options: dict[str, str], *, strict: bool) -> dict[str, Any]:
    """Return the parameters of the filter as the engine takes them; ``Refused`` for others."""
    plain = structures.with_role("plain")["name"]
    if kind != plain:
        raise cannot(f"is of kind {plain}; got {kind}")
    if strict:
        raise cannot("takes keys beyond its capacity, and cannot be strict")
    given = dict(options)
    if "capacity" not in given:
        raise Refused("invalid", "capacity: how many keys the filter in Redis is sized for")
    chosen: dict[str, Any] = {"capacity": int(given.pop("capacity")), "fpr": float(given.pop("fpr", "0.01"))}
    for name, text in given.items():
        if name not in _OPTIONS:
            raise cannot(f"has no parameter {name}; it has {', '.join(_OPTIONS)}")
        try:
            chosen[name] = _OPTIONS[name](text)
        except ValueError:
            raise Refused("invalid", f"options.{name}: a whole number, got {text!r}") from None
    return chosen
