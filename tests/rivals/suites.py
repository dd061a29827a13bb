"""Whose suites are run: where a copy of the sources has the tests, and which classes an adapter replaces."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Suite:
    """`package` as pip knows it; `marker` is a path that only its sources have."""

    package: str
    marker: str
    tests: tuple[str, ...]
    """Files of tests."""
    names: dict[str, str]
    """Module that a test imports -> adapters whose names it then has, joined by +."""
    beside: tuple[str, ...] = field(default=())
    """Files that tests import from their own folder."""


def _probables() -> dict[str, str]:
    parts = ("", ".constants", ".exceptions", ".hashes")
    return {f"probables{part}": "probables+probables_tables" for part in parts}


SUITES = (
    Suite("rbloom", "rbloom.pyi", ("tests/api_test.py",), {"rbloom": "rbloom"}),
    Suite(
        "abloom", "abloom/_abloom.pyi", ("tests/test_[!b]*.py",),  # but for the benchmark
        {"abloom": "abloom"}, ("tests/conftest.py",),
    ),
    Suite(
        "fastbloom-rs", "py_tests/test_bloom.py", ("py_tests/test_*.py",), {"fastbloom_rs": "fastbloom_rs"}
    ),
    Suite(
        "pybloomfiltermmap3", "pyproject.toml", ("tests/simpletest.py",),
        {"pybloomfilter": "pybloomfilter"}, ("tests/__init__.py",),
    ),
    Suite(
        "pybloom-live", "pybloom_live/pybloom.py", ("pybloom_live/test_pybloom.py",),
        {f"pybloom_live{part}": "pybloom_live" for part in ("", ".pybloom", ".utils")},
    ),
    Suite(
        "pybloom", "pybloom/pybloom.py", ("pybloom/tests.py",),
        {f"pybloom{part}": "pybloom_live" for part in ("", ".pybloom", ".utils")},
    ),
    Suite(
        "pyprobables", "probables/blooms", ("tests/*_test.py",),
        _probables(), ("tests/utilities.py", "tests/__init__.py"),
    ),
    Suite(
        "bloom-filter2", "tests/test_bloom_filter.py", ("tests/test_bloom_filter.py",),
        {"bloom_filter2": "bloom_filter2"},
    ),
    Suite("flor", "flor/filter.py", ("flor_test/test_*.py",), {"flor": "flor", "flor.filter": "flor"}),
    Suite("pyfusefilter", "pyfusefilter", ("tests/test_*.py",), {"pyfusefilter": "pyfusefilter"}),
    Suite("pyxorfilter", "pyxorfilter", ("tests/test_*.py",), {"pyxorfilter": "pyfusefilter"}),
    Suite(
        "scalable-cuckoo-filter", "cuckoo/filter.py", ("tests/test_*.py",),
        {"cuckoo": "cuckoo", "cuckoo.filter": "cuckoo"},
    ),
    Suite("cjrh-scalable-cuckoo-filter", "tests/test_scf.py", ("tests/test_scf.py",), {"scf": "scf"}),
    Suite(
        "cuckoopy", "cuckoopy/cuckoofilter.py", ("tests/test_*.py",),
        {f"cuckoopy{part}": "cuckoopy" for part in ("", ".cuckoofilter", ".exceptions", ".hashutils")},
    ),
    Suite(
        "cuckoofilter", "cuckoofilter/cuckoofilter.py", ("cuckoofilter/tests/test_*.py",),
        {"cuckoofilter": "cuckoofilter"},
    ),
)  # fmt: skip
