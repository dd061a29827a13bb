"""The other nodes of one registry: where filters live, and which nodes are silent."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fullbloom.service.failures import Refused

if TYPE_CHECKING:
    from fullbloom.service.registry import Registry
    from fullbloom.service.registry.nodes import Seen


#: Seconds within which a node that lives has said so; it does every second.
_ALIVE = 5.0


class Others:
    """What this node knows of the others, each of which says every second that it lives.

    How long one is silent is measured here, from its last word on: clocks of machines differ.
    """

    def __init__(self, registry: Registry, own: str, silence: float) -> None:
        """Begin without any; one that is silent for ``silence`` seconds may be let go."""
        self._registry, self._own, self._silence = registry, own, silence
        self._seen: dict[str, tuple[Seen, float]] = {}
        #: Names of filters on other nodes, with the address.
        self.names: dict[str, str] = {}

    def look(self) -> bool:
        """Read what they said; True where that changed which names live where."""
        now, before = time.monotonic(), self._seen
        said = {node: seen for node, seen in self._registry.nodes.seen().items() if node != self._own}
        self._seen = {
            node: (seen, before[node][1] if node in before and before[node][0] == seen else now)
            for node, seen in said.items()
        }
        if _places(said) == _places({node: seen for node, (seen, _) in before.items()}):
            return False
        self.names = self._registry.filters.elsewhere(self._own)
        return True

    def silent(self, node: str) -> float | None:
        """Return for how many seconds a node has said nothing; None for one that is not known."""
        known = self._seen.get(node)
        return None if known is None else time.monotonic() - known[1]

    def leads(self) -> bool:
        """Tell whether this node is the one among those that live to do what one of them is to do.

        Two may think so for a moment.
        """
        if self._registry.shared:
            living = [node for node in self._seen if (self.silent(node) or 0.0) < _ALIVE]
        else:  # all processes of a file are of this machine, and of one clock
            living = self._registry.nodes.alive(time.time_ns() // 1_000_000 - int(_ALIVE * 1000))
        return self._own == min([*living, self._own])

    def told(self, address: str) -> str:
        """Return what to add to an address whose node is silent."""
        for node, (seen, _) in self._seen.items():
            if seen.http == address and (silent := self.silent(node) or 0.0) > self._silence / 3:
                return f"; node {node} has been silent for {silent:.0f} s"
        return ""

    def let_go(self, node: str) -> None:
        """Forget a node that is silent: its names are free. Refused where it was heard of lately."""
        if node == self._own:
            raise Refused("busy", "a node does not let itself go; ask another one")
        silent = self.silent(node)
        if silent is None:
            raise Refused("missing", "no other node of the registry has this name")
        if silent < self._silence:
            text = f"node {node} was heard of {silent:.0f} s ago; it may be let go after {self._silence:g} s"
            raise Refused("busy", text)
        if not self._registry.nodes.let_go(node, self._seen[node][0].at):
            raise Refused("busy", f"node {node} lives again")


def _places(said: dict[str, Seen]) -> dict[str, tuple[str, int]]:
    return {node: (seen.http, seen.epoch) for node, seen in said.items()}
