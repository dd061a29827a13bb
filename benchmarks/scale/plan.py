"""The plan for more keys than one machine holds: machines, memory, bytes and hours, from the model alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.scale import model
from benchmarks.scale.record import FITTED

if TYPE_CHECKING:
    from benchmarks.scale.model import Model

#: Share of a machine's memory for its part of the filter; the rest is for batches and a second copy.
FILTER_SHARE = 0.4
#: Bytes of a hash, and of a row that is shuffled whole.
HASH_BYTES, ROW_BYTES = 8, 100


class Machine(NamedTuple):
    """A kind of machine: cores like those that were measured."""

    cores: int
    memory_gib: float
    gbit: float


class Plan(NamedTuple):
    """What a job takes on so many machines of a kind."""

    machine: Machine
    machines: int
    filter_bytes: float
    bytes_per_machine: float
    shuffle_bytes: float
    read_hours: float
    network_hours: float
    build_hours: float
    publish_hours: float

    @property
    def hours(self) -> float:
        """All steps, one after the other."""
        return self.read_hours + self.network_hours + self.build_hours + self.publish_hours


class DuplicatesPlan(NamedTuple):
    """What it takes to find candidates for duplicates among so many rows."""

    machines: int
    bytes_per_core: float
    digits_bytes: float
    filter_bytes: float
    hashes_bytes: float
    rows_bytes: float
    core_hours: float
    hours: float


def plan_filter(record: dict[str, Any], count: int, machine: Machine, machines: int = 0) -> Plan:
    """One filter of ``count`` keys, sharded over machines by the hash of the key.

    Each machine reads its part of the rows over its link, sends the hash of each key to the machine that owns
    it, and adds what it receives, one shard per core. Without ``machines``, as few as hold the filter in
    `FILTER_SHARE` of their memory.
    """
    fitted = fit_record(record)
    size = fitted.predict_bytes(count)
    machines = machines or math.ceil(size / (machine.memory_gib * 2**30 * FILTER_SHARE))
    shard = size / machines / machine.cores
    moved = HASH_BYTES * count * (machines - 1) / machines
    slower = compute_slowdown(record)
    ns = slower * (record["route"]["ns"] * (machines > 1) + fitted.build_ns(shard))
    return Plan(
        machine=machine,
        machines=machines,
        filter_bytes=size,
        bytes_per_machine=size / machines,
        shuffle_bytes=moved,
        read_hours=_hours_of_network(ROW_BYTES * count, machine, machines),
        network_hours=_hours_of_network(moved, machine, machines),
        build_hours=count * ns / 1e9 / machines / machine.cores / 3600,
        publish_hours=_hours_of_network(size, machine, machines),
    )


def plan_duplicates(record: dict[str, Any], count: int, machine: Machine, machines: int) -> DuplicatesPlan:
    """Candidates for duplicates among ``count`` rows, in two rounds, each of which reads all rows."""
    simulated = next(row for row in record["simulation"] if row["rows"] == count)
    cost, cores = model.extrapolate(simulated), machines * machine.cores
    slower = compute_slowdown(record)
    first, reads = simulated["rounds"][0], len(simulated["rounds"])
    moved = cost.sent_bytes * (machines - 1) / machines + reads * ROW_BYTES * count
    moved += cost.filter_bytes * machines
    return DuplicatesPlan(
        machines=machines,
        # The packets, and their digits decoded and sorted.
        bytes_per_core=first["owner_bytes"] + 2 * HASH_BYTES * count / (1 << first["owner_bits"]),
        digits_bytes=cost.sent_bytes,
        filter_bytes=cost.filter_bytes,
        hashes_bytes=HASH_BYTES * count,
        rows_bytes=ROW_BYTES * count,
        core_hours=slower * cost.seconds / 3600,
        hours=slower * cost.seconds / cores / 3600 + _hours_of_network(moved, machine, machines),
    )


def compute_slowdown(record: dict[str, Any]) -> float:
    """How many times as long a core takes if all cores work."""
    return max(1.0, record["cores"]["together"] / record["cores"]["alone"])


def _hours_of_network(total: float, machine: Machine, machines: int) -> float:
    """Every machine sends or receives its part at the speed of its link."""
    return total * 8 / (machine.gbit * 1e9) / machines / 3600


def describe_machines(record: dict[str, Any]) -> list[Machine]:
    """The kind that was measured, and two larger ones; 10 Gbit/s and 25 Gbit/s are assumptions."""
    measured = record["machines"]["filters"]
    return [
        Machine(measured["cores"], measured["memory_gib"], 10),
        Machine(16, 128, 10),
        Machine(64, 512, 25),
    ]


def fit_record(record: dict[str, Any]) -> Model:
    """The model that the plans use."""
    return model.fit(record, FITTED)
