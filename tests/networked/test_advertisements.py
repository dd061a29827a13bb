"""Guarantee: nodes in several processes build the filters of a network in one, at the bits of the formula."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from cases import for_each
from networked.processes import run_processes
from networked.test_routing import build, draw_graph, links_of, read_bits

from fullbloom import BloomFilter, FilterMemoryError, PrefixFilter, hash_many, theory
from fullbloom.compose.networked import (
    AttenuatedFilter,
    CountingElement,
    LocalElement,
    ProcessingElement,
    Router,
    announce_hashes,
    exchange_advertisements,
    run_local,
)
from fullbloom.errors import FormatError, ParameterError, PeerError

if TYPE_CHECKING:
    from networked.test_routing import Graph

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

SECRET = b"sixteen secrets!"
#: Most bytes of a message beside the cells.
HEADER = 512


def list_keys(node: int, count: int = 10) -> list[str]:
    return [f"{node} has {number}" for number in range(count)]


def create_router(rank: int, graph: Graph, depth: int, template: Any) -> Router[int, Any]:
    router: Router[int, Any] = Router(rank, template.copy(), depth)
    for neighbour in sorted(graph[rank]):
        router.connect(neighbour)
    return router


def bits_of(router: Router[int, Any]) -> dict[Any, bytes]:
    return {
        (router.name, neighbour, at): bytes(level.bits())
        for neighbour, known in router.links.items()
        for at, level in enumerate(known.levels)
    }


def run(size: int, job: Any, transport: str) -> list[Any]:
    if transport == "threads":
        return run_local(size, job)
    outcomes = run_processes(size, job)
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
    return [outcome.value for outcome in outcomes]


@pytest.mark.parametrize("transport", ["threads", "processes"])
@pytest.mark.parametrize("seed", range(4))
def test_elements_build_the_filters_of_a_network_in_one_process(transport: str, seed: int) -> None:
    draw = random.Random(seed)
    graph = draw_graph(draw, draw.randint(2, 7), draw.randint(0, 4))
    depth, template = draw.randint(1, 4), BloomFilter(200, 0.01, seed=seed)
    network = build(graph, depth, template)
    for node in graph:
        network.add(node, list_keys(node))

    def job(element: ProcessingElement) -> tuple[dict[Any, bytes], int, int]:
        counter, router = CountingElement(element), create_router(element.rank, graph, depth, template)
        router.local.update(list_keys(element.rank))
        exchange_advertisements(counter, router)
        return bits_of(router), counter.messages_sent, counter.bits_sent

    results = run(len(graph), job, transport)
    assert {name: bits for found, *_ in results for name, bits in found.items()} == read_bits(network)
    messages, sent = (sum(each[at] for each in results) for at in (1, 2))
    law = theory.attenuated_bits(template.num_bits, len(links_of(graph)), depth)
    assert messages * template.num_bits == law
    assert law <= sent <= law + 8 * HEADER * messages


@pytest.mark.parametrize("transport", ["threads", "processes"])
@pytest.mark.parametrize("seed", range(4))
def test_announced_keys_leave_the_filters_of_a_new_advertisement(transport: str, seed: int) -> None:
    draw = random.Random(seed)
    graph = draw_graph(draw, draw.randint(2, 7), draw.randint(0, 4))
    depth, template = draw.randint(1, 4), BloomFilter(200, 0.01, seed=seed)
    counts = [[draw.randint(0, 4) for _ in graph] for _ in range(3)]

    def job(element: ProcessingElement) -> bool:
        router, before = create_router(element.rank, graph, depth, template), 0
        for round_ in counts:
            after = before + round_[element.rank]
            announce_hashes(element, router, hash_many(list_keys(element.rank, after)[before:], seed=seed))
            before = after
        announced = bits_of(router)
        exchange_advertisements(element, router)
        return announced == bits_of(router)

    assert all(run(len(graph), job, transport))


@for_each("seed", range(6))
def test_an_announcement_in_a_tree_sends_the_hashes_of_the_formula(seed: int) -> None:
    draw = random.Random(seed)
    degree, depth, keys = draw.randint(2, 3), draw.randint(1, 3), draw.randint(1, 5)
    graph: Graph = {0: set()}
    level = [0]
    for _ in range(depth + 1):
        below = []
        for node in level:
            while len(graph[node]) < degree:
                child = len(graph)
                graph[child] = {node}
                graph[node].add(child)
                below.append(child)
        level = below

    def job(element: LocalElement) -> int:
        counter = CountingElement(element)
        router = create_router(element.rank, graph, depth, BloomFilter(100, 1e-9))
        hashes = hash_many(list_keys(0, keys)) if element.rank == 0 else []
        announce_hashes(counter, router, [int(each) for each in hashes])
        return counter.bits_sent

    assert sum(run_local(len(graph), job)) == 64 * keys * theory.attenuated_messages(degree, depth)


@for_each("transport", ["threads", "processes"])
@for_each("lie", ["nothing", "noise", "short", "unlike", "kind", "seed"])
def test_a_neighbour_that_lies_is_an_error_with_its_rank_and_changes_nothing(
    lie: str, transport: str
) -> None:
    messages = {
        "nothing": b"",
        "noise": random.Random(1).randbytes(5000),
        "short": BloomFilter(1000).to_bytes()[:-1],
        "unlike": BloomFilter(2000).to_bytes(),
        "kind": PrefixFilter(1000, 0.01).to_bytes(),
        "seed": BloomFilter(1000, seed=1).to_bytes(),
    }
    graph = {0: {1}, 1: {0, 2}, 2: {1}}

    class Liar(CountingElement):
        def send(self, to: int, message: bytes) -> None:
            super().send(to, messages[lie] if self.messages_sent else message)

    def job(element: ProcessingElement) -> Any:
        router = create_router(element.rank, graph, 3, BloomFilter(1000))
        before = bits_of(router)
        try:
            exchange_advertisements(Liar(element) if element.rank == 2 else element, router)
        finally:
            assert bits_of(router) == before
        return None

    with pytest.raises(PeerError, match="rank 2 sent a filter that cannot be used: ") as caught:
        if transport == "threads":
            run_local(3, job)
        else:
            raise next(
                outcome.error for outcome in run_processes(3, job) if "cannot be used" in str(outcome.error)
            )
    assert caught.value.rank == 2


@pytest.mark.filterwarnings("error::fullbloom.CapacityWarning")
@for_each("theirs", [{"strict": True}, {"capacity": 1990}, {"capacity": 1990, "strict": True}], ids=str)
def test_a_neighbour_does_not_decide_how_many_keys_an_element_stores(theirs: dict[str, Any]) -> None:
    """Filters of as many bits can be merged, whatever their capacity, and whether they refuse more keys."""
    options: dict[str, Any] = {"capacity": 2000, "fpr": 0.01}
    stated = BloomFilter(**options | theirs)
    assert stated.num_bits == BloomFilter(**options).num_bits
    stated.add_hashed(hash_many(range(1990)))
    new = [int(each) for each in hash_many(range(1990, 2000))]

    class Neighbour(CountingElement):
        def send(self, to: int, message: bytes) -> None:
            super().send(to, message if self.messages_sent else stated.to_bytes())

    def job(element: LocalElement) -> list[int]:
        router = create_router(element.rank, {0: {1}, 1: {0}}, 1, BloomFilter(**options))
        own: ProcessingElement = Neighbour(element) if element.rank else element
        exchange_advertisements(own, router)
        announce_hashes(own, router, new if element.rank else [])
        return [len(router.rank_links(each, 1)) for each in new]

    assert run_local(2, job)[0] == [1] * len(new)


@pytest.mark.parametrize("message", [b"seven b", b"12345678" * 5])
def test_an_announcement_of_other_bytes_or_too_many_hashes_is_refused(message: bytes) -> None:
    class Liar(CountingElement):
        def send(self, to: int, _: bytes) -> None:
            super().send(to, message)

    def job(element: LocalElement) -> None:
        router = create_router(element.rank, {0: {1}, 1: {0}}, 2, BloomFilter(100))
        announce_hashes(Liar(element) if element.rank else element, router, [], max_hashes=4)

    with pytest.raises(PeerError, match="rank 1 sent an invalid announcement"):
        run_local(2, job)


def test_a_node_that_is_not_named_by_its_rank_and_a_secret_that_is_missing_are_refused() -> None:
    element = LocalElement.group(2)[0]
    for call in (
        lambda router: exchange_advertisements(element, router),
        lambda router: announce_hashes(element, router, []),
    ):
        with pytest.raises(ParameterError, match="named by its rank, 0, got 1"):
            call(Router(1, BloomFilter(100), 2))
    with pytest.raises(ParameterError, match="pass it as secret="):
        exchange_advertisements(element, Router(0, BloomFilter(100, secret=SECRET), 2))

    def job(element: LocalElement) -> list[int]:
        router = create_router(element.rank, {0: {1}, 1: {0}}, 2, BloomFilter(100, secret=SECRET))
        router.local.update(list_keys(element.rank))
        exchange_advertisements(element, router, secret=SECRET)
        return router.rank_links(int(hash_many(list_keys(1), secret=SECRET)[0]), 2)

    assert run_local(2, job) == [[1], []]


@for_each("seed", range(10))
def test_an_attenuated_filter_is_restored_from_its_bytes(seed: int) -> None:
    draw = random.Random(seed)
    secret = draw.choice([None, SECRET])
    levels = [BloomFilter(200, 0.01, secret=secret) for _ in range(draw.randint(1, 6))]
    for at, level in enumerate(levels):
        level.update(list_keys(at, draw.randint(0, 100)))
    data = AttenuatedFilter(levels).to_bytes()
    found = AttenuatedFilter.from_bytes(data, secret=secret, max_bytes=sum(each.nbytes for each in levels))
    assert [bytes(level.bits()) for level in found.levels] == [bytes(level.bits()) for level in levels]
    assert found.to_bytes() == data
    with pytest.raises(FilterMemoryError, match="max_bytes"):
        AttenuatedFilter.from_bytes(data, secret=secret, max_bytes=sum(each.nbytes for each in levels) - 1)


def test_levels_beyond_the_limit_of_bytes_are_refused_wherever_the_limit_is() -> None:
    """Also where the levels before take all of it, so that 0 bytes are left."""
    levels = [BloomFilter(200, 0.01) for _ in range(3)]
    data, one = AttenuatedFilter(levels).to_bytes(), levels[0].nbytes
    for most in range(1, 3 * one):
        with pytest.raises(FilterMemoryError, match="max_bytes"):
            AttenuatedFilter.from_bytes(data, max_bytes=most)
    assert len(AttenuatedFilter.from_bytes(data, max_bytes=3 * one).levels) == 3
    with pytest.raises(FilterMemoryError, match=f"level 3 of 3 .* max_bytes = {2 * one}"):
        AttenuatedFilter.from_bytes(data, max_bytes=2 * one)
    for first, left in ((1, one - 1), (2, 1)):
        most = (first - 1) * one + left
        limit = f"max_bytes is {most}" if first == 1 else f"max_bytes = {most} leaves {left}"
        with pytest.raises(FilterMemoryError, match=f"level {first} of 3: .* {one} bytes, {limit};"):
            AttenuatedFilter.from_bytes(data, max_bytes=most)
    for most in (0, -1):
        with pytest.raises(ParameterError, match="max_bytes must be between 1"):
            AttenuatedFilter.from_bytes(data, max_bytes=most)
    with pytest.raises(ParameterError, match="pass secret="):
        AttenuatedFilter.from_bytes(AttenuatedFilter([BloomFilter(100, secret=SECRET)]).to_bytes())


def test_other_bytes_are_no_attenuated_filter() -> None:
    draw = random.Random(5)
    near, far = BloomFilter(100), BloomFilter(100)
    data = AttenuatedFilter([near, far]).to_bytes()
    length = len(near.to_bytes()).to_bytes(8, "little")
    invalid = [data[:at] for at in range(len(data))]
    invalid += [data + b"x", data[:8] + b"\0", data[:8] + b"\0" + data[9:], b"x" + data[1:]]
    invalid += [data[:8] + b"\x03" + data[9:], data.replace(length, b"\xff" * 8, 1)]
    invalid.append(data[:8] + b"\x41" + 65 * (length + near.to_bytes()))
    unlike = BloomFilter(300).to_bytes()
    invalid.append(data[:8] + b"\x02" + length + near.to_bytes() + len(unlike).to_bytes(8, "little") + unlike)
    for forged in invalid:
        with pytest.raises(FormatError):
            AttenuatedFilter.from_bytes(forged)
    for _ in range(300):
        forged = bytearray(data)
        for _ in range(draw.randint(1, 4)):
            forged[draw.randrange(len(forged))] = draw.randrange(256)
        try:
            AttenuatedFilter.from_bytes(bytes(forged), max_bytes=1 << 20)
        except (FormatError, FilterMemoryError, ParameterError):
            continue
        assert bytes(forged) == data
