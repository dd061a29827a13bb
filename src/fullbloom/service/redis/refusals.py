"""From the engine's errors to what the service answers."""

from __future__ import annotations

from fullbloom.errors import (
    EngineError,
    EngineFull,
    EngineNameTaken,
    EngineRefused,
    EngineTimeout,
    EngineUnavailable,
    FilterLost,
    FormatError,
    FullbloomError,
    IncompatibleFilters,
)
from fullbloom.service.failures import Refused

#: The first that an error is one of; clients try "unavailable" again after a while.
_CODES: tuple[tuple[type[FullbloomError], str], ...] = (
    (EngineUnavailable, "unavailable"),
    (EngineTimeout, "unavailable"),
    (EngineRefused, "unavailable"),
    (EngineFull, "full"),
    (EngineNameTaken, "exists"),
    (FilterLost, "lost"),
    (EngineError, "unavailable"),
    (IncompatibleFilters, "incompatible"),
    (FormatError, "format"),
)


def refused(error: FullbloomError) -> Refused:
    """Return the refusal for an error of the engine; its text names the filter and no key or secret."""
    code = next((code for kind, code in _CODES if isinstance(error, kind)), "invalid")
    return Refused(code, str(error))


def cannot(what: str) -> Refused:
    """Return the refusal for what a filter in Redis cannot do."""
    return Refused("unsupported", f"a filter in Redis {what}")


def missing() -> Refused:
    """Return the refusal for a name that no filter has."""
    return Refused("missing", "not found")
