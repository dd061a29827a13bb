"""Plans: memory and bandwidth of a filter before it is created, and reports of servers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

from fullbloom import _core
from fullbloom.engines.redis.protocol import Locate, Steps, call, escape
from fullbloom.engines.redis.protocol.manifest import (
    MAX_STRING_BYTES,
    TAG_BYTES,
    Manifest,
    Names,
    make_shard,
)
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

    from fullbloom._core import WireBatch, WireCells, WireCounterBatch, WireCounters, WireExchange

#: Commands for filters of the server's own.
MODULE_COMMANDS = (b"BF.RESERVE", b"BF.INSERT", b"BF.MEXISTS", b"BF.CARD")
#: Commands for filters in strings.
STRING_COMMANDS = (b"SETRANGE", b"GETRANGE", b"BITFIELD", b"BITCOUNT")


@dataclass(frozen=True)
class Durability:
    """Settings that protect a server's acknowledged data; None for those that it does not report."""

    #: True if it logs its commands.
    log: bool | None
    #: When it syncs the log to disk: "always", "everysec" or "no".
    fsync: str | None
    #: When it takes snapshots, "" for never.
    snapshots: str | None
    replicas: int | None
    #: Replicas without which it refuses writes.
    least_replicas: int | None

    def warnings(self) -> list[str]:
        """Return a sentence for each way in which the server may lose acknowledged keys."""
        warnings = []
        if self.log is False:
            if self.snapshots == "":
                warnings.append(
                    "it writes nothing to disk (appendonly no, save ''), so a restart loses the filter; "
                    "set appendonly yes"
                )
            elif self.snapshots is None:
                warnings.append(
                    "it has no log (appendonly no) and does not report whether it takes snapshots, so a "
                    "crash loses keys that it acknowledged; set appendonly yes"
                )
            else:
                warnings.append(
                    f"it has snapshots and no log (appendonly no, save {self.snapshots!r}), so a crash loses "
                    "the keys that it acknowledged since the last snapshot; set appendonly yes"
                )
        elif self.log and self.fsync not in {"always", None}:
            span = "about a second of" if self.fsync == "everysec" else "many seconds of"
            warnings.append(
                f"it syncs its log late (appendfsync {self.fsync}), so a power cut loses {span} acknowledged "
                "keys; set appendfsync always"
            )
        if self.replicas and self.least_replicas == 0:
            warnings.append(
                f"it takes writes without its replicas ({self.replicas} connected, min-replicas-to-write 0), "
                "so a failover loses keys that none of them had; "
                "set min-replicas-to-write 1, or open the filter with acks=1"
            )
        return warnings


@dataclass(frozen=True)
class ServerInfo:
    """A server's report of itself; None for facts that it does not report."""

    version: str | None
    #: Changes with each start.
    run_id: str | None
    #: Its memory limit, 0 without one.
    maxmemory: int | None
    used_memory: int | None
    policy: str | None
    #: True if it supports BF.RESERVE, BF.INSERT, BF.MEXISTS and BF.CARD.
    module: bool
    #: False if it reports that it lacks commands for strings of cells.
    strings: bool = True

    def evicts(self, *, expiring: bool) -> bool:
        """Return whether it may evict keys; with ``expiring``, keys that have a time to live."""
        policies = ("allkeys", "volatile") if expiring else ("allkeys",)
        return bool(self.maxmemory) and (self.policy or "").startswith(policies)

    def require_strings(self, name: str, remedy: str = "take a Redis or Valkey server") -> ServerInfo:
        """Return the info; EngineError if the server lacks strings for the cells of a filter."""
        if self.strings:
            return self
        raise EngineError(
            f"filter {name!r}: the server has no strings that hold cells (SETRANGE, BITFIELD, ...); {remedy}"
        )


def query_server(key: bytes | None = None) -> Steps[ServerInfo]:
    """Query a server, or the node of a cluster that has ``key``."""
    info: dict[str, Any] = {}
    for section in (b"server", b"memory"):
        try:
            info |= parse_info((yield from call(key, b"INFO", section)))
        except EngineRefused:  # this user may not run INFO
            continue
    commands = yield from _query_commands(MODULE_COMMANDS + STRING_COMMANDS, key)
    return ServerInfo(
        version=parse_optional_text(info.get("redis_version")),
        run_id=parse_optional_text(info.get("run_id")),
        maxmemory=parse_optional_number(info.get("maxmemory")),
        used_memory=parse_optional_number(info.get("used_memory")),
        policy=parse_optional_text(info.get("maxmemory_policy")),
        module=commands is not None and commands >= set(MODULE_COMMANDS),
        strings=commands is None or commands >= set(STRING_COMMANDS),
    )


def query_run_ids(names: Names, *, is_single: bool) -> Steps[tuple[str | None, ...]]:
    """Query the ids of the processes that hold the filter: of one server, or of the node of each shard."""
    ids = []
    for key in [names.manifest] if is_single else names.bits:
        try:
            info = parse_info((yield from call(key, b"INFO", b"server")))
            ids.append(parse_optional_text(info.get("run_id")))
        except EngineRefused:  # this user may not run INFO
            ids.append(None)
    return tuple(ids)


def query_durability(key: bytes | None = None) -> Steps[Durability]:
    """Query the durability settings of a server, or of the node of a cluster that has ``key``."""
    info: dict[str, Any] = {}
    for words in (
        *((b"INFO", section) for section in (b"persistence", b"replication")),
        *((b"CONFIG", b"GET", name) for name in (b"appendfsync", b"save", b"min-replicas-to-write")),
    ):
        try:
            info |= parse_info((yield from call(key, *words)))
        except (EngineTimeout, EngineUnavailable):
            raise
        except EngineError:  # this user may not run it, or the server has no such command
            continue
    log = parse_optional_number(info.get("aof_enabled"))
    return Durability(
        log=None if log is None else bool(log),
        fsync=parse_optional_text(info.get("appendfsync")),
        snapshots=parse_optional_text(info.get("save")),
        replicas=parse_optional_number(info.get("connected_slaves")),
        least_replicas=parse_optional_number(info.get("min-replicas-to-write")),
    )


def _query_commands(names: tuple[bytes, ...], key: bytes | None) -> Steps[set[bytes] | None]:
    """Query which of these commands the server has; None if this user may not run COMMAND."""
    try:
        reply = yield from call(key, b"COMMAND", b"INFO", *names)
    except (EngineTimeout, EngineUnavailable):
        raise
    except EngineError:
        return None
    if isinstance(reply, dict):  # as redis-py parses it
        return {str(name).upper().encode() for name, about in reply.items() if about}
    if isinstance(reply, list) and len(reply) == len(names):
        return {name for name, about in zip(names, reply, strict=True) if about}
    return None


def parse_info(reply: Any) -> dict[str, Any]:
    """Return the names and values in a reply to INFO or CONFIG GET, as the client library read it."""
    if isinstance(reply, dict):
        return {_decode(name): value for name, value in reply.items()}
    if isinstance(reply, list):
        return {_decode(name): value for name, value in zip(reply[::2], reply[1::2], strict=False)}
    lines = (line.partition(":") for line in _decode(reply).splitlines() if ":" in line and line[0] != "#")
    return {name: value for name, _, value in lines}


def _decode(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def parse_optional_text(value: Any) -> str | None:
    """Return a value as printable text; None for None."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return None if value is None else escape(str(value))


def parse_optional_number(value: Any) -> int | None:
    """Return a value as a number of 0 or more; None if it is not one."""
    try:
        number = None if value is None else int(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return number if number is not None and 0 <= number < 1 << 63 else None


#: The layout with one cache line a key that "auto" may choose: one command a key.
LAYOUT = next(row["name"] for row in _core.layouts() if row["one_line"] and row["auto"])
#: Keys of the batch that a plan describes.
LARGE_BATCH = 1000
#: Keys of one round trip: 1 MB of commands to look up, 5 MB to add.
PORTION = 16384
#: The same of a counting filter: 0.5 MB to look up, 3 MB to add, 12 MB to remove.
COUNTER_PORTION = 8192
#: Bytes of the longest name of a type in a reply to TYPE; modules may name theirs.
MAX_TYPE_BYTES = 1 << 10
#: Bytes of a line of counters.
_COUNTER_LINE_BYTES = 64


@dataclass(frozen=True)
class Node:
    """What a filter takes on one node of a cluster, or on the server."""

    #: Its address; "" without a cluster.
    name: str
    shards: int
    nbytes: int
    #: Its memory limit and the memory in use; None if it does not report them.
    maxmemory: int | None
    used_memory: int | None
    policy: str | None
    #: True if it may evict the strings; volatile policies evict those with a time to live, too.
    evicts: bool
    #: True if the strings have a time to live.
    ending: bool = False
    #: How it may lose acknowledged keys, a sentence each; only `plan` queries them.
    warnings: tuple[str, ...] = ()

    @property
    def room(self) -> float:
        """Bytes that are left once the filter exists; negative if it does not fit."""
        if not self.maxmemory or self.used_memory is None:
            return inf
        return self.maxmemory - self.used_memory - self.nbytes


@dataclass(frozen=True)
class Plan:
    """The estimated memory and bandwidth of a filter, before it is created."""

    backend: str
    layout: str
    num_bits: int
    num_hashes: int
    shards: int
    #: Bytes of the longest string, and of all.
    shard_bytes: int
    nbytes: int
    #: The server's memory limit and use, None if it does not report them; in a cluster those of the node
    #: with the least free memory, and the policy of one that evicts, if any does.
    maxmemory: int | None
    used_memory: int | None
    policy: str | None
    #: False if a node has too little memory for its shards.
    fits: bool
    #: True if a node may evict some.
    evicts: bool
    #: The number of keys in a batch, for the following estimates.
    batch: int
    #: Round trips to each server that holds shards of the batch.
    round_trips: int
    bytes_to_check: int
    bytes_checked: int
    bytes_to_add: int
    bytes_added: int
    #: Each node of a cluster that gets shards or the manifest; the server alone otherwise.
    nodes: tuple[Node, ...]
    #: How the server, or which nodes, may lose acknowledged keys: no log of commands on disk, one that is
    #: synced late, writes without replicas. There are no warnings about unreported facts.
    warnings: tuple[str, ...] = ()

    def refuse(self, name: str, *, allow_eviction: bool) -> None:
        """Raise EngineFull or EngineRefused if the filter should not be created."""
        if not self.fits:
            least = min(self.nodes, key=lambda node: node.room)
            free = (least.maxmemory or 0) - (least.used_memory or 0)
            raise EngineFull(
                f"filter {name!r}: {_describe(least)} has space for {max(free, 0):,} bytes (maxmemory "
                f"{least.maxmemory:,}) and the filter needs {least.nbytes:,}{self._of_all(least)}; raise the "
                "limit, or take a higher fpr"
            )
        for node in self.nodes:
            refuse_evicting(node, name, allow_eviction=allow_eviction)

    def _of_all(self, node: Node) -> str:
        return f" there, for {node.shards} of its {self.shards} shards" if len(self.nodes) > 1 else ""


def _describe(node: Node) -> str:
    return f"the node {node.name}" if node.name else "the server"


def refuse_evicting(node: Node, name: str, *, allow_eviction: bool) -> None:
    """Raise EngineRefused for a server that may evict a filter, unless eviction is allowed."""
    if node.evicts and not allow_eviction:
        volatile = "" if node.ending else " or a volatile policy"
        raise EngineRefused(
            f"filter {name!r}: {_describe(node)} may evict its strings (maxmemory-policy {node.policy}), and "
            f"acknowledged keys would be lost; use a server with noeviction{volatile}, or pass "
            "allow_eviction=True"
        )


def refuse_evicting_nodes(
    name: str, keys: Iterable[bytes], server: ServerInfo, *, expiring: bool, allow_eviction: bool
) -> Steps[None]:
    """Raise EngineRefused if a node may evict one of the keys; ``server`` is used without a cluster.

    With ``expiring`` the keys have a time to live.
    """
    seen = set[str]()
    for key in keys:
        (address,) = yield [Locate(key)]
        if address not in seen:
            seen.add(address)
            info = (yield from query_server(key)) if address else server
            memory = (info.maxmemory, info.used_memory, info.policy)
            node = Node(address, 0, 0, *memory, info.evicts(expiring=expiring), expiring)
            refuse_evicting(node, name, allow_eviction=allow_eviction)


def choose_shards(layout: str, num_bits: int, spread: int) -> int:
    """Return the shards of a new filter: ``spread``, if it has that many lines, or more if it needs them."""
    has_lines = any(row["one_line"] for row in _core.layouts() if row["name"] == layout)
    least = -(-(num_bits // 8) // (MAX_STRING_BYTES - 512))
    return max(least, min(spread, num_bits // 512) if has_lines else 1)


def choose_shape(capacity: int, fpr: float, layout: str | None, scheme: str | None) -> tuple[str, int, int]:
    """Return the layout, the bits and the probes of a new filter."""
    layout = LAYOUT if layout is None else layout
    if layout == "auto":
        raise ParameterError("layout must name a layout, got 'auto'; leave it out for the fast one")
    return layout, *_core.size_for(layout, capacity, fpr, scheme)


def query_nodes(
    names: Names,
    cells: WireCells | WireCounters,
    server: ServerInfo,
    *,
    expiring: bool = False,
    spare: int = 0,
) -> Steps[list[Node]]:
    """Query each node that gets a part of a filter; ``server`` is used without a cluster.

    With ``expiring`` the strings have a time to live. ``names`` may have strings of several generations of a
    window, ``spare`` more of which exist.
    """
    generations = len(names.bits) // cells.shards
    parts: dict[str, list[int]] = {}
    keys: dict[str, bytes] = {}
    for key, shard in ((names.manifest, None), *zip(names.bits, range(len(names.bits)), strict=True)):
        (address,) = yield [Locate(key)]
        keys.setdefault(address, key)
        parts.setdefault(address, []).extend([] if shard is None else [shard])
    nodes = []
    for address, shards in parts.items():
        info = (yield from query_server(keys[address])) if address else server
        nbytes = sum(cells.range(shard % cells.shards)[1] + TAG_BYTES for shard in shards)
        nbytes = -(-nbytes * (generations + spare) // generations)
        memory = (info.maxmemory, info.used_memory, info.policy)
        nodes.append(Node(address, len(shards), nbytes, *memory, info.evicts(expiring=expiring), expiring))
    return nodes


def _query_warnings(names: Names, nodes: list[Node]) -> Steps[list[Node]]:
    """Query each node's durability, and add the warnings."""
    keys: dict[str, bytes] = {}
    for key in (names.manifest, *names.bits):
        (address,) = yield [Locate(key)]
        keys.setdefault(address, key)
    warned = []
    for node in nodes:
        durability = yield from query_durability(keys[node.name] if node.name else None)
        warned.append(replace(node, warnings=tuple(durability.warnings())))
    return warned


def query_plan(
    names: Names,
    cells: WireCells | WireCounters,
    new: Manifest,
    server: ServerInfo,
    batch: int,
    *,
    expiring: bool,
    spare: int = 0,
) -> Steps[Plan]:
    """Query all nodes that get a part of a new filter; return its plan."""
    if type(batch) is not int or batch < 1:
        raise ParameterError(f"batch must be a whole number of keys, 1 or more, got {batch!r}")
    nodes = yield from query_nodes(names, cells, server, expiring=expiring, spare=spare)
    return make_plan(cells, new, (yield from _query_warnings(names, nodes)), batch)


def make_plan(
    cells: WireCells | WireCounters, manifest: Manifest, nodes: list[Node], batch: int = LARGE_BATCH
) -> Plan:
    """Return the plan of a filter with these cells."""
    sizes = [cells.range(shard)[1] + TAG_BYTES for shard in range(cells.shards)]
    least = min(nodes, key=lambda node: node.room)
    evicting = next((node for node in nodes if node.evicts), least)
    is_plain = isinstance(cells, _core.WireCells)
    line = cells.line_bytes if isinstance(cells, _core.WireCells) else _COUNTER_LINE_BYTES
    has_lines = not isinstance(cells, _core.WireCells) or cells.has_lines
    reply = line + 7 if has_lines else manifest.num_hashes * 4
    change_reply = manifest.num_hashes * 4 + (4 if has_lines else 0)
    round_trips = to_check = to_add = added = 0
    portion = PORTION if is_plain else COUNTER_PORTION
    for times, keys in ((batch // portion, portion), (1, batch % portion)):
        if times and keys:
            checking, adding = (_write_batch(cells, keys, adding=adding) for adding in (False, True))
            round_trips += times
            to_check += times * len(checking.buffer)
            to_add += times * len(adding.buffer)
            added += times * (sum(sizes) if adding.is_whole else keys * change_reply)
    # A window is looked up in each generation, and an add looks in all but the present one.
    lookups = manifest.generations or 1
    return Plan(
        backend=manifest.backend,
        layout=manifest.layout,
        num_bits=manifest.num_bits,
        num_hashes=manifest.num_hashes,
        shards=cells.shards,
        shard_bytes=max(sizes),
        nbytes=sum(node.nbytes for node in nodes) if manifest.window else sum(sizes),
        maxmemory=least.maxmemory,
        used_memory=least.used_memory,
        policy=evicting.policy,
        fits=least.room >= 0,
        evicts=evicting.evicts,
        batch=batch,
        round_trips=round_trips,
        bytes_to_check=lookups * to_check,
        bytes_checked=lookups * batch * reply,
        bytes_to_add=to_add + (lookups - 1) * to_check,
        bytes_added=added + (lookups - 1) * batch * reply,
        nodes=tuple(nodes),
        warnings=tuple(f"{_describe(node)}: {text}" for node in nodes for text in node.warnings),
    )


def _write_batch(cells: WireCells | WireCounters, batch: int, *, adding: bool) -> WireExchange:
    """Return the commands for a batch of keys."""
    keys = list(Names("name", cells.shards).bits)
    sent: WireBatch | WireCounterBatch
    if isinstance(cells, _core.WireCells):
        sent = cells.keys(range(batch), adding=adding).batch(0, batch)
    else:
        sent = cells.keys(range(batch)).batch(0, batch, adding=adding)
    return sent.exchange([make_shard(number, keys[number]) for number in sent.shards])
