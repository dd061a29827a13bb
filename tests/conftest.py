"""Fixtures of every suite; ``support`` and ``conformance.oracle`` are importable from any test."""

from __future__ import annotations

import functools
import gc
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
# A shell's background job ignores Ctrl-C, and so does what it starts; tests of interrupts send the signal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # under nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

pytest_plugins = ["timed"]
GOLDEN = Path(__file__).parent / "golden"
#: Tests that take seconds each and rarely break: statistics of large filters, kills, real servers that fail
#: or are overloaded, type checkers, other packages at work. Folders and files below this one.
LONG = (
    "cli/test_completion.py",
    "cli/test_portability.py",
    "concurrency/test_forks.py",
    "concurrency/test_gil.py",
    "conformance/test_declarations.py",
    "docs/test_all_figures_hold.py",
    "docs/test_figures.py",
    "docs/test_measured_tables.py",
    "durability/test_full_disks.py",
    "durability/test_kills.py",
    "durability/test_service_kills.py",
    "engines/test_dask.py",
    "engines/test_redis_cluster.py",
    "engines/test_redis_concurrency.py",
    "engines/test_redis_disconnects.py",
    "engines/test_redis_hostile_replies.py",
    "engines/test_redis_lost_writes.py",
    "engines/test_redis_module_failures.py",
    "engines/test_redis_reshard.py",
    "engines/test_redis_reshard_clients.py",
    "engines/test_redis_window_losses.py",
    "engines/test_spark.py",
    "engines/test_spark_cluster.py",
    "engines/test_spark_connect.py",
    "engines/test_spark_tables.py",
    "engines/test_sqlalchemy.py",
    "engines/test_sqlalchemy_statements.py",
    "hostile/test_stage_rates.py",
    "recipes",
    "service/test_memory.py",
    "service/test_openapi.py",
    "service/test_postgresql.py",
    "service/test_redis_backend_failures.py",
    "service/test_responsiveness.py",
    "service/test_strangers.py",
    "statistical/filters",
    "typing/test_types.py",
)
#: Other files that take long. These and the long ones start first: no worker has one to itself at the end.
SLOW = (
    "cli/test_errors.py",
    "cli/test_static_kinds.py",
    "compat/test_foreign_formats.py",
    "concurrency/test_signals.py",
    "conformance/test_multiset.py",
    "docs/test_examples.py",
    "docs/test_site_accessibility.py",
    "hostile/test_forged_tables.py",
    "property/test_vector_instructions.py",
    "service/test_hostile_requests.py",
    "service/test_tokens.py",
    "web",
)


def is_long(path: Path) -> bool:
    """Return whether a file or a folder is one of the long ones, or in one."""
    return is_among(path, LONG)


@functools.cache  # a file has thirty tests
def is_among(path: Path, names: tuple[str, ...]) -> bool:
    """Return whether a file or a folder is one of those named, or in one."""
    found = path.relative_to(Path(__file__).parent).as_posix()
    return any(found == name or found.startswith(f"{name}/") for name in names)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage, since all of it stays: 4 seconds in each worker, and not 7."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out long tests without importing them, which takes seconds in each worker."""
    wanted = config.option.markexpr != "not long"
    return (
        None
        if wanted or Path(__file__).parent not in collection_path.parents
        else is_long(collection_path) or None
    )


def pytest_unconfigure() -> None:
    """Let the interpreter find it again at its end: DuckDB's classes report leaks otherwise."""
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the long tests, and put slow files first."""
    for item in items:
        if is_long(item.path):
            item.add_marker(pytest.mark.long)
    slow = {path for path in {item.path for item in items} if is_among(path, LONG + SLOW)}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture
def golden() -> Path:
    """The directory of the golden files."""
    return GOLDEN


@pytest.fixture
def force_isa() -> Iterator[Any]:
    """A function that chooses the vector instructions for the process; the test's end restores them."""
    from fullbloom import _core

    before = _core.isa()
    yield _core.force_isa
    _core.force_isa(before)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Redis server that the tests of a file share; they use names of their own."""
    from engines.servers import Server

    running = Server(tmp_path_factory.mktemp("redis"))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The URL of a PostgreSQL database that the tests of a file share."""
    from benchmarks.engines.postgresql import find_program, run_postgresql

    if not find_program("initdb"):
        pytest.skip("PostgreSQL is not installed (on Debian: apt-get install postgresql)")
    with run_postgresql("max_prepared_transactions=4") as url:
        yield url


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Any]:
    """A function that starts a Redis server for one test, which ends it."""
    from engines.servers import Server

    started: list[Server] = []

    def start(**options: object) -> Server:
        started.append(Server(tmp_path / f"server{len(started)}", **options))
        return started[-1]

    yield start
    for running in started:
        running.kill()
