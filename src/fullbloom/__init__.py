"""The whole Bloom-filter family for Python, native underneath.

One question, *have I seen this key?*, answered in a process, in a pipe, or from a file:

>>> from fullbloom import BloomFilter
>>> seen = BloomFilter(1_000_000, fpr=0.01)
>>> seen.update(["ada", "grace", "edsger"])
>>> "grace" in seen, "alan" in seen
(True, False)

Classes and functions are native; ``fullbloom.theory`` holds the formulas, ``fullbloom.errors`` the
exceptions, ``fullbloom.plan`` helps to choose. Importing this package loads no other package.
"""

from fullbloom import _begin, _core  # noqa: F401 - the first answers Ctrl-C meanwhile
from fullbloom._core import (
    AgingBloomFilter,
    BinaryFuseFilter,
    BitSet,
    BloomFilter,
    BloomierMap,
    CompactApproximator,
    CountingBloomFilter,
    CuckooFilter,
    DeletableBloomFilter,
    DLeftCountingFilter,
    DynamicCuckooFilter,
    FilterBank,
    FilterCascade,
    ForeignCuckooFilter,
    ForeignFilter,
    ForeignScalableFilter,
    ForeignStaticFilter,
    GolombSet,
    InvertibleBloomFilter,
    LayeredBloomFilter,
    PrefixFilter,
    QuotientFilter,
    RetouchedBloomFilter,
    RibbonFilter,
    RollingBloomFilter,
    ScalableBloomFilter,
    SpatialBloomFilter,
    SpectralBloomFilter,
    StableBloomFilter,
    VariableIncrementFilter,
    XorFilter,
    ZoneFilter,
    hash_key,
    hash_many,
    loads,
    variants,
)
from fullbloom._core import open as open  # not in __all__: a star import must leave the built-in one alone
from fullbloom.errors import (
    CapacityWarning,
    FilterFull,
    FilterMemoryError,
    FormatError,
    FullbloomError,
    IncompatibleFilters,
    KeyDomainWarning,
    KeyTypeError,
    MissingOperation,
    ParameterError,
    ParameterTypeError,
    ReadOnlyFilter,
    RemovedKeyError,
    SecretError,
)

__version__ = "0.2.0"

_core.watch_forks()  # so that a forked child finds every filter sound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fullbloom import plan as plan
    from fullbloom import theory as theory
    from fullbloom import viz as viz
    from fullbloom.client import AsyncClient as AsyncClient
    from fullbloom.client import Client as Client
else:

    def __getattr__(name):  # noqa: ANN001, ANN202 - type checkers read the imports above
        """Former names, and the modules left for later: `import fullbloom` takes 3 ms, they take 30."""
        if name == "SpectralFilter":
            import warnings

            message = "SpectralFilter is called SpectralBloomFilter; the old name goes with version 1"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return SpectralBloomFilter
        from importlib import import_module

        if name in {"Client", "AsyncClient"}:
            return getattr(import_module("fullbloom.client"), name)
        if name not in {"plan", "theory", "viz"}:
            raise AttributeError(f"module 'fullbloom' has no attribute {name!r}")
        return import_module(f"fullbloom.{name}")


del TYPE_CHECKING


__all__ = [
    "AgingBloomFilter",
    "BinaryFuseFilter",
    "BitSet",
    "BloomFilter",
    "BloomierMap",
    "CapacityWarning",
    "CompactApproximator",
    "CountingBloomFilter",
    "CuckooFilter",
    "DLeftCountingFilter",
    "DeletableBloomFilter",
    "DynamicCuckooFilter",
    "FilterBank",
    "FilterCascade",
    "FilterFull",
    "FilterMemoryError",
    "ForeignCuckooFilter",
    "ForeignFilter",
    "ForeignScalableFilter",
    "ForeignStaticFilter",
    "FormatError",
    "FullbloomError",
    "GolombSet",
    "IncompatibleFilters",
    "InvertibleBloomFilter",
    "KeyDomainWarning",
    "KeyTypeError",
    "LayeredBloomFilter",
    "MissingOperation",
    "ParameterError",
    "ParameterTypeError",
    "PrefixFilter",
    "QuotientFilter",
    "ReadOnlyFilter",
    "RemovedKeyError",
    "RetouchedBloomFilter",
    "RibbonFilter",
    "RollingBloomFilter",
    "ScalableBloomFilter",
    "SecretError",
    "SpatialBloomFilter",
    "SpectralBloomFilter",
    "StableBloomFilter",
    "VariableIncrementFilter",
    "XorFilter",
    "ZoneFilter",
    "__version__",
    "hash_key",
    "hash_many",
    "loads",
    "variants",
]
