"""``--state`` survives kills, signals, full disks and closed pipes, and is saved while the run continues."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest
from support import Variant, variants_with

import fullbloom as package
from fullbloom.cli import main
from fullbloom.cli.failures import Interrupted


@pytest.mark.parametrize("command", ["dedup", "seen"])
@pytest.mark.parametrize("options", [[], ["--expected", "1000"]])
def test_a_second_run_continues_the_state(fullbloom, tmp_path, command, options):
    state = tmp_path / "s"
    assert fullbloom(command, "--state", state, *options, stdin=b"a\nb\na\n", check=0).stdout == b"a\nb\n"
    assert fullbloom(command, "--state", state, *options, stdin=b"b\nc\n", check=0).stdout == b"c\n"
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_a_second_run_continues_within_its_memory(fullbloom, tmp_path):
    for text, new in ((b"a\nb\n", b"a\nb\n"), (b"b\nc\n", b"c\n"), (b"c\nd\n", b"d\n")):
        done = fullbloom("dedup", "--memory", "40M", "--state", tmp_path / "s", stdin=text, check=0)
        assert done.stdout == new
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


GROWING = [variant for variant in variants_with("grow") if variant.row["role"] == "growing"]


@pytest.mark.parametrize("variant", GROWING, ids=lambda variant: variant.id)
def test_dedup_continues_a_growing_state_of_any_number_of_stages(fullbloom, tmp_path, variant: Variant):
    seen = variant.make(1000, 1e-3)
    seen.add("a")
    seen.save(tmp_path / "s")
    assert fullbloom("dedup", "--state", tmp_path / "s", stdin=b"a\nb\n", check=0).stdout == b"b\n"


@pytest.mark.parametrize(
    "option", [["--seed", "5"], ["--expected", "7"], ["--fpr", "0.1"], ["--kind", "scalable"]]
)
def test_a_state_with_other_parameters_is_refused(fullbloom, refused, tmp_path, option):
    fullbloom("dedup", "--expected", "10", "--state", tmp_path / "s", check=0)
    before = (tmp_path / "s").read_bytes()
    assert option[0] in refused(fullbloom("dedup", "--state", tmp_path / "s", *option))
    assert (tmp_path / "s").read_bytes() == before


def test_a_damaged_state_is_refused_and_unchanged(fullbloom, refused, tmp_path):
    fullbloom("dedup", "--expected", "1000", "--state", tmp_path / "s", stdin=b"a\n", check=0)
    damaged = bytearray((tmp_path / "s").read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "s").write_bytes(damaged)
    refused(fullbloom("dedup", "--state", tmp_path / "s", stdin=b"b\n"))
    assert (tmp_path / "s").read_bytes() == damaged


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("command", ["dedup", "seen"])
def test_a_signal_saves_the_lines_that_were_printed(fullbloom, program, tmp_path, command, number):
    process = subprocess.Popen(
        [*program, command, "--state", str(tmp_path / "s")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    process.stdin.write(b"a\nb\n")
    process.stdin.flush()
    assert process.stdout.readline() + process.stdout.readline() == b"a\nb\n"
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert errors == b"fullbloom: interrupted\n"
    assert fullbloom(command, "--state", tmp_path / "s", stdin=b"a\nb\nc\n", check=0).stdout == b"c\n"


def test_a_hangup_does_not_stop_a_run_under_nohup(program):
    command = ["nohup", *program, "dedup", "-q"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b"a\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"a\n"
        process.send_signal(signal.SIGHUP)
        assert process.communicate(b"a\nb\n", timeout=60)[0] == b"b\n"
    assert process.returncode == 0


def test_a_closed_pipe_is_silent_and_saves_only_the_printed_lines(fullbloom, program, tmp_path):
    data = b"".join(b"%08d\n" % i for i in range(400_000))
    (tmp_path / "in").write_bytes(data)
    process = subprocess.Popen(
        [*program, "dedup", "--state", str(tmp_path / "s"), str(tmp_path / "in")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    got = os.read(process.stdout.fileno(), 1 << 16)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 2
    rest = fullbloom("dedup", "--state", tmp_path / "s", tmp_path / "in", check=0).stdout
    # A line cut by the closing pipe did not arrive, and comes again whole.
    whole = got[: got.rfind(b"\n") + 1]
    assert len(whole) + len(rest) <= len(data)
    # What is in the state went into the pipe: what was read, and at most one pipe's fill beyond.
    assert len(data) - len(rest) - len(whole) <= 1 << 17


def test_head_ends_dedup_quietly(program, tmp_path):
    (tmp_path / "in").write_bytes(b"".join(b"%d\n" % i for i in range(300_000)))
    command = f"{' '.join(program)} dedup {tmp_path / 'in'} | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60)
    assert (done.stdout, done.stderr) == (b"0\n", b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_an_error_and_its_lines_are_not_remembered(fullbloom, program, refused, tmp_path):
    with Path("/dev/full").open("wb") as full:
        process = subprocess.run(
            [*program, "dedup", "--state", str(tmp_path / "s")],
            input=b"a\n",
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert "No space left" in refused(process)
    assert fullbloom("dedup", "--state", tmp_path / "s", stdin=b"a\n", check=0).stdout == b"a\n"
    refused(fullbloom("dedup", "-o", "/dev/full", stdin=b"a\n"))
    with Path("/dev/full").open("wb") as full:
        refused(
            subprocess.run(
                [*program, "plan", "--items", "9", "--fpr", ".1"], stdout=full, stderr=subprocess.PIPE
            )
        )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "kind", [[], ["--kind", "counting", "--expected", "9999"]], ids=["plain", "counting"]
)
@pytest.mark.parametrize("mode", ["--new-only", "--old-only", "--mark"])
@pytest.mark.parametrize("select", [[], ["--select", "k", "--format", "jsonl"]], ids=["lines", "records"])
def test_seen_remembers_no_line_that_it_could_not_print(
    fullbloom, program, refused, tmp_path, mode, select, kind
):
    first, second, third = (b'{"k": %d}\n' % number for number in range(3))
    options = ["seen", "-q", "--state", tmp_path / "s", *select]
    fullbloom(*options, *kind, stdin=first, check=0)
    data = first + second + second + third
    with Path("/dev/full").open("wb") as full:
        words = [*program, *map(str, options), mode]
        done = subprocess.run(words, input=data, stdout=full, stderr=subprocess.PIPE)
    assert "No space left" in refused(done)
    outputs = {
        "--new-only": second + third,
        "--old-only": first + second,
        "--mark": b"old\t" + first + b"new\t" + second + b"old\t" + second + b"new\t" + third,
    }
    assert fullbloom(*options, mode, stdin=data, check=0).stdout == outputs[mode]


def test_seen_remembers_the_marked_lines_of_a_block_that_a_closed_pipe_took(fullbloom, program, tmp_path):
    data = b"".join(b"%08d\n" % number for number in range(100_000))
    words = [
        *program,
        "seen",
        "-q",
        "--fpr",
        "1e-12",
        "--mark",
        "--state",
        str(tmp_path / "s"),
        str(tmp_path / "in"),
    ]
    (tmp_path / "in").write_bytes(data)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        got = os.read(process.stdout.fileno(), 1 << 12)
        process.stdout.close()
        process.communicate(timeout=60)
    rest = fullbloom(*words[len(program) :], check=0).stdout.splitlines()
    assert [line[4:] for line in rest] == data.splitlines()
    old = [line.startswith(b"old\t") for line in rest]
    # Every line that was read is remembered, and no more than a pipe holds beyond them.
    assert got.count(b"\n") <= sum(old) <= (len(got) + (1 << 16)) // len(b"new\t00000000\n")
    assert all(old[: sum(old)])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("select", [[], ["--select", "k", "--format", "jsonl"]], ids=["lines", "records"])
def test_printed_lines_are_remembered_if_a_dropped_one_cannot_be_written(
    fullbloom, refused, tmp_path, select
):
    first, second, third = (b'{"k": %d}\n' % number for number in range(3))
    options = ["dedup", "-q", "--state", tmp_path / "s", *select]
    done = fullbloom(*options, "--dupes-output", "/dev/full", stdin=first + first + second)
    assert "No space left" in refused(done)
    assert done.stdout == first + second
    assert fullbloom(*options, stdin=first + second + third, check=0).stdout == third


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_half_written_file(fullbloom, program, refused, tmp_path, number):
    (tmp_path / "o").write_bytes(b"before")
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8b damaged")
    options = ["dedup", "-o", tmp_path / "o", "--state", tmp_path / "s", "-", tmp_path / "bad.gz"]
    refused(fullbloom(*options, stdin=b"a\n"))
    process = subprocess.Popen(
        [*program, *map(str, options[:5])], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdin.write(b"a\n")
    process.stdin.flush()
    until = time.monotonic() + 60
    while not list(tmp_path.glob(".o.*")) and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.1)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert (tmp_path / "o").read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.gz", "o"]


def test_seen_prints_each_line_at_once_and_saves_periodically(program, tmp_path):
    process = subprocess.Popen(
        [*program, "seen", "--mark", "--state", str(tmp_path / "s"), "--save-every", "0.2"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    for line, answer in ((b"a\n", b"new\ta\n"), (b"a\n", b"old\ta\n"), (b"b\n", b"new\tb\n")):
        process.stdin.write(line)
        process.stdin.flush()
        assert process.stdout.readline() == answer
    until = time.monotonic() + 60
    while not (tmp_path / "s").exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert (tmp_path / "s").exists()
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_keyed_state_needs_its_secret_and_never_prints_it(fullbloom, refused, tmp_path):
    (tmp_path / "raw").write_bytes(bytes(range(65, 81)))
    (tmp_path / "hex").write_text(bytes(range(65, 81)).hex())
    (tmp_path / "bad").write_bytes(b"short")
    state = ["--state", tmp_path / "s"]
    first = fullbloom("dedup", "--secret-file", tmp_path / "raw", *state, "--json", stdin=b"a\n", check=0)
    assert b"ABCDEFGH" not in first.stderr + (tmp_path / "s").read_bytes()
    assert (
        fullbloom("dedup", "--secret-file", tmp_path / "hex", *state, stdin=b"a\nb\n", check=0).stdout
        == b"b\n"
    )
    refused(fullbloom("dedup", *state, stdin=b"a\n"))
    assert "short" not in refused(fullbloom("dedup", "--secret-file", tmp_path / "bad"))


@pytest.mark.parametrize("command", ["dedup", "seen"])
def test_a_state_is_locked_by_one_run_at_a_time(fullbloom, program, refused, tmp_path, command):
    options = [command, "-q", "--state", tmp_path / "s"]
    with subprocess.Popen([*program, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        first.stdin.write(b"a\n")
        first.stdin.flush()
        assert first.stdout.readline() == b"a\n"
        (tmp_path / "link").symlink_to("s")
        for path in ("s", "link"):
            assert "another run" in refused(fullbloom("dedup", "--state", tmp_path / path, stdin=b"b\n"))
        first.communicate(timeout=60)
    assert fullbloom(*options, stdin=b"a\nb\n", check=0).stdout == b"b\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "s"]


def test_a_killed_run_releases_its_state(fullbloom, program, tmp_path):
    options = ["dedup", "-q", "--state", tmp_path / "s"]
    with subprocess.Popen([*program, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        first.stdin.write(b"a\n")
        first.stdin.flush()
        first.stdout.readline()
        first.kill()
    assert fullbloom(*options, stdin=b"a\n", check=0).stdout == b"a\n"
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize("command", ["dedup", "seen"])
def test_a_state_that_cannot_be_saved_is_refused_before_any_work(fullbloom, refused, tmp_path, command):
    (tmp_path / "locked").mkdir(mode=0o555)
    os.mkfifo(tmp_path / "pipe")
    states = ["/proc/s", "/dev/null", tmp_path / "pipe", tmp_path / "none" / "s"]
    if os.geteuid() != 0:  # root may write anywhere
        states.append(tmp_path / "locked" / "s")
    for state in states:
        output = ["-o", tmp_path / "o"] if command == "dedup" else []
        done = fullbloom(command, *output, "--state", state, stdin=b"a\n")
        assert str(state) in refused(done)
        assert done.stdout == b""
        assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("command", ["dedup", "seen"])
def test_lines_printed_and_not_remembered_are_counted(fullbloom, refused, tmp_path, command):
    data = b"".join(b"%d\n" % i for i in range(3000))
    options = ["-q", "--kind", "cuckoo", "--state", tmp_path / "s"]
    done = fullbloom(command, *options, "--expected", "1000", stdin=data)
    result = re.search(r"; ([\d,]+) printed lines are not in the state", refused(done))[1]
    printed = done.stdout
    unknown = fullbloom("check", tmp_path / "s", "--absent", stdin=printed).stdout
    assert unknown.count(b"\n") == int(result.replace(",", "")) > 0


LINES = b"".join(b"%d\n" % i for i in range(1000))


def _until(true, seconds=60):
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
    process.communicate(timeout=60)
    done = fullbloom("dedup", "-q", *state, stdin=first + b'{"id": 1}\n', check=0)
    assert done.stdout == b'{"id": 1}\n'
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_buffered_lines_are_in_no_saved_state(program, tmp_path):
    words = [*program, "dedup", "-o", tmp_path / "o", "--state", tmp_path / "s", "--save-every", "0.01"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    for i in range(5):
        process.stdin.write(b"%d\n" % i)
        process.stdin.flush()
        time.sleep(0.05)
    process.kill()
    process.communicate(timeout=60)
    assert not (tmp_path / "s").exists()


@pytest.mark.long
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
def test_symbolic_links_beside_a_state_are_not_followed(fullbloom, program, tmp_path, name):
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
    process.communicate(timeout=60)
    fullbloom(*options, stdin=b"c\n", check=0)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "other"), [("s", "s.2024"), ("s", "s.0123456789ab"), ("[s]*", "s"), ("?", "s")]
)
def test_a_run_removes_no_working_copy_of_another_state(fullbloom, program, tmp_path, name, other):
    options = ["dedup", "-q", "--memory", "64M", "--state"]
    for state in (name, other):
        fullbloom(*options, tmp_path / state, stdin=b"a\n", check=0)
    words = [*program, *options, str(tmp_path / other)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b"b\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"b\n"
        fullbloom(*options, tmp_path / name, stdin=b"a\n", check=0)
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert fullbloom(*options, tmp_path / other, stdin=b"b\nc\n", check=0).stdout == b"c\n"
    assert {path.name for path in tmp_path.iterdir()} == {name, other}


@pytest.mark.parametrize("command", ["dedup", "seen"])
@pytest.mark.parametrize("select", [[], ["--select", "k", "--format", "jsonl"]], ids=["lines", "records"])
def test_a_second_signal_within_a_write_keeps_the_lines_that_were_printed(
    monkeypatch, capfd, tmp_path, command, select
):
    first, second = (b'{"k": %d}\n' % number for number in range(2))
    (tmp_path / "in").write_bytes(first + second)
    words = [command, "-q", "--state", str(tmp_path / "s"), *select, str(tmp_path / "in")]
    write, printed = os.write, []

    def write_half(descriptor, data):
        if descriptor != 1:
            return write(descriptor, data)
        if printed:
            raise Interrupted(signal.SIGINT)
        printed.append(bytes(data[: len(first)]))
        return write(descriptor, printed[0])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write_half)
        assert main(words) == 130
    assert capfd.readouterr().out.encode() == first
    assert main(words) in {0, 1}
    assert capfd.readouterr().out.encode() == second


@pytest.mark.parametrize("command", ["dedup", "seen"])
def test_an_input_that_is_refused_creates_no_state(fullbloom, refused, tmp_path, command):
    refused(fullbloom(command, "--state", tmp_path / "s", stdin=b"PAR1\0\0"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["s", "[s]*"])
def test_the_leftovers_of_a_state_are_removed_whatever_its_name(fullbloom, tmp_path, name):
    options = ["dedup", "-q", "--memory", "64M", "--state", tmp_path / name]
    fullbloom(*options, stdin=b"a\n", check=0)
    (tmp_path / f".{name}.0123456789ab.working").write_bytes(b"of a killed run")
    (tmp_path / f".{name}.notes.working").write_bytes(b"of the user")
    fullbloom(*options, stdin=b"b\n", check=0)
    assert {path.name for path in tmp_path.iterdir()} == {name, f".{name}.notes.working"}


@pytest.mark.parametrize("command", ["dedup", "seen"])
def test_a_state_name_too_long_to_save_is_refused_before_any_work(fullbloom, refused, tmp_path, command):
    for length in (201, 240, 249, 255):
        done = fullbloom(command, "--state", "n" * length, stdin=b"a\n", cwd=tmp_path)
        refused(done)
        assert done.stdout == b""
    fullbloom(command, "--state", "n" * 200, stdin=b"a\n", cwd=tmp_path, check=0)
    assert "b" not in package.open(tmp_path / ("n" * 200))
