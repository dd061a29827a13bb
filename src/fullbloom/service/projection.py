"""The false-positive rate of a filter under more load than it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fullbloom import registry as structures
from fullbloom import theory
from fullbloom.errors import FullbloomError

if TYPE_CHECKING:
    from collections.abc import Callable

#: Multiples of the present number of keys.
LOADS = (1, 2, 4)
#: Keys that a model is sized for: its rate is within a few percent of that of a filter of any size.
_MODEL_KEYS = 20_000
#: A law or a model is used where it gives the filter's own rate at the present load, within this factor.
_TOLERANCE = 1.15
#: Rates below it are too small to compare.
_NEGLIGIBLE = 1e-15
_TYPES: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "str": lambda text: text,
    "bool": lambda text: text == "true",
}


def project_rates(info: dict[str, Any]) -> list[dict[str, Any]]:
    """Return load, keys and rate for each of `LOADS`; a rate is None where the kind has no such law.

    Filters whose info has their shape follow the law of their layout. Others are compared with a model: a
    filter of the same kind and parameters for fewer keys, which is filled to the same load.
    """
    keys = info["num_added"]
    rates = _by_law(info) or _by_model(info) or [info["fpr"], None, None]
    return [{"load": load, "keys": load * keys, "fpr": rate} for load, rate in zip(LOADS, rates, strict=True)]


def _by_law(info: dict[str, Any]) -> list[float | None] | None:
    details = info["details"]
    names = ("layout", "num_bits", "num_hashes", "scheme")
    if any(details.get(name) is None for name in names):
        return None
    layout, num_bits, num_hashes, scheme = (details[name] for name in names)
    try:
        rates = [
            float(theory.fpr_at(layout, num_bits, num_hashes, load * info["num_added"], scheme))
            for load in LOADS
        ]
    except FullbloomError:
        return None
    return [*rates] if _is_close(rates[0], info["fpr"]) else None


def _by_model(info: dict[str, Any]) -> list[float | None] | None:
    """Return the rates of a small filter of the same parameters, filled in steps; None after it is full."""
    try:
        row = structures.get_row(info["kind"])
    except KeyError:  # a kind of another package's server
        return None
    if not structures.is_open(row, "key") or not info["capacity"]:
        return None
    size = min(info["capacity"], _MODEL_KEYS)
    target = [round(load * info["num_added"] / info["capacity"] * size) for load in LOADS]
    rates: list[float | None] = []
    try:
        model = _make_model(row, info, size)
        added = 0
        for count in target:
            model.update(range(added, min(count, 4 * _MODEL_KEYS)))
            added = count
            rates.append(model.fpr())
    except (FullbloomError, TypeError, ValueError, AttributeError):
        if not rates:
            return None
    rates += [None] * (len(LOADS) - len(rates))
    return rates if _is_close(rates[0], info["fpr"]) else None


def _make_model(row: dict[str, Any], info: dict[str, Any], size: int) -> Any:
    """Return an empty filter of a kind, with a filter's parameters but its capacity."""
    kinds = {name: kind.partition(" ")[0] for name, kind, _ in row["parameters"]}
    given = {name: text for name, text in info["options"] if name in kinds}
    details = info["details"]
    # The parameters that a constructor chose by the capacity.
    given |= {
        name: str(details[name]) for name in ("layout", "scheme") if name in kinds and details.get(name)
    }
    arguments = {name: _TYPES[kinds[name]](text) for name, text in given.items() if kinds[name] in _TYPES}
    arguments["capacity" if "capacity" in kinds else "initial_capacity"] = size
    return structures.get_class(row)(**arguments, seed=1)


def _is_close(rate: float | None, own: float) -> bool:
    if rate is None:
        return False
    if max(rate, own) < _NEGLIGIBLE:
        return True
    return own / _TOLERANCE <= rate <= own * _TOLERANCE
