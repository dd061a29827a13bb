"""Periodic tasks: every second, and every sample."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from fullbloom.service.node import now
from fullbloom.service.resources import release_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from fullbloom.service.node import Node

_LOG = logging.getLogger("fullbloom.clock")
_THIN_INTERVAL = 3600.0
#: Filters sampled at once: an info takes 4 kB, so ten thousand are not held together.
_BATCH = 200
#: What the log says of a filter over capacity, besides its name.
_OVER_CAPACITY = ("capacity", "num_added", "target_fpr", "fpr")


class Clock:
    """Tasks of one node; a failure of one does not affect the others."""

    def __init__(self, node: Node) -> None:
        """Serve ``node``."""
        self._node = node
        #: Ids of filters of which the log has said that lookups over RESP have keys of another type.
        self._unlike: set[int] = set()
        #: Ids of filters that the log has reported as over capacity.
        self._over: set[int] = set()
        #: Counters of filters in Redis when this node sampled them last.
        self._sampled: dict[int, Any] = {}

    async def run(self) -> None:
        """Repeat the tasks until cancelled."""
        history = self._node.settings.history
        tasks = [
            (1.0, self._tick),
            (1.0, self._refresh),
            (1.0, self._expire),
            (history.every, self.sample),
            (_THIN_INTERVAL, self.thin),
        ]
        await asyncio.gather(*(self._repeat(every, task) for every, task in tasks))

    @staticmethod
    async def _repeat(every: float, task: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(every)
            try:
                await asyncio.to_thread(task)
            except Exception:  # noqa: BLE001 - the disk is full, the database away: the next run may succeed
                _LOG.exception("a periodic task failed", extra={"task": task.__name__})

    def _tick(self) -> None:
        # A task of its own: heartbeats go on during a checkpoint of gigabytes.
        self._node.service.tick()

    def _refresh(self) -> None:
        self._node.refresh()
        self._node.sync()
        self._node.load_tokens()

    def _expire(self) -> None:
        # A task of its own: tokens are revoked even while the Redis server is away.
        self._node.shared.drop_expired(now())

    def sample(self) -> None:
        """Write samples of the filters that changed or were used since the last time."""
        node = self._node
        node.sync()
        due, at = node.service.due(), now()
        for start in range(0, len(due), _BATCH):
            some = due[start : start + _BATCH]
            numbers = [number for number, _ in some]
            rows = node.registry.filters.row_ids(node.id, numbers)
            infos = node.service.stats(numbers, counted=True)
            self._warn_over(infos)
            self._warn_unlike(infos)
            node.registry.snapshots.add(
                ((rows[info["id"]], info) for info in infos if info["id"] in rows), at
            )
            node.service.mark_sampled(some)
        if len(due) > _BATCH:
            release_memory()
        self._sample_shared(at)

    def _warn_over(self, infos: list[dict[str, Any]]) -> None:
        """Log once for each filter that it is over capacity."""
        over = {info["id"]: info for info in infos if info["over_capacity"]}
        for number in over.keys() - self._over:
            info = over[number]
            _LOG.warning(
                "a filter is over capacity and exceeds its false-positive rate; "
                "create a larger one, or one that grows",
                extra={name: info[name] for name in _OVER_CAPACITY} | {"filter": info["name"]},
            )
        self._over -= {info["id"] for info in infos}
        self._over |= over.keys()

    def _warn_unlike(self, infos: list[dict[str, Any]]) -> None:
        """Log once for each filter that texts were looked up over RESP, and other keys were added."""
        for info in infos:
            if "key_domain_warning" not in info:
                self._unlike.discard(info["id"])
            elif info["id"] not in self._unlike:
                self._unlike.add(info["id"])
                _LOG.warning(
                    "clients that speak RESP look up keys of a type that was never added, and find none: "
                    "add them over RESP or as texts",
                    extra={"filter": info["name"], "reason": info["key_domain_warning"]},
                )

    def _sample_shared(self, at: int) -> None:
        """Record this node's counts of filters in Redis; one node writes their samples."""
        node = self._node
        if node.shared.is_set_up:
            node.shared.flush()
            if node.peers.is_leader():
                node.registry.snapshots.add(node.shared.due(self._sampled), at)

    def thin(self) -> None:
        """Thin out old samples."""
        history = self._node.settings.history
        self._node.registry.snapshots.thin(now(), history.full, history.hourly)
