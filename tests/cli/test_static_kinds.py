"""Guarantee: a static --kind is built of all lines, asked, described, and refused where lines are added."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import termios
import time

import pytest

import fullbloom as package
from fullbloom import registry
from fullbloom.cli.failures import Interrupted
from fullbloom.cli.filters.builders import create_builder
from fullbloom.cli.filters.kinds import list_static_kinds
from fullbloom.cli.io.reader import Reader
from fullbloom.cli.parser import parse
from fullbloom.cli.progress import Progress
from fullbloom.cli.stops import Stops

ROWS = {row["name"]: row for row in list_static_kinds()}
KINDS = list(ROWS)
TEXT = b"".join(b"line %d\r\n" % (i % 900) for i in range(2000))
LINES = [f"line {i}" for i in range(900)]


def test_the_registry_has_static_kinds():
    assert {row["name"] for row in package.variants() if "static" in row["capabilities"]} >= set(KINDS)
    assert len(KINDS) > 1


@pytest.mark.parametrize("kind", KINDS)
def test_build_check_and_info_agree(fullbloom, tmp_path, kind):
    (tmp_path / "in").write_bytes(TEXT)
    options = ["--kind", kind, "--fpr", "1e-6"]
    result = fullbloom("build", "f", *options, "in", "--json", cwd=tmp_path, check=0)
    facts = json.loads(result.stdout)
    assert (facts["lines"], facts["num_added"], facts["class"]) == (2000, 900, ROWS[kind]["class"])
    fullbloom("build", "piped", *options, "--threads", "2", cwd=tmp_path, stdin=TEXT, check=0)
    fullbloom("build", "bounded", *options, "--memory", "200M", "in", cwd=tmp_path, check=0)
    instance = getattr(package, ROWS[kind]["class"]).build(LINES, 1e-6)
    for name in ("f", "piped", "bounded"):
        assert package.open(tmp_path / name, verify="full") == instance
    assert fullbloom("check", "f", cwd=tmp_path, stdin=TEXT, check=0).stdout == TEXT
    assert fullbloom("check", "f", "--absent", cwd=tmp_path, stdin=b"never\n", check=1).stdout == b"never\n"
    assert json.loads(fullbloom("info", "f", "--json", cwd=tmp_path, check=0).stdout)["num_added"] == 900


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ribbon", "cascade"])
def test_too_little_memory_is_refused_with_the_size_that_suffices(fullbloom, refused, tmp_path, kind):
    count = 6_000_000
    (tmp_path / "in").write_bytes(b"".join(b"%d\n" % i for i in range(count)))
    (tmp_path / "out").write_bytes(b"".join(b"%d\n" % i for i in range(count, count + count // 2)))
    words = ["build", "f", "--kind", kind, "in", *(["--except", "out"] if kind == "cascade" else [])]
    result = refused(fullbloom(*words, "--memory", "85M", cwd=tmp_path))
    assert "--memory 85.0 MiB is too little" in result
    enough = re.search(r"give (\d+M) or more", result)[1]
    fullbloom(*words, "--memory", enough, "--quiet", cwd=tmp_path, check=0)


@pytest.mark.parametrize("kind", KINDS)
def test_records_are_keyed_by_their_columns(fullbloom, tmp_path, kind):
    rows = b"name,n\n" + b"".join(b"a%d,%d\n" % (i, i) for i in range(300))
    (tmp_path / "in.csv").write_bytes(rows)
    chosen = ["--select", "n", "--key-type", "int"]
    fullbloom("build", "f", "--kind", kind, *chosen, "in.csv", cwd=tmp_path, check=0)
    assert package.open(tmp_path / "f") == getattr(package, ROWS[kind]["class"]).build(range(300), 0.01)
    assert fullbloom("check", "f", *chosen, "in.csv", cwd=tmp_path, check=0).stdout == rows
    assert fullbloom("check", "f", "--threads", "2", cwd=tmp_path, stdin=b"x\n").returncode == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_secret_and_leaked_hashes(fullbloom, tmp_path, kind):
    (tmp_path / "secret").write_bytes(b"sixteen secrets!")
    leaked = b"0123456789ABCDEF0123456789ABCDEF01234567:3\n"
    keyed = ["--secret-file", "secret", "--hex"]
    fullbloom("build", "f", "--kind", kind, *keyed, cwd=tmp_path, stdin=leaked, check=0)
    assert leaked[:40].decode() in package.open(tmp_path / "f", secret=b"sixteen secrets!")
    fullbloom("check", "f", *keyed, cwd=tmp_path, stdin=leaked.lower(), check=0)


@pytest.mark.parametrize("kind", KINDS)
def test_commands_that_add_lines_refuse_a_static_file_in_one_line(fullbloom, refused, tmp_path, kind):
    fullbloom("build", "f", "--kind", kind, cwd=tmp_path, stdin=b"a\n", check=0)
    before = (tmp_path / "f").read_bytes()
    remedy = f"fullbloom build --kind {kind}"
    for words in (["dedup"], ["seen"]):
        assert remedy in refused(fullbloom(*words, "--kind", kind, cwd=tmp_path, stdin=b"b\n"))
        assert remedy in refused(fullbloom(*words, "--state", "f", cwd=tmp_path, stdin=b"b\n"))
    assert remedy in refused(fullbloom("insert", "f", cwd=tmp_path, stdin=b"b\n"))
    if "merge" in ROWS[kind]["capabilities"]:
        fullbloom("merge", "g", "f", "f", cwd=tmp_path, check=0)
        assert (tmp_path / "g").read_bytes() == before
    else:
        assert "from all lines" in refused(fullbloom("merge", "g", "f", "f", cwd=tmp_path))
    assert (tmp_path / "f").read_bytes() == before


@pytest.mark.parametrize("kind", KINDS)
def test_unused_options_and_too_little_memory_are_refused_in_one_line(fullbloom, refused, tmp_path, kind):
    words = ["build", "f", "--kind", kind]
    for option, result in (
        (["--layout", "blocked"], "no layout"),
        (["--memory", "1M"], "--memory must be"),
    ):
        assert result in refused(fullbloom(*words, *option, cwd=tmp_path, stdin=b"a\n"))
    assert "--memory" in refused(fullbloom("build", "f", "--memory", "1G", cwd=tmp_path, stdin=b"a\n"))
    assert "fpr must be at least" in refused(fullbloom(*words, "--fpr", "1e-300", cwd=tmp_path, stdin=b"a\n"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("lines", [b"", b"\n", b"a", b"a\na\na\n"], ids=["none", "empty", "one", "equal"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_static_filter_of_few_lines_finds_them(fullbloom, tmp_path, kind, lines):
    fullbloom("build", tmp_path / "f", "--kind", kind, stdin=lines, check=0)
    assert package.open(tmp_path / "f", verify="full").num_added == len(set(lines.splitlines()))
    assert fullbloom("check", tmp_path / "f", stdin=lines, check=0).stdout == lines


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_ends_the_wait_for_input_and_leaves_no_file(program, tmp_path, kind):
    words = [*program, "build", str(tmp_path / "f"), "--kind", kind]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        running.stdin.write(TEXT)
        running.stdin.flush()
        while struct.unpack("i", fcntl.ioctl(running.stdin, termios.FIONREAD, bytes(4))) != (0,):
            time.sleep(0.01)  # it has not read the lines
        running.send_signal(signal.SIGINT)
        running.wait(60)
        assert running.returncode == 130
        assert running.stderr.read().count(b"\n") == 1
    assert not list(tmp_path.iterdir())


class Lines:
    """Blocks of an input."""

    name = "input"

    def __iter__(self):
        yield TEXT


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_ends_the_build(kind):
    _, options = parse(["build", "f", "--kind", kind])

    class InterruptedLines(Lines):
        def __iter__(self):
            yield TEXT
            os.kill(os.getpid(), signal.SIGINT)  # between two waits: heeded at the next

    with Stops() as stops, pytest.raises(Interrupted):
        reader = Reader(options, stops)
        reader.sets = [InterruptedLines()]
        create_builder(options, reader).build()


def test_the_progress_of_the_build_is_shown(monkeypatch):
    shown = []
    monkeypatch.setattr(Progress, "show", lambda _self, line=None: shown.append(line))
    _, options = parse(["build", "f", "--kind", KINDS[0]])
    with Stops() as stops:
        reader = Reader(options, stops)
        reader.sets = [Lines()]
        create_builder(options, reader).build()
    assert shown[-1] == "building, 100 %"


def test_plan_recommends_a_map_if_values_are_needed(fullbloom):
    words = ["plan", "--items", "1e6", "--fpr", "0.01", "--needs", "static,value", "--json"]
    rows = json.loads(fullbloom(*words, check=0).stdout)["choices"]
    pairs = [row for row in package.variants() if registry.is_built(row, "key", "value")]
    assert [row["structure"] for row in rows] == [row["name"] for row in pairs]
    assert rows[0]["python"] == f"{rows[0]['class']}.build(keys, values, fpr=0.01)"


@pytest.mark.parametrize("items", ["1000", "1e6", "1e9"])
def test_plan_recommends_a_static_filter_with_its_bits_and_cost(fullbloom, items):
    words = ["plan", "--items", items, "--fpr", "0.01", "--needs", "static"]
    rows = json.loads(fullbloom(*words, "--json", check=0).stdout)["choices"]
    assert {row["structure"] for row in rows} == set(KINDS)
    assert [row["recommended"] for row in rows] == [True] + [False] * (len(rows) - 1)
    for row in rows:
        cls = getattr(package, row["class"])
        assert row["nbytes"] >= cls.nbytes_for(int(float(items)), 0.01)
        assert row["add_ns_per_key"] == ROWS[row["structure"]]["ns"][0]
        assert row["python"] == f"{row['class']}.build(keys, 0.01)"
    table = fullbloom(*words, check=0).stdout.decode()
    assert "ns build" in table
    assert "bits/key" in table


@pytest.mark.parametrize("kind", KINDS)
def test_capacity_is_accepted_only_for_kinds_that_can_be_merged(fullbloom, tmp_path, kind):
    """Sets made for more keys than they have are merged; what has no room for more says so."""
    (tmp_path / "one").write_bytes(TEXT)
    (tmp_path / "two").write_bytes(TEXT.replace(b"line", b"row"))
    build = ["build", "--kind", kind, "--capacity", "5000", "--quiet"]
    if "capacity" not in [name for name, _, _ in ROWS[kind]["parameters"]]:
        refused = fullbloom(*build, "f", "one", cwd=tmp_path, check=2)
        assert b"drop --capacity" in refused.stderr
        return
    for name in ("one", "two"):
        fullbloom(*build, f"{name}.bloom", name, cwd=tmp_path, check=0)
    fullbloom("merge", "both.bloom", "one.bloom", "two.bloom", cwd=tmp_path, check=0)
    for name in ("one", "two"):
        fullbloom("check", "--quiet", "both.bloom", name, cwd=tmp_path, check=0)
