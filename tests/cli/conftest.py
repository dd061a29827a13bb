from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest
from commands import TABLES, fork_for

PROGRAM = [sys.executable, "-m", "fullbloom"]


#: Words of commands that read tables of records.
OF_TABLES = {"parquet", "--select", "--format", "--column"}


@pytest.fixture(scope="session")
def fullbloom():
    """Run a command in a fork; with an environment, or a memory to be kept, in a process of its own."""

    def run(*arguments, stdin=b"", check=None, cwd=None, stdout=None, **options):
        words = [word if isinstance(word, bytes) else str(word) for word in arguments]
        # Python itself reads other variables when it starts.
        variables = options.get("env", os.environ)
        changed = {name for name, _ in variables.items() ^ os.environ.items()}
        if options.keys() == {"env"} and changed <= {"COLUMNS", "NO_COLOR"} & variables.keys():
            options = {}
        if options or "--memory" in words:
            done = subprocess.run(
                [*PROGRAM, *words], input=stdin, capture_output=True, timeout=60, cwd=cwd, **options
            )
        else:
            commands = fork_for(*(TABLES if OF_TABLES.intersection(words) else ()))
            variables = {name: variables[name] for name in changed}
            done = commands.run(words, stdin=stdin, cwd=cwd, variables=variables, stdout=stdout)
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        if check is not None:
            assert done.returncode == check, done.stderr.decode()
        return done

    return run


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
    assert text.startswith("fullbloom: ")
    assert text.count("\n") == 1, text
    return text


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
