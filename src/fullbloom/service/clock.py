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
        #: Those of filters in Redis, which have ids of their own.
        self._shared_over: set[int] = set()
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
        due, at = node.service.list_due(), now()
        for start in range(0, len(due), _BATCH):
            some = due[start : start + _BATCH]
            numbers = [number for number, _ in some]
            rows = node.registry.filters.row_ids(node.id, numbers)
            infos = node.service.stats(numbers, counted=True)
            self._warn_of_capacity(infos, self._over)
            self._warn_once(
                infos,
                self._unlike,
                lambda info: "key_domain_warning" in info,
                "clients that speak RESP look up keys of a type that was never added, and find none: "
                "add them over RESP or as texts",
                ("key_domain_warning",),
            )
            node.registry.snapshots.add(
                ((rows[info["id"]], info) for info in infos if info["id"] in rows), at
            )
            # One that a request is about to record has no row yet: its sample comes next time.
            node.service.mark_sampled([one for one in some if one[0] in rows])
        if len(due) > _BATCH:
            release_memory()
        self._sample_shared(at)

    def _warn_of_capacity(self, infos: list[dict[str, Any]], warned: set[int]) -> None:
        self._warn_once(
            infos,
            warned,
            lambda info: info["over_capacity"],
            "a filter is over capacity and exceeds its false-positive rate; "
            "create a larger one, or one that grows",
            _OVER_CAPACITY,
        )

    @staticmethod
    def _warn_once(
        infos: list[dict[str, Any]],
        warned: set[int],
        is_due: Callable[[dict[str, Any]], bool],
        message: str,
        members: tuple[str, ...],
    ) -> None:
        """Log a message once for each filter while it is due; ``warned`` has the ids of those."""
        due = {info["id"]: info for info in infos if is_due(info)}
        for number in due.keys() - warned:
            info = due[number]
            _LOG.warning(message, extra={name: info[name] for name in members} | {"filter": info["name"]})
        warned -= {info["id"] for info in infos}
        warned.update(due)

    def _sample_shared(self, at: int) -> None:
        """Record this node's counts of filters in Redis; one node writes their samples."""
        node = self._node
        if node.shared.is_set_up:
            node.shared.flush()
            if node.peers.is_leader():
                sampled = dict(self._sampled)
                due = list(node.shared.list_due(sampled))
                node.registry.snapshots.add(due, at)
                self._sampled = sampled  # once the samples are written
                self._warn_of_capacity([info for _, info in due], self._shared_over)

    def thin(self) -> None:
        """Thin out old samples."""
        history = self._node.settings.history
        self._node.registry.snapshots.thin(now(), history.full, history.hourly)
