"""False drops of an index of signatures: as many as its law says, and none of true matches."""

from __future__ import annotations

import random
from statistics import stdev
from typing import Any

import pytest
from support import SCALE, SIGMAS

from fullbloom import SignatureIndex, theory


def check_mean(differences: list[float]) -> None:
    """The mean is 0 within the standard error that the trials themselves show."""
    error = stdev(differences) / len(differences) ** 0.5
    mean = sum(differences) / len(differences)
    assert abs(mean) <= (SIGMAS + 1) * error + 1e-12, f"{mean} is {mean / error:.1f} standard errors from 0"


class Drops:
    """False drops, beside those that the law expects of queries with these bits."""

    def __init__(self) -> None:
        """Count from 0."""
        self.found = self.expected = self.variance = 0.0

    def count(self, found: int, rows: int, rate: float) -> None:
        """Add a query of ``rows`` independent rows, each a false drop with the chance ``rate``."""
        self.found += found
        self.expected += rows * rate
        self.variance += rows * rate * (1 - rate)

    def check(self) -> None:
        """Refuse a sum beyond three standard deviations, and beyond three drops where that is less."""
        print(f"{self.found:.0f} false drops, {self.expected:.1f} expected")
        assert abs(self.found - self.expected) <= max(SIGMAS * self.variance**0.5, SIGMAS)
        assert self.expected > 100


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_false_drops_of_random_documents_follow_the_law(seed: int) -> None:
    rng = random.Random(seed)
    num_bits, each, asked = rng.randrange(30, 200), rng.randrange(1, 6), rng.randrange(1, 3)
    terms = rng.randrange(num_bits // (2 * each), 3 * num_bits // (2 * each))
    print(f"num_bits={num_bits} bits_per_term={each} terms={terms} query_terms={asked}")
    drops = Drops()
    for trial in range(60 * SCALE):
        index = SignatureIndex(num_bits, each, capacity=400, seed=trial)
        index.add_many([[("held", row, i) for i in range(terms)] for row in range(400)])
        query = [("asked", i) for i in range(asked)]
        rate = theory.signature_fpr(num_bits, each, terms, len(index.positions(query)))
        drops.count(index.count_candidates(query), 400, rate)
    drops.check()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_false_drops_of_columns_follow_the_law(seed: int) -> None:
    rng = random.Random(seed)
    num_bits, columns, each = rng.choice([32, 64, 80]), rng.randrange(6, 12), rng.randrange(2, 4)
    names, drops = [f"c{i}" for i in range(columns)], Drops()
    for trial in range(60 * SCALE):
        index = SignatureIndex(num_bits, each, columns=names, capacity=1000, seed=trial)
        index.add_table({name: [rng.getrandbits(60) for _ in range(1000)] for name in names})
        query = dict.fromkeys(names[: 1 + trial % 2], -1)
        rate = theory.signature_fpr(num_bits, each, columns, len(index.positions(query)))
        drops.count(index.count_candidates(query), 1000, rate)
    drops.check()


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_sized_indexes_keep_their_rate_at_every_rank(rank: int) -> None:
    rng = random.Random(rank)
    terms, fpr = rng.randrange(5, 15), 10 ** -rng.uniform(1, 2.5)
    shares, rows = [], 4096
    for trial in range(12 * SCALE):
        index = SignatureIndex.for_terms(terms, fpr, fill=0.3, rank=rank, capacity=rows, seed=trial)
        index.add_many([[("held", row, i) for i in range(terms)] for row in range(rows)])
        shares += [index.count_candidates([("absent", trial, i)]) / rows for i in range(20)]
    error = stdev(shares) / len(shares) ** 0.5
    mean = sum(shares) / len(shares)
    print(f"terms={terms} fpr={fpr:.4f} measured={mean:.5f}")
    assert mean <= fpr + SIGMAS * error


def test_the_fill_is_the_expected_one() -> None:
    differences = []
    for seed in range(30):
        index = SignatureIndex(100, 3, capacity=1, seed=seed)
        index.add_many([[(seed, row, i) for i in range(20)] for row in range(500)])
        differences.append(index.fill - theory.signature_fill(100, 3, 20))
    check_mean(differences)


# --- screening of substructures: labelled graphs, whose features are their labelled simple paths ---


def draw_graph(rng: random.Random, atoms: int) -> tuple[list[str], dict[int, dict[int, str]]]:
    """A connected graph with labels of atoms and bonds, as of a molecule."""
    labels = [rng.choice("CCCCNOS") for _ in range(atoms)]
    bonds: dict[int, dict[int, str]] = {i: {} for i in range(atoms)}
    for i in range(1, atoms):
        other = rng.randrange(max(0, i - 3), i)
        bonds[i][other] = bonds[other][i] = rng.choice("--==#")
    for _ in range(atoms // 4):
        a, b = rng.sample(range(atoms), 2)
        bonds[a][b] = bonds[b][a] = "-"
    return labels, bonds


def draw_part(rng: random.Random, graph: Any, atoms: int) -> Any:
    """A connected subgraph, some bonds of which may be gone, too: a substructure."""
    labels, bonds = graph
    chosen, edges = [rng.randrange(len(labels))], {}
    while len(chosen) < atoms:
        ends = [(a, b) for a in chosen for b in bonds[a] if b not in chosen]
        if not ends:
            break
        a, b = rng.choice(ends)
        chosen.append(b)
        edges[(a, b)] = bonds[a][b]
    for a in chosen:
        for b in bonds[a]:
            if b in chosen and rng.random() < 0.5:
                edges[(a, b)] = bonds[a][b]
    number = {atom: i for i, atom in enumerate(chosen)}
    found: dict[int, dict[int, str]] = {i: {} for i in range(len(chosen))}
    for (a, b), bond in edges.items():
        found[number[a]][number[b]] = found[number[b]][number[a]] = bond
    return [labels[atom] for atom in chosen], found


def path_features(graph: Any, longest: int = 7) -> list[str]:
    """All labelled simple paths of up to ``longest`` bonds, each read from its smaller end."""
    labels, bonds = graph
    found: set[str] = set()

    def walk(path: list[int], text: str, back: str) -> None:
        found.add(min(text, back))
        if len(path) <= longest:
            for atom, bond in bonds[path[-1]].items():
                if atom not in path:
                    walk([*path, atom], text + bond + labels[atom], labels[atom] + bond + back)

    for atom in range(len(labels)):
        walk([atom], labels[atom], labels[atom])
    return sorted(found)


def circular_features(graph: Any) -> list[str]:
    """The surroundings of each atom, within one bond: a substructure's atom may have fewer neighbours."""
    labels, bonds = graph
    return sorted(
        {labels[a] + "".join(sorted(bond + labels[b] for b, bond in bonds[a].items())) for a in bonds}
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_screen_by_paths_loses_no_superstructure(seed: int) -> None:
    rng = random.Random(seed)
    graphs = [draw_graph(rng, rng.randrange(5, 16)) for _ in range(300)]
    screens = [
        SignatureIndex(2048, 2, seed=seed),
        SignatureIndex(64, 4, seed=seed),
        SignatureIndex.for_terms(100, 0.01, fill=0.3, rank=2, seed=seed),
    ]
    features = [path_features(graph) for graph in graphs]
    for screen in screens:
        screen.add_many(features)
    passed = 0
    for row in rng.sample(range(300), 80):
        asked = path_features(draw_part(rng, graphs[row], rng.randrange(1, 7)))
        necessary = [i for i, held in enumerate(features) if set(asked) <= set(held)]
        assert row in necessary
        for screen in screens:
            found = screen.candidates(asked)
            assert set(necessary) <= set(found)
        passed += len(screens[0].candidates(asked))
    assert passed < 80 * 300  # it does screen


def test_circular_features_are_no_screen() -> None:
    rng = random.Random(7)
    lost = 0
    for seed in range(50):
        graph = draw_graph(rng, 12)
        screen = SignatureIndex(2048, 2, seed=seed)
        screen.add(circular_features(graph))
        lost += screen.candidates(circular_features(draw_part(rng, graph, 5))) == []
    assert lost > 10
