"""The other nodes of one registry: where filters live, and which nodes are silent."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fullbloom.service.failures import Refused

if TYPE_CHECKING:
    from fullbloom.service.registry import Registry
    from fullbloom.service.registry.nodes import Heartbeat

#: A node is alive if its last heartbeat is at most so many seconds old; it sends one every second.
_ALIVE = 5.0


class Peers:
    """What this node knows of the other nodes, each of which sends a heartbeat every second.

    Silence is measured here, from the last heartbeat: clocks of machines differ.
    """

    def __init__(self, registry: Registry, own: str, silence: float) -> None:
        """Know no peer yet; one that is silent for ``silence`` seconds may be removed."""
        self._registry, self._own, self._silence = registry, own, silence
        self._seen: dict[str, tuple[Heartbeat, float]] = {}
        #: Names of filters on other nodes, with the address.
        self.names: dict[str, str] = {}

    def refresh(self) -> bool:
        """Read the heartbeats; return True if names moved between nodes."""
        now, before = time.monotonic(), self._seen
        beats = {node: beat for node, beat in self._registry.nodes.heartbeats().items() if node != self._own}
        moved = _versions(beats) != _versions({node: beat for node, (beat, _) in before.items()})
        if moved:  # first: if it fails, the next run must find the same difference
            self.names = self._registry.filters.load_remote_names(self._own)
        self._seen = {
            node: (beat, before[node][1] if node in before and before[node][0] == beat else now)
            for node, beat in beats.items()
        }
        return moved

    def silence(self, node: str) -> float | None:
        """Return the seconds since a node's last heartbeat; None for an unknown node."""
        known = self._seen.get(node)
        return None if known is None else time.monotonic() - known[1]

    def is_leader(self) -> bool:
        """Return whether this node does the work that only one of the living nodes should do.

        Two may think so for a moment.
        """
        if self._registry.shared:
            living = [node for node in self._seen if (self.silence(node) or 0.0) < _ALIVE]
        else:  # all processes of a file run on this machine, with one clock
            living = self._registry.nodes.list_alive(time.time_ns() // 1_000_000 - int(_ALIVE * 1000))
        return self._own == min([*living, self._own])

    def describe_silence(self, address: str) -> str:
        """Return the text to append to an address whose node is silent."""
        for node, (beat, _) in self._seen.items():
            if beat.http == address and (silence := self.silence(node) or 0.0) > self._silence / 3:
                return f"; node {node} has been silent for {silence:.0f} s"
        return ""

    def remove(self, node: str) -> None:
        """Remove a silent node, which frees its names; refuse one that reported lately."""
        if node == self._own:
            raise Refused("busy", "a node cannot remove itself; send the request to another node")
        known = self._seen.get(node)
        if known is None:
            raise Refused("missing", "no other node of the registry has this name")
        # The silence is that since this heartbeat: after a newer one the node is not removed.
        beat, since = known
        silence = time.monotonic() - since
        if silence < self._silence:
            text = f"node {node} reported {silence:.0f} s ago; it can be removed after {self._silence:g} s"
            raise Refused("busy", text)
        if not self._registry.nodes.remove(node, beat.at):
            raise Refused("busy", f"node {node} is alive again")


def _versions(beats: dict[str, Heartbeat]) -> dict[str, tuple[str, int]]:
    return {node: (beat.http, beat.epoch) for node, beat in beats.items()}
