"""Shared by the suites: what is under test, and bounds computed from the number of trials.

Nothing here names a variant: a new registry row is picked up by ``every_variant`` and tested by its
capabilities.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Sized
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import fullbloom
from fullbloom import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy as np
    import numpy.typing as npt

# FULLBLOOM_LONG=1 multiplies every count of trials; larger numbers multiply by more.
LONG = int(os.environ.get("FULLBLOOM_LONG", "0") or "0")
SCALE = 10 * LONG if LONG else 1

# The bar of the project: never above the target beyond this many standard deviations.
SIGMAS = 3.0

SECRET = b"sixteen secrets!"

#: Keys that no test adds: the rest of a closed world.
ABSENT = [f"absent {i}" for i in range(400)]


class Variant(NamedTuple):
    """One row of the registry in one layout or kind; each is None where there is nothing to choose."""

    name: str
    cls: Any
    layout: str | None
    capabilities: tuple[str, ...]
    row: dict[str, Any]
    kind: str | None = None

    @property
    def id(self) -> str:
        """Name of the golden file, and of the variant in test reports."""
        choice = self.layout or self.kind
        return self.name if choice is None else f"{self.name}-{choice}"

    @property
    def choice(self) -> dict[str, str]:
        """The parameter that selects the layout or kind."""
        choice = {"layout": self.layout, "kind": self.kind}
        return {name: value for name, value in choice.items() if value is not None}

    def make(self, capacity: int = 1000, fpr: float = 0.01, **options: Any) -> Any:
        """Build an empty filter of this variant."""
        options = {**options, **self.choice}
        if self.can("worlds"):
            return self.cls.build((), (), **options)
        if self.can("build"):
            return self.build_from((), capacity, fpr, **options)
        rated = any(name == "fpr" for name, _, _ in self.row["parameters"])
        return self.cls(capacity, fpr, **options) if rated else self.cls(capacity, **options)

    def can(self, capability: str) -> bool:
        """Return whether the registry promises ``capability``, or what READINGS derives from it."""
        reading = READINGS.get(capability)
        return capability in self.capabilities if reading is None else reading(self)

    def build_from(self, keys: Iterable[Any], capacity: int = 1000, fpr: float = 0.01, **options: Any) -> Any:
        """Build a filter of this variant that holds ``keys``."""
        if self.can("worlds"):
            return self.cls.build(keys, ABSENT, **{**self.choice, **options})
        if self.can("build"):
            # Those that can be merged are so with others of their capacity.
            if self.can("merge") and "bits" not in options:
                keys = keys if isinstance(keys, Sized) else list(keys)
                options = {"capacity": max(capacity, len(keys)), **options}
            return self.build(keys, fpr=fpr, **options)
        instance = self.make(capacity, fpr, **options)
        self.update(instance, keys)
        return instance

    def build(self, keys: Iterable[Any], *, hashed: bool = False, **options: Any) -> Any:
        """Build of keys or hashes, each with its companion where the class takes pairs."""
        make = self.cls.build_hashed if hashed else self.cls.build
        if not self.can("valued"):
            return make(keys, **options)
        keys = list(keys)
        return make(keys, [self.companion(key) for key in keys], **options)

    def companion(self, key: Any) -> int:
        """The label or value that the tests give ``key`` where a class takes pairs: 1, 2 or 3."""
        return 1 + fullbloom.hash_key(key) % 3

    def add(self, instance: Any, key: Any) -> Any:
        """Add a key, with its companion where the class wants one."""
        return instance.add(key, self.companion(key)) if self.can("pairs") else instance.add(key)

    def update(self, instance: Any, keys: Iterable[Any]) -> None:
        """Add many keys, one by one where the class takes pairs."""
        if not self.can("pairs"):
            instance.update(keys)
            return
        for key in keys:
            self.add(instance, key)


#: What tests ask for that is not a word of the registry but follows from one.
READINGS: dict[str, Callable[[Variant], bool]] = {
    # add takes more than the key
    "pairs": lambda v: registry.is_open(v.row, "key", "value"),
    # add takes the key alone
    "keys": lambda v: registry.is_open(v.row, "key"),
    # built from all keys at once
    "build": lambda v: v.can("static") and "key" in v.row["entry"],
    # built from all keys at once, each with a value
    "valued": lambda v: registry.is_built(v.row, "key", "value"),
    # built from all keys of a closed world, and queried for no others
    "worlds": lambda v: "excluded" in v.row["entry"],
    # add takes the whole numbers of a universe only: in the matrix of those tests that ask for it
    "numbers": lambda v: "number" in v.row["entry"],
    # likewise, exact up to so many of these, in bits that grow with the square of their number
    "zones": lambda v: "number" in v.row["entry"] and any(p[0] == "universe" for p in v.row["parameters"]),
    # a key that was added is found, unless others were wrongly removed
    "keeps": lambda v: v.row["false_negatives"] != "by design",
    # a chain of stages
    "stages": lambda v: hasattr(v.cls, "stages"),
    # takes any number of keys
    "endless": lambda v: hasattr(v.cls, "stages") and not hasattr(v.cls, "max_stages"),
}


def variants_with(*needs: str) -> list[Variant]:
    """All variants in all layouts and kinds that have the capabilities ``needs``.

    Those that take numbers only are among them where nothing, or that, is needed; those of a closed world
    where that is.
    """
    found = []
    for row in fullbloom.variants():
        cls, capabilities = getattr(fullbloom, row["class"]), tuple(row["capabilities"])
        choices = [(layout, None) for layout in row["layouts"] or [None]]
        # Stages of the kind that has layouts are there by layout.
        choices += [(None, kind) for kind in (cls.kinds()[1:] if hasattr(cls, "kinds") else [])]
        instance = [Variant(row["name"], cls, layout, capabilities, row, kind) for layout, kind in choices]
        usual = not needs or "numbers" in needs or "number" not in row["entry"]
        usual &= "worlds" in needs or "excluded" not in row["entry"]
        found += [variant for variant in instance if usual and all(variant.can(need) for need in needs)]
    return found


def every_variant(*needs: str) -> list[Any]:
    """All variants in all layouts and kinds that have the capabilities ``needs``, as pytest parameters."""
    import pytest

    return [pytest.param(variant, id=variant.id) for variant in variants_with(*needs)]


def most_counted(instance: Any) -> int:
    """The largest count that ``made`` can tell; counters of w bits and layers end somewhere."""
    layers = getattr(instance, "layers", None)
    if isinstance(layers, int):
        return layers
    bits = getattr(instance, "counter_bits", None)
    return (1 << bits) - 1 if isinstance(bits, int) else 2**64 - 1


def window_of(instance: Any) -> int:
    """How many of the last additions a filter that forgets still finds: its ``window``, at least one."""
    window = getattr(instance, "window", None)
    return window if isinstance(window, int) and window > 0 else 1


def layouts() -> list[str]:
    """Layouts of the plain filter, from its registry row."""
    return next(list(row["layouts"]) for row in fullbloom.variants() if row["class"] == "BloomFilter")


# Which schemes a layout can use; the first is its default.
SCHEMES: dict[str, tuple[str, ...]] = {
    "classic": ("mcg", "double", "enhanced-double", "seeded", "sliced", "triple", "quadratic", "odd-step"),
    "partitioned": ("mcg", "double", "enhanced-double", "seeded", "sliced"),
    "blocked": ("columns",),
    "split": ("parquet",),
    "two-block": ("two-lines",),
}

# The base hashes of key rules; the first is the default.
HASHES = ("xxh3", "xxh64", "murmur3-32", "murmur3-128", "fnv1a", "sha1", "md5", "sha256")


def show(value: object) -> str:
    """The ``repr`` of a value for the name of a test: without addresses, which differ by process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def bits_of(bloom: Any) -> bytes:
    """The bytes of the bit array, or of the whole file where a class shows no array."""
    try:
        return bytes(memoryview(bloom))
    except TypeError:
        return bytes(bloom.to_bytes())


def binomial_sd(rate: float, trials: int) -> float:
    """Standard deviation of a measured rate over ``trials`` independent probes."""
    return math.sqrt(rate * (1.0 - rate) / trials)


def pool(rates: Iterable[float], target: float, trials: int) -> tuple[float, float]:
    """Mean of the rates of several filters, and the standard deviation of that mean.

    Two sources add: a filter's own rate differs from the next one's (measured between the filters), and a
    rate measured with ``trials`` probes scatters around it (binomial at ``target``). The sample variance
    holds both; the binomial part is a floor when few filters happen to agree.
    """
    values = list(rates)
    mean = math.fsum(values) / len(values)
    sample = math.fsum((v - mean) ** 2 for v in values) / max(1, len(values) - 1)
    variance = max(sample, target * (1.0 - target) / trials)
    return mean, math.sqrt(variance / len(values))


def rates_at(
    make: Callable[[int], Any], capacity: int, filters: int, probes: int, kind: str = "random"
) -> tuple[list[float], float]:
    """Return the measured rates of ``filters`` filters of ``capacity`` keys, and the mean rate they state.

    Each filter has its own seed and keys.
    """
    rates, stated = [], []
    for seed in range(filters):
        instance, keys = make(seed), Keys(kind, seed)
        instance.update(keys.take(capacity))
        rates.append(float(instance.contains_many(keys.take(probes)).mean()))
        stated.append(instance.fpr())
    return rates, math.fsum(stated) / filters


def sigmas_of(cases: int) -> float:
    """Deviations that none of ``cases`` exceeds, as probably as one case keeps within SIGMAS: 4.0 of 43."""
    return -NormalDist().inv_cdf(math.erfc(SIGMAS / math.sqrt(2)) / 2 / cases)


def scatter_of_mean(values: Iterable[float], cases: int = 1) -> tuple[float, float]:
    """Mean of independent ``values``, and how far chance may put it in any of ``cases`` such means.

    SIGMAS deviations for one, measured on the values.
    """
    measured = list(values)
    mean, sd = pool(measured, 0.0, 1)
    return mean, student(sigmas_of(cases), len(measured) - 1) * sd


def chance(expected: float, largest: float = 1.0, sigmas: float = SIGMAS) -> float:
    """How far a sum of independent parts, none above ``largest``, may be from its mean ``expected``.

    Bernstein's bound at the probability of ``sigmas`` deviations: it holds for few and rare events too.
    """
    logs = math.log(2.0 / math.erfc(sigmas / math.sqrt(2))) * largest
    return logs / 3 + math.sqrt(logs * logs / 9 + 2 * logs * expected)


def half_digit(figure: str) -> float:
    """The rounding error of a published figure: half a unit of its last digit."""
    mantissa, _, exponent = figure.partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])) * (1 + 1e-9)


def student(normal_quantile: float, freedom: int) -> float:
    """Quantile of Student's t as probable as ``normal_quantile``: for a deviation measured on few samples.

    By the expansion of Cornish and Fisher, within 6 % from 5 degrees of freedom on at 3 deviations.
    """
    z, v = normal_quantile, freedom
    return z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v * v)


def chi_square_quantile(freedom: int, normal_quantile: float) -> float:
    """Quantile of chi-square by Wilson and Hilferty's cube, within 1 % from 10 degrees of freedom on."""
    spread = 2.0 / (9.0 * freedom)
    return freedom * (1.0 - spread + normal_quantile * math.sqrt(spread)) ** 3


def key_stream(kind: str, seed: int) -> Iterator[npt.NDArray[np.int64]]:
    """Endless chunks of distinct integers: ``sequential``, ``strided`` or ``random``; send() the length.

    Random keys are a counter put through an invertible mixer, so they are distinct by construction.
    """
    import numpy as np

    start = seed << 40
    length = yield np.empty(0, np.int64)
    while True:
        counter = np.arange(start, start + length, dtype=np.int64)
        start += length
        if kind == "sequential":
            keys = counter
        elif kind == "strided":
            keys = counter * np.int64(4096)
        else:
            keys = _mix(counter.view(np.uint64)).view(np.int64)
        length = yield keys


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64, a bijection of 64-bit words."""
    import numpy as np

    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class Keys:
    """Distinct integers by the batch: ``take(n)`` never repeats one."""

    def __init__(self, kind: str = "random", seed: int = 0) -> None:
        self._stream: Any = key_stream(kind, seed)
        next(self._stream)

    def take(self, count: int) -> npt.NDArray[np.int64]:
        """The next ``count`` keys."""
        keys: npt.NDArray[np.int64] = self._stream.send(count)
        return keys


def eventually(check: Callable[[], Any], seconds: float = 60) -> Any:
    """Return what ``check`` returns once it is true; fail when it is not within the time."""
    deadline = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < deadline, "not within the time"
        time.sleep(0.05)
    return found


def write_parquet(path: Path) -> None:
    """Write a Parquet file whose two columns have Bloom filters."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: pa.array(range(100)) for name in ("id", "user_id")})
    filters = {name: {"ndv": 100, "fpp": 0.001} for name in table.column_names}
    pq.write_table(table, path, bloom_filter_options=filters)
