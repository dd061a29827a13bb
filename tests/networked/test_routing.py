"""Guarantee: a query finds every key within the depth and leaves false hits; updates cost the formula."""

from __future__ import annotations

import itertools
import random
from collections import deque
from typing import Any

import pytest
from cases import for_each
from support import Variant, variants_with

from fullbloom import BloomFilter, CapacityWarning, CountingBloomFilter, PrefixFilter, hash_key, theory
from fullbloom.compose.networked import AttenuatedFilter, AttenuatedNetwork, Router, UpdateCost
from fullbloom.errors import IncompatibleFilters, KeyTypeError, ParameterError, ParameterTypeError

Graph = dict[int, set[int]]


def draw_graph(draw: random.Random, nodes: int, more: int) -> Graph:
    """A random tree with some links more."""
    graph: Graph = {node: set() for node in range(nodes)}
    pairs = [(node, draw.randrange(node)) for node in range(1, nodes)]
    pairs += [tuple(draw.sample(range(nodes), 2)) for _ in range(more)]
    for one, other in pairs:
        graph[one].add(other)
        graph[other].add(one)
    return graph


def links_of(graph: Graph) -> list[tuple[int, int]]:
    return [(one, other) for one, others in graph.items() for other in sorted(others) if one < other]


def measure_distances(graph: Graph, start: int) -> dict[int, int]:
    distances, pending = {start: 0}, deque([start])
    while pending:
        node = pending.popleft()
        for neighbour in graph[node] - distances.keys():
            distances[neighbour] = distances[node] + 1
            pending.append(neighbour)
    return distances


def build(graph: Graph, depth: int, template: Any) -> AttenuatedNetwork[Any]:
    network = AttenuatedNetwork(template, depth)
    for node in graph:
        network.add_node(node)
    network.connect(*links_of(graph))
    return network


def read_bits(network: AttenuatedNetwork[Any]) -> dict[Any, bytes]:
    """The bits of every level of every link."""
    return {
        (name, neighbour, at): bytes(level.bits())
        for name, router in network.routers.items()
        for neighbour, known in router.links.items()
        for at, level in enumerate(known.levels)
    }


@for_each("seed", range(20))
@for_each("fpr", [1e-9, 0.05, 0.5])
def test_every_key_within_the_depth_is_found(seed: int, fpr: float) -> None:
    draw = random.Random(seed)
    graph = draw_graph(draw, draw.randint(2, 25), draw.randint(0, 12))
    depth = draw.randint(1, 5)
    network = build(graph, depth, BloomFilter(10 if fpr > 1e-6 else 400, fpr, seed=seed, layout="classic"))
    for node in graph:
        network.add(node, [f"{node} has {number}" for number in range(10)])
    backtracks = 0
    for start, target in itertools.product(graph, repeat=2):
        distance = measure_distances(graph, start)[target]
        route = network.find(start, f"{target} has {draw.randrange(10)}")
        assert route.is_found == (distance <= depth) or fpr > 0.01
        assert route.is_found or distance > depth
        if route.is_found:
            assert (route.path[0], route.path[-1]) == (start, target)
            assert all(other in graph[one] for one, other in itertools.pairwise(route.path))
            assert distance <= route.num_hops <= depth
        assert all(other in graph[one] for one, other in itertools.pairwise(route.walk))
        assert len(route.walk) == 1 + route.num_hops + 2 * route.num_backtracks or not route.is_found
        if fpr < 1e-6:
            assert route.num_hops == (distance if route.is_found else 0)
            assert route.num_backtracks == 0
        backtracks += route.num_backtracks
        assert not network.find(start, f"nobody has {target}").is_found
    assert backtracks > 0 or fpr < 0.5 or len(graph) < 10


@for_each("seed", range(15))
def test_announced_keys_leave_the_filters_that_a_new_advertisement_builds(seed: int) -> None:
    draw = random.Random(seed)
    graph = draw_graph(draw, draw.randint(2, 15), draw.randint(0, 8))
    template = draw.choice([BloomFilter(200, 0.05), BloomFilter(100, 0.01, layout="blocked", seed=3)])
    depth = draw.randint(1, 4)
    network, cost = build(graph, depth, template), UpdateCost(0, 0)
    for _ in range(40):
        node = draw.choice(list(graph))
        cost += network.add(node, [f"key {draw.randrange(100)}" for _ in range(draw.randint(0, 5))])
    before = read_bits(network)
    sent = network.advertise()
    assert read_bits(network) == before
    ends = 2 * len(links_of(graph))
    assert sent == UpdateCost(ends * depth, ends * depth * 8 * template.nbytes)
    assert cost.num_messages > 0


@for_each("seed", range(10))
def test_an_update_in_a_tree_costs_the_messages_of_the_formula(seed: int) -> None:
    draw = random.Random(seed)
    degree, depth, keys = draw.randint(2, 4), draw.randint(1, 4), draw.randint(1, 3)
    # A tree around node 0 in which each inner node has this degree, one level deeper than the filters.
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
    network = build(graph, depth, BloomFilter(100, 1e-9))
    cost = network.add(0, [f"{seed} {number}" for number in range(keys)])
    messages = theory.attenuated_messages(degree, depth)
    assert cost == UpdateCost(messages, 64 * keys * messages)
    # In place: nothing new, nothing sent. One node more: what one key more costs.
    assert network.add(0, [f"{seed} 0"]) == UpdateCost(0, 0)
    assert network.add(0, [f"{seed} 0", "more"]) == UpdateCost(messages, 64 * messages)


@pytest.mark.parametrize("seed", range(5))
def test_lost_keys_and_links_are_forgotten(seed: int) -> None:
    draw = random.Random(seed)
    graph = draw_graph(draw, 12, 4)
    network, depth = build(graph, 3, BloomFilter(300, 1e-6)), 3
    for node in graph:
        network.add(node, [f"own {node}", "common"])
    with pytest.raises(KeyError, match="missing"):
        network.remove(0, ["common", "missing"])
    assert network.find(0, "common").num_hops == 0
    network.remove(0, ["common"])
    assert network.find(0, "common").num_hops == 1
    assert network.find(0, "own 0").num_hops == 0
    one, other = draw.choice(links_of(graph))
    network.disconnect((one, other))
    graph[one].discard(other)
    graph[other].discard(one)
    distances = measure_distances(graph, one)
    for node in graph:
        route = network.find(one, f"own {node}")
        assert route.is_found == (distances.get(node, depth + 1) <= depth)
        assert not route.is_found or route.num_hops == distances[node]


def test_the_walk_of_the_four_nodes_of_the_literature() -> None:
    """A query for bits 0, 1 and 3 of 5 starts at n1, which lacks them, and goes by n2 to n3."""
    pattern = next(
        key
        for key in (f"key {number}" for number in itertools.count())
        if sorted(BloomFilter.with_shape(5, 3, layout="classic").positions(key)) == [0, 1, 3]
    )
    half = next(
        key
        for key in (f"half {number}" for number in itertools.count())
        if set(BloomFilter.with_shape(5, 3, layout="classic").positions(key)) == {0, 3}
    )
    network = AttenuatedNetwork(BloomFilter.with_shape(5, 3, layout="classic"), depth=2)
    for name in ("n1", "n2", "n3", "n4"):
        network.add_node(name)
    network.connect(("n1", "n2"), ("n1", "n4"), ("n2", "n3"))
    network.add("n3", [pattern])
    network.add("n1", [half])
    network.add("n4", [half])
    assert network.find("n1", pattern) == (["n1", "n2", "n3"], ["n1", "n2", "n3"], 0)
    assert bytes(network.routers["n1"].links["n2"].levels[1].bits()) == b"\x01\x01\x00\x01\x00"


def test_a_query_comes_back_from_a_node_that_promises_too_much() -> None:
    graph = {0: {1, 2}, 1: {0, 3}, 2: {0, 4}, 3: {1}, 4: {2}}
    network = build(graph, 3, BloomFilter(100, 1e-9))
    network.add(4, ["paper"])
    full = BloomFilter(100, 1e-9)
    full.update(range(5000))
    network.routers[0].accept(1, AttenuatedFilter([full.copy() for _ in range(3)]))
    network.routers[1].accept(3, AttenuatedFilter([full.copy() for _ in range(3)]))
    route = network.find(0, "paper")
    assert route.path == [0, 2, 4]
    assert route.walk == [0, 1, 3, 1, 0, 2, 4]
    assert route.num_backtracks == 2
    assert not network.find(0, "no paper").is_found
    assert network.find(0, "no paper").walk == [0, 1, 3, 1, 0]


@pytest.mark.parametrize(
    "unlike",
    [
        BloomFilter(200, 0.01),
        BloomFilter(100, 0.01, seed=1),
        BloomFilter(100, 0.01, layout="blocked"),
        CountingBloomFilter(100, 0.01),
        PrefixFilter(100, 0.01),
    ],
)
def test_unlike_filters_in_a_route_are_refused(unlike: Any) -> None:
    own = BloomFilter(100, 0.01, layout="classic")
    router = Router("here", own, 2)
    router.connect("there")
    before = router.links["there"]
    with pytest.raises(IncompatibleFilters, match=r"unlike those here|cannot be combined"):
        router.accept("there", AttenuatedFilter([unlike, unlike.copy()]))
    assert router.links["there"] is before
    with pytest.raises(IncompatibleFilters):
        AttenuatedFilter([own, unlike])


def test_invalid_arguments_are_refused() -> None:
    template = BloomFilter(100)
    with pytest.raises(ParameterError, match="depth must be at least 1, got 0"):
        AttenuatedNetwork(template, 0)
    with pytest.raises(ParameterError, match="depth must be at least 1"):
        Router("x", template, 0)
    with pytest.raises(ParameterError, match="at least one level"):
        AttenuatedFilter([])
    network = AttenuatedNetwork(template, 2)
    network.add_node("a")
    network.add_node("b")
    with pytest.raises(ParameterError, match="has a node 'a' already"):
        network.add_node("a")
    with pytest.raises(ParameterError, match="no node 'c'"):
        network.connect(("a", "c"))
    with pytest.raises(ParameterError, match="itself"):
        network.connect(("a", "a"))
    network.connect(("a", "b"))
    with pytest.raises(ParameterError, match="linked already"):
        network.connect(("b", "a"))
    for call in (
        lambda: network.find("c", 1),
        lambda: network.add("c", [1]),
        lambda: network.remove("c", [1]),
    ):
        with pytest.raises(ParameterError, match="no node 'c'"):
            call()
    for change in (network.add, network.remove):
        with pytest.raises(KeyTypeError, match="one str"):
            change("a", "paper.pdf")
    router = network.routers["a"]
    with pytest.raises(ParameterError, match="no link to 'c'"):
        router.accept("c", AttenuatedFilter([template, template]))
    with pytest.raises(ParameterError, match="depth = 2 levels, got 1"):
        router.accept("b", AttenuatedFilter([template]))
    with pytest.raises(ParameterError, match="level must be from 0 to 1"):
        router.accept_hashes("b", 2, [hash_key("x")])
    network.disconnect(("a", "b"))
    with pytest.raises(ParameterError, match="no link"):
        network.disconnect(("a", "b"))


@pytest.mark.parametrize("seed", range(5))
def test_a_refused_change_of_links_changes_nothing(seed: int) -> None:
    """All links of a call are checked before the first is changed: no link stays without its filters."""
    draw = random.Random(seed)
    graph = draw_graph(draw, 12, 4)
    network = build(graph, 3, BloomFilter(300, 1e-6))
    for node in graph:
        network.add(node, [f"own {node}"])
    before = read_bits(network)
    present = links_of(graph)
    missing = [(one, other) for one, other in itertools.combinations(graph, 2) if other not in graph[one]]
    draw.shuffle(present)
    draw.shuffle(missing)
    wrong_additions = [present[0], (0, 0), (0, "nobody"), missing[0], missing[0][::-1]]
    for wrong in wrong_additions:
        with pytest.raises(ParameterError):
            network.connect(*missing[:3], wrong)
        assert read_bits(network) == before
    for wrong in (missing[0], (0, "nobody"), present[0], present[0][::-1]):
        with pytest.raises(ParameterError):
            network.disconnect(*present[:3], wrong)
        assert read_bits(network) == before
    network.disconnect(*present[:3])
    network.connect(*present[:3])
    assert read_bits(network) == before


@for_each("variant", variants_with("merge", "keys"), ids=lambda variant: variant.id)
def test_filters_that_count_the_ways_to_a_key_are_refused(variant: Variant) -> None:
    """A table would hold a key once for each way that leads to it, and be full."""
    filter_ = variant.make(100, 0.01)
    if variant.can("union"):
        assert Router("here", filter_, 2).local is filter_
        strict = variant.make(100, 0.01, strict=True)
        for create in (lambda: Router("here", strict, 2), lambda: AttenuatedNetwork(strict, 2)):
            with pytest.raises(ParameterError, match="strict"):
                create()
        return
    for create in (lambda: Router("here", filter_, 2), lambda: AttenuatedNetwork(filter_, 2)):
        with pytest.raises(ParameterTypeError, match="merge is a union"):
            create()


@for_each("names", [(0, 1, 2), (None, "", ()), (False, 1.0, -1)], ids=str)
def test_a_node_may_have_any_hashable_name(names: tuple[Any, ...]) -> None:
    for row in itertools.permutations(names):
        network = AttenuatedNetwork(BloomFilter(100, 1e-6), 2)
        for name in row:
            network.add_node(name)
        network.connect(*itertools.pairwise(row))
        for name in row:
            network.add(name, [repr(name)])
            assert [network.find(start, repr(name)).path[-1:] for start in row] == [[name]] * 3


def test_an_advertisement_is_copied_with_the_parameters_of_the_node() -> None:
    """Two nodes that took one advertisement, or its sender, must not add to the filters of each other."""
    near, far = BloomFilter(100, strict=True), BloomFilter(100, strict=True)
    near.update(["ada"])
    far.update(["grace"])
    sent, nodes = AttenuatedFilter([near, far]), [Router(name, BloomFilter(100), 2) for name in "ab"]
    for node in nodes:
        node.connect("c")
        node.accept("c", sent)
    hashes = [hash_key(number) for number in range(300)]
    for node in nodes:
        for level in (0, 1):
            with pytest.warns(CapacityWarning):
                assert len(node.accept_hashes("c", level, hashes)) > len(hashes) / 2
        assert [node.rank_links(hash_key(key), hops=1) for key in ("ada", 7)] == [["c"], ["c"]]
        assert node.rank_links(hash_key("grace"), hops=2) == ["c"]
    assert (near.num_added, far.num_added) == (1, 1)


def test_keyed_filters_route_too() -> None:
    secret = b"sixteen secrets!"
    network = AttenuatedNetwork(BloomFilter(100, 1e-6, secret=secret), 2, secret=secret)
    network.add_node(1)
    network.add_node(2)
    network.connect((1, 2))
    network.add(2, ["ada"])
    assert network.find(1, "ada").path == [1, 2]
