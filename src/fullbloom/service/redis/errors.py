"""Errors of the Redis engine as refusals of the service."""

from __future__ import annotations

from fullbloom import errors
from fullbloom.service.failures import Refused

#: The first class that an error is an instance of decides; clients retry "unavailable" after a while.
_CODES: tuple[tuple[type[errors.FullbloomError], str], ...] = (
    (errors.EngineUnavailable, "unavailable"),
    (errors.EngineTimeout, "unavailable"),
    (errors.EngineRefused, "unavailable"),
    (errors.EngineFull, "full"),
    (errors.EngineNameTaken, "exists"),
    (errors.FilterLost, "lost"),
    (errors.EngineError, "unavailable"),
    (errors.IncompatibleFilters, "incompatible"),
    (errors.FormatError, "format"),
)


def translate(error: errors.FullbloomError) -> Refused:
    """Return the refusal for an error of the engine; its text names the filter and no key or secret."""
    code = next((code for kind, code in _CODES if isinstance(error, kind)), "invalid")
    return Refused(code, str(error))


def unsupported(what: str) -> Refused:
    """Return the refusal for what a filter in Redis cannot do."""
    return Refused("unsupported", f"a filter in Redis {what}")


def not_found() -> Refused:
    """Return the refusal for a name that no filter has."""
    return Refused("missing", "not found")
