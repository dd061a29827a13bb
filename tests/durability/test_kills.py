"""After a kill at any moment a file is whole and holds what was acknowledged, and what is left over goes.

`make test-durability` kills 500 savers, 500 runs with a state and 100 writers in place.
"""

from __future__ import annotations

import itertools
import os
import random
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from durability.kills import kill, names, rounds, start
from support import Variant, variants_with

import fullbloom

SAVER = """
import sys
import fullbloom
path, start, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
filters = [fullbloom.loads(open(name, "rb").read()) for name in names]
print(start, flush=True)
while True:
    for f in filters:
        f.save(path)
        start += 1
        print(start, flush=True)
"""


def saved_in_turn(variant: Variant, folder: Path) -> list[bytes]:
    """Files of three filters of different lengths, and their bytes."""
    instance = []
    for seed, capacity in ((1, 400), (2, 20_000), (3, 3_000)):
        bloom = variant.make(capacity, seed=seed)
        variant.update(bloom, range(capacity // 2))
        bloom.save(folder / f"{seed}")
        instance.append(bloom.to_bytes())
    return instance


# One variant each whose file is one section, several, or grows; all are saved by the same code.
SAVED = [
    next(iter(variants_with("map", "keys"))),
    variants_with("grow")[0],
    variants_with("remove", "grow")[0],
]


@pytest.mark.parametrize("variant", SAVED, ids=lambda variant: variant.id)
def test_a_killed_save_leaves_the_old_file_or_the_new_one(variant: Variant, tmp_path: Path) -> None:
    (sources := tmp_path / "sources").mkdir()
    (folder := tmp_path / "folder").mkdir()
    path = folder / "filter.bloom"
    files = saved_in_turn(variant, sources)
    path.write_bytes(files[0])
    rng = random.Random(variant.id)
    saved = 0
    for _ in range(rounds(4, 1 / len(SAVED))):
        before = path.read_bytes()
        process = start(SAVER, path, 0, *sorted(sources.iterdir()))
        assert process.stdout is not None
        assert process.stdout.readline() == b"0\n"
        acknowledged = len(kill(process, rng, 0.01))
        found = path.read_bytes()
        # The last acknowledged save, or the one after it; without any, what was there before.
        allowed = [files[(acknowledged - 1) % 3] if acknowledged else before, files[acknowledged % 3]]
        assert found in allowed
        assert fullbloom.open(path, verify="full").to_bytes() == found
        saved += acknowledged
    fullbloom.loads(files[0]).save(path)
    assert saved, "no save was acknowledged before a kill: they came too early to test anything"


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on files there")
def test_a_save_killed_after_each_length_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "filter.bloom"
    fullbloom.BloomFilter(100).save(path)
    before = path.read_bytes()
    bloom = fullbloom.BloomFilter(4000, seed=5)
    length = len(bloom.to_bytes())
    steps = 6 if rounds(1) == 1 else 60
    for limit in {0, 1, 64, length - 1, *range(0, length, length // steps)}:
        child = os.fork()
        if child == 0:
            try:
                # The signal of a file past its limit kills, at this very length.
                signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
                bloom.save(path)
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == signal.SIGXFSZ
        assert path.read_bytes() == before
    bloom.save(path)
    assert fullbloom.open(path, verify="full") == bloom


STATED = """
import os, sys
from fullbloom.cli import main
os.dup2(os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT), 1)
sys.stderr.write("x\\n")
sys.stderr.flush()
sys.exit(main(["dedup", "-q", "--state", sys.argv[1], *sys.argv[3:]]))
"""


@pytest.mark.parametrize("options", [[], ["--memory", "40M"]], ids=["", "in place"])
def test_a_killed_run_keeps_a_state_of_exactly_the_printed_lines(options: list[str], tmp_path: Path) -> None:
    (folder := tmp_path / "folder").mkdir()
    state, output, data = folder / "s", tmp_path / "out", tmp_path / "in"
    rng = random.Random(8)
    lines = [b"%d\n" % i for i in range(20_000)]
    kept: set[bytes] = set()  # what a state that was seen holds
    number = 0
    saves = 0
    for _ in range(rounds(5, 0.5)):
        number = (number + rng.randrange(500, 3000)) % len(lines)
        data.write_bytes(b"".join(lines[:number]))
        command = [sys.executable, "-c", STATED, str(state), str(output), *options, str(data)]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            process.stderr.readline()
            try:
                process.wait(timeout=rng.uniform(0.01, 0.25))
            except subprocess.TimeoutExpired:
                process.kill()
            process.wait(timeout=60)
            errors = process.stderr.read()
            assert process.returncode in {-signal.SIGKILL, 0}, errors
            saves += process.returncode == 0
        printed = set(output.read_bytes().splitlines(keepends=True)) if output.exists() else set()
        if state.exists():
            found = fullbloom.open(state, verify="full")
            result = {line for line in lines if line[:-1] in found}
            # At this length and the default rate, one false positive in a thousand lines is to be expected.
            assert len(result - printed) <= 40, "the state holds lines that nobody was given"
            assert kept <= result, "the state forgot lines that it held"
            kept = result & printed
    # A run that is let be prints what the state does not hold, and leaves the state and nothing else.
    data.write_bytes(b"".join(lines))
    command = [sys.executable, "-c", STATED, str(state), str(output), *options, str(data)]
    subprocess.run(command, check=True, stderr=subprocess.PIPE, timeout=60)
    printed = set(output.read_bytes().splitlines(keepends=True))
    assert len(set(lines) - printed) <= 40
    assert fullbloom.open(state, verify="full").contains_many([line[:-1] for line in lines]) == [True] * len(
        lines
    )


WRITER = """
import random, sys
import fullbloom
path, start, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(seed)
f = fullbloom.open(path, mode="r+")
print(start, flush=True)
while True:
    for _ in range(rng.randrange(1, 4)):
        count = rng.randrange(1, 200)
        if rng.random() < 0.5:
            f.update(range(start, start + count))
        else:
            for key in range(start, start + count):
                f.add(key)
        start += count
    if rng.random() < 0.2:
        f.close()
        f = fullbloom.open(path, mode="r+")
    else:
        f.flush()
    print(start, flush=True)
"""


@pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")
def test_a_killed_writer_in_place_loses_nothing_that_flush_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "live.bloom"
    fullbloom.BloomFilter(200_000).save(path)
    rng = random.Random(3)
    result = 0
    for number in itertools.count():
        if number == rounds(4, 0.2):
            break
        process = start(WRITER, path, result, number)
        assert process.stdout is not None
        assert process.stdout.readline() == b"%d\n" % result
        printed = kill(process, rng, 0.02)
        result = int(printed[-1]) if printed else result
        assert all(fullbloom.open(path).contains_many(range(result)))
        # Opened for writing and closed, it has its checksums again.
        with fullbloom.open(path, mode="r+"):
            pass
        assert all(fullbloom.open(path, verify="full").contains_many(range(result)))
        assert names(tmp_path) == {path.name}
    assert result > 0


def test_leftovers_of_killed_saves_are_deleted_by_later_saves(tmp_path: Path) -> None:
    (sources := tmp_path / "sources").mkdir()
    (folder := tmp_path / "folder").mkdir()
    path = folder / "filter.bloom"
    bloom = fullbloom.BloomFilter(2_000_000)
    bloom.save(sources / "1")
    rng = random.Random(4)
    left = 0
    for _ in range(rounds(4, 0.1)):
        process = start(SAVER, path, 0, sources / "1")
        assert process.stdout is not None
        process.stdout.readline()
        kill(process, rng, 0.02)
        littered = names(folder) - {path.name}
        left = max(left, len(littered))
        assert len(littered) <= 2, "each save collects what those before it left"
        modes = {stat.S_IMODE((folder / name).stat().st_mode) for name in (path.name, *littered)}
        assert modes - {0o600} <= {stat.S_IMODE((sources / "1").stat().st_mode)}
    bloom.save(path)
    assert names(folder) == {path.name}, f"up to {left} files lay beside it"
    assert fullbloom.open(path, verify="full") == bloom
