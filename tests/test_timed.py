"""A test of a duration that fails is measured again, in sight of the reader; a fault fails all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

#: Attempts append to a file, because each has fixtures and names of its own.
PROGRAM = """
import subprocess, pytest
from pathlib import Path

HERE = Path(__file__).parent

def measure(name, *seconds):
    with (HERE / name).open("a+") as file:
        attempt = file.tell()
        file.write("x")
    return seconds[attempt]

@pytest.fixture(scope="session")
def machine():
    measure("machine", 0)

@pytest.fixture(scope="module")
def server(machine):
    return []

@pytest.mark.timed
def test_quick_at_last(server, tmp_path):
    assert not server
    server.append("a name")
    (tmp_path / "file").mkdir()
    took = measure("last", 0.4, 0.3, 0.1)
    assert took < 0.2, f"it took {took} s"

def test_of_the_same_server(server):
    assert server == ["a name"]

@pytest.mark.timed
def test_slow_each_time():
    assert measure("each", 0.9, 0.8, 0.7, 0.1) < 0.2

@pytest.mark.timed
def test_without_an_end():
    if measure("end", 1, 0):
        raise subprocess.TimeoutExpired("program", 1)

@pytest.mark.timed
def test_with_another_error():
    measure("other", 0)
    raise ZeroDivisionError

@pytest.fixture
def broken():
    measure("broken", 0)
    raise AssertionError("the fixture")

@pytest.mark.timed
def test_with_a_broken_fixture(broken):
    pass

def test_without_the_mark():
    measure("unmarked", 0)
    assert 0.3 < 0.2
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "workers", [(), ("-p", "xdist", "-n", "2", "--dist", "loadfile")], ids=["alone", "workers"]
)
def test_a_timed_test_is_measured_up_to_three_times_and_each_attempt_is_shown(tmp_path, workers):
    if workers:
        pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    (tmp_path / "test_it.py").write_text(PROGRAM)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = timed: a duration\n")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "timed", "-p", "no:cacheprovider", *workers]
    done = subprocess.run(
        [*words, "test_it.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(Path(__file__).parent)},
    )
    assert "3 failed, 3 passed, 1 error, 5 rerun" in done.stdout, done.stdout + done.stderr
    shown = [line for line in done.stdout.splitlines() if line.startswith("RERUN ")]
    assert [line.partition("::")[2].split()[0] for line in shown] == [
        *["test_quick_at_last"] * 2,
        *["test_slow_each_time"] * 2,
        "test_without_an_end",
    ]
    assert shown[0].endswith(": AssertionError: it took 0.4 s")
    assert "FAILED test_it.py::test_slow_each_time" in done.stdout
    assert "assert 0.7 < 0.2" in done.stdout
    counts = {
        path.name: len(path.read_text()) for path in tmp_path.iterdir() if not path.suffix and path.is_file()
    }
    assert counts == {"machine": 1, "last": 3, "each": 3, "end": 2, "other": 1, "broken": 1, "unmarked": 1}
