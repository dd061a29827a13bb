from __future__ import annotations

import random
import subprocess
import sys

import pytest

PROGRAM = [sys.executable, "-m", "bloomery"]


def run(*arguments, stdin=b"", check=None, **options):
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)], input=stdin, capture_output=True, timeout=60, **options
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    if check is not None:
        assert done.returncode == check, done.stderr.decode()
    return done


def first_occurrences(data: bytes) -> bytes:
    seen, out = set(), []
    for line in data.splitlines(keepends=True):
        key = line.rstrip(b"\n")
        if key not in seen:
            seen.add(key)
            out.append(line)
    return b"".join(out)


def one_error_line(done) -> str:
    text = done.stderr.decode()
    assert done.returncode == 2
    assert text.startswith("bloomery: ")
    assert text.count("\n") == 1, text
    return text


@pytest.fixture
def bloomery():
    return run


@pytest.fixture
def exact():
    return first_occurrences


@pytest.fixture
def refused():
    return one_error_line


@pytest.fixture(scope="session")
def program():
    return PROGRAM


@pytest.fixture(scope="session")
def lines() -> bytes:
    """60,000 lines, a third of them repetitions, of unlike lengths, the last without newline."""
    draw = random.Random(7)
    return b"\n".join(
        b"%d/%s" % (draw.randrange(60_000), b"x" * (draw.randrange(9) ** 2)) for _ in range(60_000)
    )
