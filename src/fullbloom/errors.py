"""The exceptions of Fullbloom: one tree, each also the built-in exception it is.

Every message names the value at fault and the remedy.

>>> import fullbloom
>>> try:
...     fullbloom.BloomFilter(1000, fpr=1.5)
... except ValueError as error:
...     print(error)
fpr must be between 0 and 1 (exclusive), got 1.5
"""

__all__ = [
    "CapacityWarning",
    "EngineError",
    "EngineFull",
    "EngineNameTaken",
    "EngineRefused",
    "EngineTimeout",
    "EngineUnavailable",
    "FilterFull",
    "FilterLost",
    "FilterMemoryError",
    "FilterRolledBack",
    "FormatError",
    "FullbloomError",
    "IncompatibleFilters",
    "KeyDomainWarning",
    "KeyTypeError",
    "MissingOperation",
    "ParameterError",
    "ParameterTypeError",
    "ReadOnlyFilter",
    "RemovedKeyError",
    "SecretError",
]


class FullbloomError(Exception):
    """Root of all exceptions raised on purpose."""


class ParameterError(FullbloomError, ValueError):
    """A parameter is out of its range."""


class ParameterTypeError(FullbloomError, TypeError):
    """A parameter has the wrong type."""


class KeyTypeError(FullbloomError, TypeError):
    """A key has no canonical bytes; the message lists the types that do."""


class MissingOperation(FullbloomError, AttributeError, TypeError):
    """A structure has no such method or operator; the message names what has."""


class FilterMemoryError(FullbloomError, MemoryError):
    """The filter would need more memory than this machine can give; raised before allocation."""


class FilterFull(FullbloomError, OverflowError):
    """A strict filter is at its capacity, or a growing one cannot grow; earlier keys stay found."""


class IncompatibleFilters(FullbloomError, ValueError):
    """Two filters cannot be combined; the message names the fields that differ."""


class FormatError(FullbloomError, ValueError):
    """Bytes or a file are not a filter, are damaged, or come from a newer release."""


class ReadOnlyFilter(FullbloomError, TypeError):
    """The filter is mapped read-only, or closed."""


class RemovedKeyError(FullbloomError, ValueError):
    """A removed key cannot be added again, because what remembers the removal cannot forget it."""


class SecretError(FullbloomError, ValueError):
    """A secret that nobody was handed, so that no file could be opened, or that was handed out before."""


class EngineError(FullbloomError):
    """A server that holds a filter answered with an error; the message names the filter, never a key."""


class EngineUnavailable(EngineError, ConnectionError):
    """The server cannot be reached, or cannot serve now: it loads its data, or its cluster is down."""


class EngineTimeout(EngineError, TimeoutError):
    """The server did not answer in time; an add that was sent may have been done."""


class EngineRefused(EngineError, PermissionError):
    """The server refuses this client, or it is a replica, which takes no changes."""


class EngineFull(EngineError, MemoryError):
    """The server is at its limit of memory; nothing of the refused change was done."""


class EngineNameTaken(EngineError, ValueError):
    """Something else has the filter's name on the server."""


class FilterLost(EngineError, LookupError):
    """The server no longer has the filter, or part of it: keys that it acknowledged are gone."""


class FilterRolledBack(FilterLost):
    """The server went back to an earlier state of the filter: the keys that it acknowledged last are gone."""


class KeyDomainWarning(UserWarning):
    """Keys were looked up of a type of which the filter holds none; given once a filter.

    The HTTP client gives it with each such answer of the service.
    """


class CapacityWarning(UserWarning):
    """A filter holds more keys than it was sized for; given once a filter."""
