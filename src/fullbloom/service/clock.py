"""What happens by itself: every second, and every sample."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from fullbloom.service.memory import give_back
from fullbloom.service.node import now

if TYPE_CHECKING:
    from collections.abc import Callable

    from fullbloom.service.node import Node

_LOG = logging.getLogger("fullbloom.clock")
_THINNED_EVERY = 3600.0
#: Filters that are sampled at once: what one tells takes 4 kB, and ten thousand are not held together.
_AT_ONCE = 200
#: What is said of a filter beyond its capacity, besides its name.
_OF_OVER = ("capacity", "num_added", "target_fpr", "fpr")


class Clock:
    """Steps of one node, each of which may fail without the next."""

    def __init__(self, node: Node) -> None:
        """Take the node."""
        self._node = node
        #: Numbers of filters that the log has said to be beyond their capacity.
        self._over: set[int] = set()
        #: Counters of filters in Redis when this node sampled them last.
        self._sampled: dict[int, Any] = {}

    async def run(self) -> None:
        """Go on until cancelled."""
        history = self._node.settings.history
        steps = [
            (1.0, self._tick),
            (1.0, self._second),
            (1.0, self._expire),
            (history.every, self.sample),
            (_THINNED_EVERY, self.thin),
        ]
        await asyncio.gather(*(self._repeat(every, step) for every, step in steps))

    @staticmethod
    async def _repeat(every: float, step: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(every)
            try:
                await asyncio.to_thread(step)
            except Exception:  # noqa: BLE001 - the disk is full, the database away: the next turn may do better
                _LOG.exception("a step failed", extra={"step": step.__name__})

    def _tick(self) -> None:
        # By itself: a checkpoint of gigabytes is no silence.
        self._node.service.tick()

    def _second(self) -> None:
        self._node.look_around()
        self._node.sync()
        self._node.learn_tokens()

    def _expire(self) -> None:
        # By itself: a server that is away keeps no token from being revoked.
        self._node.shared.drop_expired(now())

    def sample(self) -> None:
        """Write what filters tell of themselves: those that changed or were asked since the last time."""
        node = self._node
        node.sync()
        due, at = node.service.due(), now()
        for start in range(0, len(due), _AT_ONCE):
            some = due[start : start + _AT_ONCE]
            numbers = [number for number, _ in some]
            rows = node.registry.filters.rows(node.id, numbers)
            infos = node.service.stats(numbers, counted=True)
            self._warn_over(infos)
            node.registry.snapshots.add(
                ((rows[info["id"]], info) for info in infos if info["id"] in rows), at
            )
            node.service.mark_sampled(some)
        if len(due) > _AT_ONCE:
            give_back()
        self._sample_shared(at)

    def _warn_over(self, infos: list[dict[str, Any]]) -> None:
        """Say once of each filter that it holds more keys than it was made for."""
        over = {info["id"]: info for info in infos if info["over_capacity"]}
        for number in over.keys() - self._over:
            info = over[number]
            _LOG.warning(
                "a filter is beyond its capacity: more absent keys are found than it was made for; "
                "make a larger one, or one that grows",
                extra={name: info[name] for name in _OF_OVER} | {"filter": info["name"]},
            )
        self._over -= {info["id"] for info in infos}
        self._over |= over.keys()

    def _sample_shared(self, at: int) -> None:
        """Hand over what was counted here of filters in Redis; one node writes their samples."""
        node = self._node
        if node.shared.is_set_up:
            node.shared.flush()
            if node.others.leads():
                node.registry.snapshots.add(node.shared.due(self._sampled), at)

    def thin(self) -> None:
        """Thin out what is old."""
        history = self._node.settings.history
        self._node.registry.snapshots.thin(now(), history.full, history.hourly)
