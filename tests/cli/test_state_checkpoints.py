from __future__ import annotations

import os
import stat
import subprocess
import time

import pytest

import fullbloom as package

LINES = b"".join(b"%d\n" % i for i in range(1000))


def _until(true, seconds=20):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    assert true()


@pytest.mark.parametrize("memory", [[], ["--memory", "64M"]], ids=["free", "within-memory"])
def test_a_killed_dedup_prints_only_its_last_lines_again(fullbloom, program, tmp_path, memory):
    state = ["--state", tmp_path / "s", *memory]
    fullbloom("dedup", "-q", *state, stdin=b'{"id": 0}\n', check=0)
    before = (tmp_path / "s").read_bytes()
    words = [*program, "dedup", "-q", *map(str, state), "--save-every", "0.1"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    first, second = (b"".join(b'{"id": %d}\n' % i for i in range(a, a + 100)) for a in (100, 300))
    for part in (first, second):
        process.stdin.write(part)
        process.stdin.flush()
        for _ in range(100):
            process.stdout.readline()
        time.sleep(0.15)
    _until(lambda: (tmp_path / "s").read_bytes() != before)
    process.kill()
    process.communicate(timeout=20)
    done = fullbloom("dedup", "-q", *state, stdin=first + b'{"id": 1}\n', check=0)
    assert done.stdout == b'{"id": 1}\n'
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_lines_held_back_from_their_file_are_in_no_state(program, tmp_path):
    words = [*program, "dedup", "-o", tmp_path / "o", "--state", tmp_path / "s", "--save-every", "0.01"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    for i in range(5):
        process.stdin.write(b"%d\n" % i)
        process.stdin.flush()
        time.sleep(0.05)
    process.kill()
    process.communicate(timeout=20)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("memory", [[], ["--memory", "64M"]], ids=["free", "within-memory"])
@pytest.mark.parametrize("command", ["dedup", "seen"])
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_state_keeps_its_mode_and_owner(fullbloom, tmp_path, command, mode, memory):
    if command == "seen" and memory:
        pytest.skip("seen takes no --memory")
    options = [command, "--state", tmp_path / "s", *memory]
    fullbloom(*options, stdin=b"a\n", check=0)
    (tmp_path / "s").chmod(mode)
    owner = (65534, 65534) if os.geteuid() == 0 and memory else (os.geteuid(), os.getegid())
    os.chown(tmp_path / "s", *owner)
    fullbloom(*options, stdin=b"b\n", check=0)
    after = (tmp_path / "s").stat()
    assert (stat.S_IMODE(after.st_mode), after.st_uid, after.st_gid) == (mode, *owner)


@pytest.mark.parametrize("name", ["working", "tmp"])
def test_nothing_that_was_laid_beside_a_state_is_followed(fullbloom, program, tmp_path, name):
    """A link under every name that the process id tells: whoever may write the directory can lay it."""
    target = tmp_path / "victim"
    target.write_bytes(b"precious")
    fullbloom("dedup", "--memory", "64M", "--state", tmp_path / "s", stdin=b"a\n", check=0)
    script = f"""import os, sys
os.symlink({str(target)!r}, f".s.{{os.getpid()}}.{name}")
os.symlink({str(target)!r}, f".s.{{os.getpid()}}.0.{name}")
os.symlink({str(target)!r}, f".o.{{os.getpid()}}.{name}")
from fullbloom.cli import main
sys.exit(main(["dedup", "-q", "--memory", "64M", "--state", "s", "-o", "o"]))"""
    done = subprocess.run(
        [program[0], "-c", script], input=b"b\n", cwd=tmp_path, capture_output=True, timeout=60, check=False
    )
    assert target.read_bytes() == b"precious"
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "o").read_bytes() == b"b\n"
    assert not (tmp_path / "s").is_symlink()


def test_the_working_copy_of_a_killed_run_is_removed_by_the_next(fullbloom, program, tmp_path):
    options = ["dedup", "-q", "--memory", "64M", "--state", tmp_path / "s"]
    fullbloom(*options, stdin=b"a\n", check=0)
    process = subprocess.Popen([*program, *map(str, options)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(b"b\n")
    process.stdin.flush()
    process.stdout.readline()
    assert len(list(tmp_path.glob(".s.*.working"))) == 1
    process.kill()
    process.communicate(timeout=20)
    fullbloom(*options, stdin=b"c\n", check=0)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize("command", ["dedup", "seen"])
def test_a_state_name_too_long_to_save_is_refused_before_any_work(fullbloom, refused, tmp_path, command):
    for length in (201, 240, 249, 255):
        done = fullbloom(command, "--state", "n" * length, stdin=b"a\n", cwd=tmp_path)
        refused(done)
        assert done.stdout == b""
    fullbloom(command, "--state", "n" * 200, stdin=b"a\n", cwd=tmp_path, check=0)
    assert "b" not in package.open(tmp_path / ("n" * 200))
