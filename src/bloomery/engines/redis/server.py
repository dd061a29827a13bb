"""What a server says of itself: memory, eviction, its commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bloomery.engines.redis.asks import call
from bloomery.errors import EngineError, EngineRefused, EngineTimeout, EngineUnavailable

if TYPE_CHECKING:
    from bloomery.engines.redis.asks import Steps
    from bloomery.engines.redis.names import Names

#: What a filter of the server's own takes.
MODULE = (b"BF.RESERVE", b"BF.INSERT", b"BF.MEXISTS", b"BF.CARD")
#: What one in strings takes.
STRINGS = (b"SETRANGE", b"GETRANGE", b"BITFIELD", b"BITCOUNT")


@dataclass(frozen=True)
class Server:
    """A server; None stands for what it does not tell."""

    version: str | None
    #: Another one after each start.
    run_id: str | None
    #: Its limit, 0 without one.
    maxmemory: int | None
    used_memory: int | None
    policy: str | None
    #: True when it knows the commands BF.RESERVE, BF.INSERT, BF.MEXISTS and BF.CARD.
    module: bool
    #: False when it says that it has none of the commands for strings that hold cells.
    strings: bool = True

    @property
    def evicts(self) -> bool:
        """True when it may delete keys that have no time to live."""
        return bool(self.maxmemory) and (self.policy or "").startswith("allkeys")

    def for_cells(self, name: str, remedy: str = "take a Redis or Valkey server") -> Server:
        """Return it; EngineError where it has no strings for the cells of a filter."""
        if self.strings:
            return self
        raise EngineError(
            f"filter {name!r}: the server has no strings that hold cells (SETRANGE, BITFIELD, ...); {remedy}"
        )


def asked(key: bytes | None = None) -> Steps[Server]:
    """Ask a server, the node that has ``key``."""
    said: dict[str, Any] = {}
    for section in (b"server", b"memory"):
        try:
            said |= _pairs((yield from call(key, b"INFO", section)))
        except EngineRefused:  # this user may not know
            continue
    commands = yield from _commands(MODULE + STRINGS, key)
    return Server(
        version=_text(said.get("redis_version")),
        run_id=_text(said.get("run_id")),
        maxmemory=_number(said.get("maxmemory")),
        used_memory=_number(said.get("used_memory")),
        policy=_text(said.get("maxmemory_policy")),
        module=commands is not None and commands >= set(MODULE),
        strings=commands is None or commands >= set(STRINGS),
    )


def run_ids(names: Names, *, whole: bool) -> Steps[tuple[str | None, ...]]:
    """Ask for the numbers of the processes that hold the filter, whole in one of them, or shard by shard."""
    told = []
    for key in [names.manifest] if whole else names.bits:
        try:
            told.append(_text(_pairs((yield from call(key, b"INFO", b"server"))).get("run_id")))
        except EngineRefused:  # this user may not know
            told.append(None)
    return tuple(told)


def _commands(asked_for: tuple[bytes, ...], key: bytes | None) -> Steps[set[bytes] | None]:
    """Ask which of these commands the server has; None where this user may not know."""
    try:
        told = yield from call(key, b"COMMAND", b"INFO", *asked_for)
    except (EngineTimeout, EngineUnavailable):  # which is no answer
        raise
    except EngineError:
        return None
    if isinstance(told, dict):  # as redis-py has it
        return {str(name).upper().encode() for name, about in told.items() if about}
    if isinstance(told, list) and len(told) == len(asked_for):
        return {name for name, about in zip(asked_for, told, strict=True) if about}
    return None


def _pairs(told: Any) -> dict[str, Any]:
    if isinstance(told, dict):
        return {str(name): value for name, value in told.items()}
    text = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
    lines = (line.partition(":") for line in text.splitlines() if ":" in line and not line.startswith("#"))
    return {name: value for name, _, value in lines}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except ValueError:
        return None
