"""Costs of attenuated filters: updates beside the formula, and detours that false positives cause."""

from __future__ import annotations

import random
from collections import deque
from itertools import pairwise

from benchmarks.outcome import Outcome, Table
from fullbloom import BloomFilter, theory
from fullbloom.compose.networked import AttenuatedNetwork

KEYS = 20
QUERIES = 2000


def draw_links(source: random.Random, nodes: int, degree: int) -> list[tuple[int, int]]:
    """Links of a random graph in which each node has this degree: stubs, paired until nothing repeats."""
    while True:
        ends = [node for node in range(nodes) for _ in range(degree)]
        source.shuffle(ends)
        links = {(min(pair), max(pair)) for pair in zip(ends[::2], ends[1::2], strict=True)}
        if len(links) * 2 == len(ends) and all(one != other for one, other in links):
            return sorted(links)


def measure_distances(links: list[tuple[int, int]], start: int) -> dict[int, int]:
    neighbours: dict[int, set[int]] = {}
    for one, other in links:
        neighbours.setdefault(one, set()).add(other)
        neighbours.setdefault(other, set()).add(one)
    distances, pending = {start: 0}, deque([start])
    while pending:
        node = pending.popleft()
        for each in neighbours[node] - distances.keys():
            distances[each] = distances[node] + 1
            pending.append(each)
    return distances


def run(source: random.Random, nodes: int, degree: int, depth: int, fpr: float) -> tuple[list[str], float]:
    """Return a row of the table, and the messages of a new key over those of the formula."""
    links = draw_links(source, nodes, degree)
    # The deepest level holds the keys of (g - 1)^(D - 1) nodes.
    network = AttenuatedNetwork(BloomFilter(KEYS * (degree - 1) ** (depth - 1), fpr), depth)
    for node in range(nodes):
        network.add_node(node)
    network.connect(*links)
    costs = [network.add(node, [f"{node} {number}" for number in range(KEYS)]) for node in range(nodes)]
    messages = sum(cost.num_messages for cost in costs) / nodes
    sent = network.advertise().bits_sent
    found = wanted = longer = steps = backtracks = 0
    distances = {node: measure_distances(links, node) for node in range(nodes)}
    for _ in range(QUERIES):
        start, target = source.randrange(nodes), source.randrange(nodes)
        route = network.find(start, f"{target} {source.randrange(KEYS)}")
        near = distances[start].get(target, depth + 1) <= depth
        wanted += near
        if route.is_found:
            found += 1
            longer += route.num_hops - distances[start][target]
            steps += sum(1 for _ in pairwise(route.walk))
            backtracks += route.num_backtracks
        elif near:
            raise RuntimeError("a query missed a key within the depth")
    law = theory.attenuated_messages(degree, depth)
    row = [
        str(nodes),
        str(degree),
        str(depth),
        f"{fpr:.0%}",
        f"{messages:.1f}",
        str(law),
        f"{sent / 8 / len(links) / 2:,.0f} B",
        f"{steps / found:.2f}",
        f"{longer / found:.3f}",
        f"{backtracks / found:.3f}",
    ]
    return row, messages / law


def measure(seed: int = 28) -> Outcome:
    """Networks of four shapes, each at two rates."""
    source, rows, shares = random.Random(seed), [], []
    for nodes, degree, depth in ((200, 3, 3), (200, 3, 5), (400, 4, 3), (100, 6, 2)):
        for fpr in (0.1, 0.01):
            row, share = run(source, nodes, degree, depth, fpr)
            rows.append(row)
            shares.append(share)
    columns = ["nodes", "degree", "depth", "rate", "messages per new key", "formula for a tree"]
    columns += ["filters per end of a link", "links followed", "hops too many", "links back"]
    return Outcome(
        {"seed": seed, "keys": KEYS, "queries": QUERIES},
        {"least_messages": min(shares), "most_messages": max(shares)},
        [Table("routing", "networked.md", columns, rows)],
        # Circles save messages, and nothing adds any.
        {"least_messages": (0.95, 1.0), "most_messages": (0.95, 1.0)},
    )
