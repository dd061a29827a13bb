"""The types of keys that a client added to a filter on a server, or found there.

The server does not record them. So an object knows those of its own adds and of its successful lookups, and
warns once if keys of another type are looked up: equal texts and numbers are different keys.
"""

from __future__ import annotations

import warnings
from typing import Any

from fullbloom import _core
from fullbloom.errors import KeyDomainWarning

#: Types of single keys; other keys are hashed once more, by a filter in memory that names their type.
_DOMAINS = {
    str: frozenset({"text"}),
    bytes: frozenset({"text"}),
    int: frozenset({"integer"}),
    bool: frozenset({"integer"}),
    float: frozenset({"float"}),
    tuple: frozenset({"tuple"}),
}
_UNKNOWN = frozenset[str]()
#: Types of the keys of columns, by the column's own type, and how many are remembered: a probe takes 20 us.
_COLUMNS: dict[tuple[Any, Any], frozenset[str]] = {}
_MAX_COLUMNS = 256
_HASHED = "hashed"
#: Answers of a batch that are looked at; and the frames above the warning: here two, and a method's.
_SAMPLE, _STACK_LEVEL = 64, 4


class KnownDomains:
    """The types of the keys that a client knows to be in a filter."""

    def __init__(self, name: str) -> None:
        """Take the filter's name."""
        self._name = name
        self._known = _UNKNOWN
        self._has_warned = False

    def note_key(self, key: Any) -> None:
        """Take the type of a key that was added."""
        self._note(_DOMAINS.get(type(key)) or _probe([key]))

    def note_many(self, keys: Any) -> None:
        """Take the types of the first and the last of keys that were added."""
        self._note(_find_domains(keys))

    def note_hashes(self) -> None:
        """Take note of ready hashes, which may be of keys of any type."""
        self._note(frozenset({_HASHED}))

    def note_filter(self, filter_: Any) -> None:
        """Take the types of the keys of a filter in memory."""
        self._note(_parse(filter_.key_domains))

    def forget(self) -> None:
        """Forget all types: the filter is empty."""
        self._known = _UNKNOWN

    def look_up_key(self, key: Any, found: object) -> None:
        """Take the type of a key that was found, or warn if the filter has keys of other types only."""
        domains = _DOMAINS.get(type(key)) or _probe([key])
        if found:
            self._note(domains)
        elif self._is_surprising(domains):
            self._warn(domains)

    def look_up_many(self, keys: Any, answers: Any) -> None:
        """Take the types of keys most of which were found, or warn if the filter has others only."""
        domains = _find_domains(keys)
        if domains <= self._known:
            return
        sample = _to_list(answers[:_SAMPLE])
        if 2 * sum(map(bool, sample)) > len(sample):
            self._note(domains)
        elif self._is_surprising(domains):
            self._warn(domains)

    def _note(self, domains: frozenset[str]) -> None:
        if not domains <= self._known:
            self._known |= domains

    def _is_surprising(self, domains: frozenset[str]) -> bool:
        known = self._known
        return bool(known) and not self._has_warned and _HASHED not in known and not domains <= known

    def _warn(self, domains: frozenset[str]) -> None:
        self._has_warned = True
        asked, known = (", ".join(sorted(some)) for some in (domains - self._known, self._known))
        warnings.warn(
            f"filter {self._name!r}: keys of type {asked} were looked up, but this client has added or found "
            f'keys of type {known} only: equal texts and numbers are different keys (1 is not "1"); look up '
            "keys of the type that was added",
            KeyDomainWarning,
            stacklevel=_STACK_LEVEL,
        )


def _find_domains(keys: Any) -> frozenset[str]:
    """Return the types of the first and the last key of a batch; none if it cannot be looked at twice."""
    if isinstance(keys, (list, tuple)):
        ends = (keys[0], keys[-1]) if keys else ()
        return _UNKNOWN.union(*(_DOMAINS.get(type(key)) or _probe([key]) for key in ends))
    if isinstance(keys, (range, set, frozenset, dict)):
        return _probe([next(iter(keys))]) if keys else _UNKNOWN
    column = type(keys), getattr(keys, "dtype", None)
    try:
        if column in _COLUMNS:
            return _COLUMNS[column]
        domains = _probe(keys.slice(0, 1) if hasattr(keys, "slice") else keys[:1])
    except Exception:  # noqa: BLE001 - an iterator, or another stream of columns
        return _UNKNOWN
    if domains and column[1] is not None and "object" not in str(column[1]).lower():
        if len(_COLUMNS) >= _MAX_COLUMNS:
            _COLUMNS.clear()
        _COLUMNS[column] = domains
    return domains


def _probe(keys: Any) -> frozenset[str]:
    """Return the types of keys by the rule of filters in memory; none for what is not a key."""
    probe = _core.BloomFilter(_SAMPLE)
    try:
        probe.update(keys)
    except (TypeError, ValueError):
        return _UNKNOWN
    return _parse(probe.key_domains)


def _parse(names: str) -> frozenset[str]:
    return _UNKNOWN if names == "none" else frozenset(names.split(", "))


def _to_list(answers: Any) -> list[Any]:
    """Return answers as a list, whatever the container of the keys was."""
    for method in ("tolist", "to_pylist", "to_list"):
        if hasattr(answers, method):
            return list(getattr(answers, method)())
    return list(answers)
