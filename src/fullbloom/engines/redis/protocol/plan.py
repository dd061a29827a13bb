"""What a filter will take on a server, and each batch on the way there, before anything is made."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

from fullbloom import _core
from fullbloom.engines.redis.protocol.errors import escaped
from fullbloom.engines.redis.protocol.keys import Names, shard_of
from fullbloom.engines.redis.protocol.manifest import MARK_BYTES, Manifest
from fullbloom.engines.redis.protocol.requests import Steps, Where, call
from fullbloom.errors import (
    EngineError,
    EngineFull,
    EngineRefused,
    EngineTimeout,
    EngineUnavailable,
    ParameterError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fullbloom._core import WireCells

#: What a filter of the server's own takes.
MODULE_COMMANDS = (b"BF.RESERVE", b"BF.INSERT", b"BF.MEXISTS", b"BF.CARD")
#: What one in strings takes.
STRING_COMMANDS = (b"SETRANGE", b"GETRANGE", b"BITFIELD", b"BITCOUNT")


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
    commands = yield from _commands(MODULE_COMMANDS + STRING_COMMANDS, key)
    return Server(
        version=_text(said.get("redis_version")),
        run_id=_text(said.get("run_id")),
        maxmemory=_number(said.get("maxmemory")),
        used_memory=_number(said.get("used_memory")),
        policy=_text(said.get("maxmemory_policy")),
        module=commands is not None and commands >= set(MODULE_COMMANDS),
        strings=commands is None or commands >= set(STRING_COMMANDS),
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


#: Bytes of the longest string of a server.
LONGEST = 512 << 20
#: The layout with one cache line a key that "auto" may stand for: one command a key.
LAYOUT = next(row["name"] for row in _core.layouts() if row["one_line"] and row["auto"])
_LARGE_BATCH = 1000


@dataclass(frozen=True)
class Node:
    """What a filter takes on one node of a cluster, or on the server."""

    #: Its address; "" of a server alone.
    name: str
    shards: int
    nbytes: int
    #: Its limit and what it uses; None where it does not tell.
    maxmemory: int | None
    used_memory: int | None
    policy: str | None
    #: True when it may evict the strings: those with a time to live are evicted under volatile policies, too.
    evicts: bool
    #: True when the strings have a time to live.
    ending: bool = False
    #: How it may lose keys that it acknowledged, a sentence each; `plan` asks, nothing else does.
    warnings: tuple[str, ...] = ()

    @property
    def room(self) -> float:
        """Bytes that are left when the filter is there; less than 0 where it does not fit."""
        if not self.maxmemory or self.used_memory is None:
            return inf
        return self.maxmemory - self.used_memory - self.nbytes


@dataclass(frozen=True)
class Plan:
    """A filter before it is made."""

    backend: str
    layout: str
    num_bits: int
    num_hashes: int
    shards: int
    #: Bytes of the longest string, and of all.
    shard_bytes: int
    nbytes: int
    #: The server's limit and what it uses, None where it does not tell; of a cluster, those of the node with
    #: the least room, and the policy of one that evicts, if any does.
    maxmemory: int | None
    used_memory: int | None
    policy: str | None
    #: False when a node has no room for its shards.
    fits: bool
    #: True when a node may evict some.
    evicts: bool
    #: Keys of the batch that the rest is about.
    batch: int
    #: Round trips to each server that holds shards of the batch.
    round_trips: int
    bytes_to_check: int
    bytes_checked: int
    bytes_to_add: int
    bytes_added: int
    #: Each node of a cluster that holds shards or the manifest; the server alone otherwise.
    nodes: tuple[Node, ...]
    #: How the server, or which nodes, may lose keys that they acknowledged: no log of commands on disk, one
    #: that is synced late, writes without replicas. What a server does not tell is not warned of.
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as a dict."""
        return asdict(self)

    def refuse(self, name: str, *, allow_eviction: bool) -> None:
        """Raise what speaks against making it."""
        if not self.fits:
            least = min(self.nodes, key=lambda node: node.room)
            room = (least.maxmemory or 0) - (least.used_memory or 0)
            raise EngineFull(
                f"filter {name!r}: {_named(least)} has room for {max(room, 0):,} bytes (maxmemory "
                f"{least.maxmemory:,}) and the filter needs {least.nbytes:,}{self._of_all(least)}; raise the "
                "limit, or take a higher fpr"
            )
        for node in self.nodes:
            refuse_evicting(node, name, allow_eviction=allow_eviction)

    def _of_all(self, node: Node) -> str:
        return f" there, for {node.shards} of its {self.shards} shards" if len(self.nodes) > 1 else ""


def _named(node: Node) -> str:
    return f"the node {node.name}" if node.name else "the server"


def refuse_evicting(one: Node, name: str, *, allow_eviction: bool) -> None:
    """Raise EngineRefused for a server that may evict a filter, unless that is allowed."""
    if one.evicts and not allow_eviction:
        volatile = "" if one.ending else " or a volatile policy"
        raise EngineRefused(
            f"filter {name!r}: {_named(one)} may evict its strings (maxmemory-policy {one.policy}), and keys "
            f"that it acknowledged would be lost; use a server with noeviction{volatile}, or pass "
            "allow_eviction=True"
        )


def refuse_evicting_nodes(
    name: str, keys: Iterable[bytes], said: Server, *, ending: bool, allow_eviction: bool
) -> Steps[None]:
    """Raise EngineRefused where a node that gets one of the keys may evict it; a server alone has ``said``.

    ending: the keys have a time to live.
    """
    seen = set[str]()
    for key in keys:
        (at,) = yield [Where(key)]
        if at not in seen:
            seen.add(at)
            told = (yield from asked(key)) if at else said
            evicts = told.evicts(ending=ending)
            node = Node(at, 0, 0, told.maxmemory, told.used_memory, told.policy, evicts, ending)
            refuse_evicting(node, name, allow_eviction=allow_eviction)


def least_shards(num_bits: int) -> int:
    """Return how many strings cells need at least."""
    return -(-(num_bits // 8) // (LONGEST - 512))


def shards(layout: str, num_bits: int, spread: int) -> int:
    """Return the shards of a new filter.

    ``spread`` of them, if it has lines for as many, and no fewer than it needs.
    """
    lines = any(row["one_line"] for row in _core.layouts() if row["name"] == layout)
    return max(least_shards(num_bits), min(spread, num_bits // 512) if lines else 1)


def shape(capacity: int, fpr: float, layout: str | None, scheme: str | None) -> tuple[str, int, int]:
    """Return layout, bits and probes."""
    layout = LAYOUT if layout is None else layout
    if layout == "auto":
        raise ParameterError("layout must be one of its own, got 'auto'; leave it out for the quick one")
    return layout, *_core.size_for(layout, capacity, fpr, scheme)


def placed(names: Names, cells: WireCells, said: Server, *, ending: bool = False) -> Steps[list[Node]]:
    """Ask each node that gets a part of a filter what it has; a server alone has ``said`` it.

    ending: its strings have a time to live.
    """
    parts: dict[str, list[int]] = {}
    keys: dict[str, bytes] = {}
    for key, shard in ((names.manifest, None), *zip(names.bits, range(len(names.bits)), strict=True)):
        (at,) = yield [Where(key)]
        keys.setdefault(at, key)
        parts.setdefault(at, []).extend([] if shard is None else [shard])
    nodes = []
    for at, shards_ in parts.items():
        told = (yield from asked(keys[at])) if at else said
        nbytes = sum(cells.range(shard)[1] + MARK_BYTES for shard in shards_)
        evicts = told.evicts(ending=ending)
        about = (told.maxmemory, told.used_memory, told.policy, evicts, ending)
        nodes.append(Node(at, len(shards_), nbytes, *about))
    return nodes


def warned(names: Names, nodes: list[Node]) -> Steps[list[Node]]:
    """Ask each node how it may lose keys that it acknowledged."""
    keys: dict[str, bytes] = {}
    for key in (names.manifest, *names.bits):
        (at,) = yield [Where(key)]
        keys.setdefault(at, key)
    told = []
    for node in nodes:
        found = yield from safety(keys[node.name] if node.name else None)
        told.append(replace(node, warnings=tuple(found.warnings())))
    return told


def planned(cells: WireCells, new: Manifest, nodes: list[Node], batch: int = _LARGE_BATCH) -> Plan:
    """Return the plan for these cells."""
    keys = list(Names("name", cells.shards).bits)
    sizes = [cells.range(shard)[1] + MARK_BYTES for shard in range(cells.shards)]
    sent = []
    for adding in (False, True):
        some = cells.keys(range(batch), adding=adding).batch(0, batch)
        sent.append(some.exchange([shard_of(number, keys[number]) for number in some.shards]))
    least = min(nodes, key=lambda node: node.room)
    evicting = next((node for node in nodes if node.evicts), least)
    by_key = batch * (cells.num_hashes * 4 + (4 if cells.has_lines else 0))
    return Plan(
        backend=new.backend,
        layout=new.layout,
        num_bits=cells.num_bits,
        num_hashes=cells.num_hashes,
        shards=cells.shards,
        shard_bytes=max(sizes),
        nbytes=sum(sizes),
        maxmemory=least.maxmemory,
        used_memory=least.used_memory,
        policy=evicting.policy,
        fits=least.room >= 0,
        evicts=evicting.evicts,
        batch=batch,
        round_trips=1,
        bytes_to_check=len(sent[0].buffer),
        bytes_checked=batch * (cells.line_bytes + 7) if cells.has_lines else batch * cells.num_hashes * 4,
        bytes_to_add=len(sent[1].buffer),
        bytes_added=sum(sizes) if sent[1].is_whole else by_key,
        nodes=tuple(nodes),
        warnings=tuple(f"{_named(node)}: {text}" for node in nodes for text in node.warnings),
    )
