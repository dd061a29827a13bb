"""Location of keys in a network of nodes: attenuated filters kept current, and queries that follow them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from fullbloom._core import hash_key, hash_many
from fullbloom.errors import ParameterError

from .attenuated import HashFilter, Router, check_mergeable

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from fullbloom.keys import Key

__all__ = ["AttenuatedNetwork", "Route", "UpdateCost"]

F = TypeVar("F", bound=HashFilter)
_HASH_BITS = 64


class Route(NamedTuple):
    """The way of a query."""

    #: Nodes from the start to the node that has the key; empty if none was found.
    path: list[Hashable]
    #: All nodes in the order visited, including those to which the query went back.
    walk: list[Hashable]
    #: Links through which the query came back, nearly always because of a false positive.
    num_backtracks: int

    @property
    def is_found(self) -> bool:
        """True if a node has the key."""
        return bool(self.path)

    @property
    def num_hops(self) -> int:
        """Links on the path."""
        return max(0, len(self.path) - 1)


class UpdateCost(NamedTuple):
    """What an update of the advertised filters sent over all links."""

    num_messages: int
    bits_sent: int

    def __add__(self, other: object) -> UpdateCost:
        """Return the cost of both updates."""
        if not isinstance(other, UpdateCost):
            return NotImplemented
        return UpdateCost(self.num_messages + other.num_messages, self.bits_sent + other.bits_sent)


class AttenuatedNetwork(Generic[F]):
    """Nodes that find keys within ``depth`` hops by attenuated Bloom filters, one for each end of a link.

    template: a filter whose parameters all nodes use; it is not changed. depth: levels of the attenuated
    filters. secret: that of a keyed template. A query goes along the link whose nearest level finds the
    key, and comes back if the key is not there. It finds every key that is at most ``depth`` hops away, by
    the shortest way unless a false positive leads it to another one first; memory per link is ``depth``
    filters. All nodes are in this process; `Router` is one node, for use over a network.

    A new key is announced by its hash, 64 bits in each message, to the nodes within ``depth`` hops
    (`theory.attenuated_messages`). A lost key or link cannot be taken out of a filter: `advertise` sends all
    filters again.

    Source: Rhea, Kubiatowicz, "Probabilistic location and routing", INFOCOM 2002.

    >>> from fullbloom import BloomFilter
    >>> network = AttenuatedNetwork(BloomFilter(100, 0.001), depth=2)
    >>> for name in ["n1", "n2", "n3", "n4"]:
    ...     network.add_node(name)
    >>> network.connect(("n1", "n2"), ("n2", "n3"), ("n1", "n4")).num_messages
    12
    >>> network.add("n3", ["paper.pdf"])
    UpdateCost(num_messages=2, bits_sent=128)
    >>> network.find("n1", "paper.pdf").path
    ['n1', 'n2', 'n3']
    >>> network.find("n4", "paper.pdf").is_found  # three hops away
    False
    """

    def __init__(self, template: F, depth: int, *, secret: bytes | None = None) -> None:
        self._template = template.copy()
        self._template.clear()
        if depth < 1:
            raise ParameterError(f"depth must be at least 1, got {depth}")
        check_mergeable(template)
        self._depth, self._secret = depth, secret
        self._routers: dict[Hashable, Router[Hashable, F]] = {}
        self._stored: dict[Hashable, set[int]] = {}

    @property
    def routers(self) -> dict[Hashable, Router[Hashable, F]]:
        """The nodes by name."""
        return dict(self._routers)

    def add_node(self, name: Hashable) -> None:
        """Add a node without keys and links; raise ``ParameterError`` if the name is in use."""
        if name in self._routers:
            raise ParameterError(f"the network has a node {name!r} already")
        self._routers[name] = Router(name, self._template.copy(), self._depth)
        self._stored[name] = set()

    def connect(self, *links: tuple[Hashable, Hashable]) -> UpdateCost:
        """Add links, each a pair of nodes, and advertise all filters; return the cost.

        Raises ``ParameterError``, before any change, for a node that does not exist, a node linked to itself
        and a link that exists or is given twice.
        """
        self._check_links(links, exist=False)
        for first, second in links:
            self._routers[first].connect(second)
            self._routers[second].connect(first)
        return self.advertise()

    def disconnect(self, *links: tuple[Hashable, Hashable]) -> UpdateCost:
        """Remove links and advertise all filters; return the cost.

        Raises ``ParameterError``, before any change, for a link that does not exist or is given twice.
        """
        self._check_links(links, exist=True)
        for first, second in links:
            self._routers[first].disconnect(second)
            self._routers[second].disconnect(first)
        return self.advertise()

    def _check_links(self, links: Iterable[tuple[Hashable, Hashable]], *, exist: bool) -> None:
        """Refuse a link between nodes that cannot be added, or removed if links must ``exist``."""
        seen: set[frozenset[Hashable]] = set()
        for first, second in links:
            one, ends = self._get(first), frozenset((first, second))
            self._get(second)
            if exist and second not in one.links:
                raise ParameterError(f"{first!r} has no link to {second!r}")
            if not exist and (first == second or second in one.links):
                raise ParameterError(f"{first!r} cannot be linked to {second!r}, itself or linked already")
            if ends in seen:
                raise ParameterError(f"the link between {first!r} and {second!r} is given twice")
            seen.add(ends)

    def add(self, name: Hashable, keys: Collection[Key]) -> UpdateCost:
        """Add keys to a node and announce them to the nodes within ``depth`` hops; return the cost."""
        router = self._get(name)
        hashes = self._hash_all(keys)
        self._stored[name].update(hashes)
        new = router.local.add_hashed(hashes)
        fresh = [hashed for hashed, is_new in zip(hashes, new, strict=True) if is_new]
        cost = UpdateCost(0, 0)
        # Each item: a node, the neighbour to leave out, and the hashes that are new at this distance. The
        # first leaves out none: no node is its own neighbour, but one may have any other name, even None.
        senders: list[tuple[Hashable, Hashable, list[int]]] = [(name, name, fresh)]
        for level in range(self._depth):
            receivers: list[tuple[Hashable, Hashable, list[int]]] = []
            for sender, origin, part in senders:
                for neighbour in self._routers[sender].links if part else ():
                    if neighbour != origin:
                        cost += UpdateCost(1, _HASH_BITS * len(part))
                        changed = self._routers[neighbour].accept_hashes(sender, level, part)
                        receivers.append((neighbour, sender, changed))
            senders = receivers
        return cost

    def remove(self, name: Hashable, keys: Iterable[Key]) -> UpdateCost:
        """Remove keys from a node and advertise all filters; return the cost.

        Raises ``KeyError``, before any change, for a key that the node does not have.
        """
        router, stored = self._get(name), self._stored[name]
        # hash_many refuses a single text.
        keys = keys if isinstance(keys, Collection) else list(keys)
        gone = dict(zip(self._hash_all(keys), keys, strict=True))
        for hashed, key in gone.items():
            if hashed not in stored:
                raise KeyError(key)
        stored.difference_update(gone)
        router.local.clear()
        router.local.add_hashed(list(stored))
        return self.advertise()

    def advertise(self) -> UpdateCost:
        """Build all attenuated filters again, by one advertisement over each link and level.

        Sends ``depth`` filters over each of the two directions of a link.
        """
        cost = UpdateCost(0, 0)
        for router in self._routers.values():
            for neighbour in router.links:
                router.disconnect(neighbour)
                router.connect(neighbour)
        # Round i makes level i right, since it needs level i - 1 of the neighbours only.
        for _ in range(self._depth):
            sent = [
                (neighbour, name, router.advertise(neighbour))
                for name, router in self._routers.items()
                for neighbour in router.links
            ]
            for to, source, advertisement in sent:
                self._routers[to].accept(source, advertisement)
                # Of each advertisement, only the level that is new in this round needs to be sent.
                cost += UpdateCost(1, 8 * advertisement.levels[0].nbytes)
        return cost

    def find(self, start: Hashable, key: Key) -> Route:
        """Return the way of a query for ``key`` that starts at a node."""
        self._get(start)
        hashed = self._hash(key)
        path, walk = [start], [start]
        # A node is worth a second visit only with more hops left than before.
        left_at = {start: self._depth}
        choices = [self._rank(start, hashed, self._depth)]
        backtracks = 0
        if hashed in self._stored[start]:
            return Route(path, walk, 0)
        while path:
            left = self._depth - len(path)
            while choices[-1] and left_at.get(choices[-1][0], -1) >= left:
                choices[-1].pop(0)
            if left < 0 or not choices[-1]:
                choices.pop()
                path.pop()
                if path:
                    walk.append(path[-1])
                    backtracks += 1
                continue
            node = choices[-1].pop(0)
            left_at[node] = left
            path.append(node)
            walk.append(node)
            if hashed in self._stored[node]:
                return Route(path, walk, backtracks)
            choices.append(self._rank(node, hashed, left))
        return Route([], walk, backtracks)

    def _rank(self, name: Hashable, hashed: int, left: int) -> list[Hashable]:
        return self._routers[name].rank_links(hashed, left)

    def _hash(self, key: Key) -> int:
        return hash_key(key, seed=self._template.seed, secret=self._secret)

    def _hash_all(self, keys: Collection[Key]) -> list[int]:
        return [int(each) for each in hash_many(keys, seed=self._template.seed, secret=self._secret)]

    def _get(self, name: Hashable) -> Router[Hashable, F]:
        if name not in self._routers:
            raise ParameterError(f"the network has no node {name!r}")
        return self._routers[name]
