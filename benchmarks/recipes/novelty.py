"""Novelty of handwritten digits, as the fly's rule measures it, beside a Bloom filter."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.outcome import Outcome, Table
from fullbloom.recipes.novelty import HashUnits, NoveltyFilter, Projection

SEED, KNOWN, PROBES, RECOVERY, DIGIT = 11, 40, 150, 0.01, 3
COLUMNS = ["image", "novelty by the fly's rule", "reported new by a Bloom filter"]
MISSING = "" if find_spec("sklearn") else "scikit-learn is not installed"


def measure() -> Outcome:
    from sklearn.datasets import load_digits

    draw = np.random.default_rng(SEED)
    digits = load_digits()
    order = draw.permutation(len(digits.data))
    images, labels = digits.data[order], digits.target[order]
    same, other = images[labels == DIGIT], images[labels != DIGIT]
    known, fresh = same[:KNOWN], same[KNOWN : KNOWN + PROBES]

    fly = NoveltyFilter(Projection(64, seed=SEED), recovery=RECOVERY)
    bloom = NoveltyFilter(HashUnits(2000, 7, seed=SEED))
    for image in known:
        fly.observe(image.tolist())
        bloom.observe(image.tobytes())

    def average(probes: Any) -> tuple[float, float]:
        return (
            float(np.mean([fly.measure(image.tolist()) for image in probes])),
            float(np.mean([bloom.measure(image.tobytes()) > 0 for image in probes])),
        )

    def blur(size: float) -> Any:
        return np.clip(known + draw.normal(0, size, known.shape), 0, 16)

    noise = draw.permuted(other[:PROBES], axis=1)
    groups = {
        "seen last": known[-5:],
        f"seen {KNOWN - 5} to {KNOWN} images ago": known[:5],
        "seen, with noise of 1 (of 16)": blur(1),
        "seen, with noise of 3": blur(3),
        f"not seen, the same digit {DIGIT}": fresh,
        "not seen, other digits": other[:PROBES],
        "not seen, the same with the pixels shuffled": noise,
    }
    figures: dict[str, float] = {}
    rows = []
    for at, (name, probes) in enumerate(groups.items()):
        by_fly, by_bloom = average(probes)
        figures |= {f"fly_{at}": by_fly, f"bloom_{at}": by_bloom}
        rows.append([name, f"{by_fly:.2f}", f"{by_bloom:.0%}"])
    parameters = {"known": KNOWN, "recovery": RECOVERY, "digit": DIGIT, "seed": SEED}
    return Outcome(parameters, figures, [Table("novelty", "novelty.md", COLUMNS, rows)])
