"""What a server says of itself: memory, eviction, its commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bloomery.engines.redis.asks import call
from bloomery.engines.redis.failures import escaped
from bloomery.errors import EngineError, EngineRefused, EngineTimeout, EngineUnavailable

if TYPE_CHECKING:
    from bloomery.engines.redis.asks import Steps
    from bloomery.engines.redis.names import Names

#: What a filter of the server's own takes.
MODULE = (b"BF.RESERVE", b"BF.INSERT", b"BF.MEXISTS", b"BF.CARD")
#: What one in strings takes.
STRINGS = (b"SETRANGE", b"GETRANGE", b"BITFIELD", b"BITCOUNT")


@dataclass(frozen=True)
class Safety:
    """What keeps a server from losing what it acknowledged; None stands for what it does not tell."""

    #: True with a log of its commands.
    log: bool | None
    #: When the log is brought to the disk: "always", "everysec" or "no".
    fsync: str | None
    #: When it takes snapshots, "" for never.
    snapshots: str | None
    replicas: int | None
    #: Replicas without which it takes no writes.
    least_replicas: int | None

    def warnings(self) -> list[str]:
        """Return a sentence for each way in which it may lose keys that it acknowledged."""
        told = []
        if self.log is False:
            if self.snapshots == "":
                told.append(
                    "it writes nothing to disk (appendonly no, save ''), so a restart loses the filter; "
                    "set appendonly yes"
                )
            elif self.snapshots is None:
                told.append(
                    "it has no log (appendonly no) and does not tell whether it takes snapshots, so a crash "
                    "loses keys that it acknowledged; set appendonly yes"
                )
            else:
                told.append(
                    f"it has snapshots and no log (appendonly no, save {self.snapshots!r}), so a crash loses "
                    "the keys that it acknowledged since the last snapshot; set appendonly yes"
                )
        elif self.log and self.fsync not in {"always", None}:
            span = "about a second of" if self.fsync == "everysec" else "many seconds of"
            told.append(
                f"it syncs its log late (appendfsync {self.fsync}), so a power cut loses {span} acknowledged "
                "keys; set appendfsync always"
            )
        if self.replicas and self.least_replicas == 0:
            told.append(
                f"it takes writes without its replicas ({self.replicas} connected, min-replicas-to-write 0), "
                "so a failover loses keys that none of them had; set min-replicas-to-write 1, or open the "
                "filter with acks=1"
            )
        return told


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

    def evicts(self, *, ending: bool) -> bool:
        """Tell whether it may delete keys before their time: those with a time to live, or those without."""
        policies = ("allkeys", "volatile") if ending else ("allkeys",)
        return bool(self.maxmemory) and (self.policy or "").startswith(policies)

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


def safety(key: bytes | None = None) -> Steps[Safety]:
    """Ask a server, the node that has ``key``, what keeps it from losing what it acknowledged."""
    said: dict[str, Any] = {}
    for words in (
        *((b"INFO", section) for section in (b"persistence", b"replication")),
        *((b"CONFIG", b"GET", name) for name in (b"appendfsync", b"save", b"min-replicas-to-write")),
    ):
        try:
            said |= _pairs((yield from call(key, *words)))
        except (EngineTimeout, EngineUnavailable):
            raise
        except EngineError:  # this user may not know, or the server has no such command
            continue
    log = _number(said.get("aof_enabled"))
    return Safety(
        log=None if log is None else bool(log),
        fsync=_text(said.get("appendfsync")),
        snapshots=_text(said.get("save")),
        replicas=_number(said.get("connected_slaves")),
        least_replicas=_number(said.get("min-replicas-to-write")),
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
        return {_words(name): value for name, value in told.items()}
    if isinstance(told, list):
        return {_words(name): value for name, value in zip(told[::2], told[1::2], strict=False)}
    lines = (line.partition(":") for line in _words(told).splitlines() if ":" in line and line[0] != "#")
    return {name: value for name, _, value in lines}


def _words(told: Any) -> str:
    if isinstance(told, bytes):
        return told.decode("utf-8", "replace")
    return told if isinstance(told, str) else ""


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return None if value is None else escaped(str(value))


def _number(value: Any) -> int | None:
    try:
        number = None if value is None else int(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return number if number is not None and 0 <= number < 1 << 63 else None
