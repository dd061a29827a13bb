"""`fullbloom seen --window`: within it nothing is forgotten, past two all is; time never goes back."""

from __future__ import annotations

import re
import subprocess
import time

import pytest

import fullbloom as package
from fullbloom import registry
from fullbloom.cli.filters.kinds import list_kinds, list_windowed
from fullbloom.cli.window import parse_window
from fullbloom.recipes.seen import Clock, mark, only_new

KINDS = [row["name"] for row in list_windowed()]
CLASSES = [registry.get_class(row) for row in list_windowed()]
OTHERS = [row["name"] for row in list_kinds() if row["name"] not in KINDS]
HOUR = 3600.0


def test_seen_offers_the_kinds_with_a_window():
    assert KINDS
    assert all("expire" in registry.get_row(kind)["capabilities"] for kind in KINDS)


@pytest.mark.parametrize("kind", [[], *(["--kind", kind] for kind in KINDS)], ids=str)
def test_a_window_of_lines_never_denies_its_last_lines(fullbloom, kind):
    lines = [*range(1000), *range(900, 1000), *range(50)]
    text = b"".join(b"%d\n" % line for line in lines)
    done = fullbloom("seen", "--seed", 1, "--window", "100", "--mark", *kind, stdin=text, check=0)
    marks = [line.split(b"\t")[0] for line in done.stdout.splitlines()]
    assert marks[:1000] == [b"new"] * 1000
    assert marks[1000:1100] == [b"old"] * 100  # the last hundred
    assert marks[1100:] == [b"new"] * 50  # a thousand lines ago
    assert b"forgets" not in done.stderr  # it was asked for


RECORDS = ["--select", "1", "--format", "csv", "--no-header"]


@pytest.mark.parametrize("select", [[], RECORDS], ids=["lines", "records"])
@pytest.mark.parametrize("mode", ["--new-only", "--old-only"])
def test_lines_read_in_one_block_age_too(fullbloom, mode, select):
    """Lines of one block are looked up before the first is added; a window may be shorter than a block."""
    for lines, numbers in ((3, [*range(8), 6, 0]), (100, [*range(1000), *range(950, 1000), *range(50)])):
        text = b"".join(b"%d\n" % number for number in numbers)
        options = ["--quiet", "--seed", "1", "--window", str(lines), mode, *select]
        done = fullbloom("seen", *options, stdin=text, check=0)
        new = [*range(8), 0] if lines == 3 else [*range(1000), *range(50)]
        old = [6] if lines == 3 else [*range(950, 1000)]
        assert [int(line) for line in done.stdout.split()] == (new if mode == "--new-only" else old)


@pytest.mark.parametrize("kind", [[], *(["--kind", kind] for kind in KINDS)], ids=str)
def test_a_time_window_covers_the_whole_run(fullbloom, kind):
    done = fullbloom("seen", "--window", "1h", "--mark", *kind, stdin=b"a\nb\na\n", check=0)
    assert done.stdout == b"new\ta\nnew\tb\nold\ta\n"


def test_a_line_older_than_the_window_is_new_again(program):
    """Two windows have certainly passed; the tests above, with one hour, cover lines within the window."""
    words = [*program, "seen", "--mark", "--window", "0.2s"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for _ in range(2):
            process.stdin.write(b"a\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"new\ta\n"
            time.sleep(0.5)
        process.communicate(timeout=60)
        assert process.returncode == 0


def read_state(cls, path, ago):
    """A state of one hour's window to which "a" was added ``ago`` seconds before now."""
    seen = cls(1000, 1e-6, window=HOUR)
    seen.advance(time.time() - ago)
    seen.add("a")
    seen.save(path)


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(("ago", "answer"), [(0.5 * HOUR, b"old"), (2.5 * HOUR, b"new"), (1e9, b"new")])
def test_time_passes_between_two_runs(fullbloom, tmp_path, cls, ago, answer):
    read_state(cls, tmp_path / "s", ago)
    for words in (["seen", "--mark"], ["seen", "--mark", "--window", "1h"]):
        done = fullbloom(*words, "--state", tmp_path / "s", stdin=b"a\n", check=0)
        assert done.stdout == answer + b"\ta\n"
        read_state(cls, tmp_path / "s", ago)
    assert (fullbloom("dedup", "--state", tmp_path / "s", stdin=b"a\n").stdout == b"a\n") == (
        answer == b"new"
    )


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("ahead", [100.0, 1e7, 1e12])
def test_setting_the_clock_back_forgets_nothing(fullbloom, tmp_path, cls, ahead):
    read_state(cls, tmp_path / "s", -ahead)
    done = fullbloom("seen", "--mark", "--state", tmp_path / "s", stdin=b"a\nb\n", check=0)
    assert done.stdout == b"old\ta\nnew\tb\n"
    assert re.search(rb"fullbloom: the clock is .* behind", done.stderr)
    again = package.open(tmp_path / "s", verify="full")
    assert again.now >= time.time() + ahead - 60
    assert b"behind" not in fullbloom("seen", "-q", "--state", tmp_path / "s", stdin=b"a\n", check=0).stderr


@pytest.mark.parametrize("cls", CLASSES)
def test_a_run_measures_time_by_the_steady_clock(cls):
    wall, steady = iter([1e9, 5e8, 2e9]), [0.0]
    seen = cls(100, window=10.0)
    clock = Clock(seen, wall=lambda: next(wall), steady=lambda: steady[0])
    clock.tick()
    seen.add("a")
    steady[0] = 10.0
    clock.tick()
    assert "a" in seen
    assert seen.now == 1e9 + 10
    later = Clock(seen, wall=lambda: next(wall), steady=lambda: steady[0])
    assert later.behind == 5e8 + 10
    later.tick()
    assert "a" in seen
    steady[0] = 31.0
    later.tick()
    assert "a" not in seen
    assert seen.now == 1e9 + 31
    seen.advance(1e9 + 50)  # by another hand
    later.tick()
    assert seen.now == 1e9 + 50
    assert Clock(seen, wall=lambda: next(wall), steady=lambda: 0.0).behind == 0.0


def test_recipes_advance_their_windows():
    steady = iter([0.0, 1.0, 2.0, 100.0])
    seen = CLASSES[0](100, window=10.0)
    clock = Clock(seen, wall=lambda: 0.0, steady=lambda: next(steady))
    assert [new for new, _ in mark("aaa", seen, clock=clock)] == [True, False, True]
    steady = iter([0.0, 1.0, 2.0, 100.0])
    seen = CLASSES[0](100, window=10.0)
    clock = Clock(seen, wall=lambda: 0.0, steady=lambda: next(steady))
    assert list(only_new("aaa", seen, clock=clock)) == ["a", "a"]


BAD = ["0", "0s", "-1", "-1h", "0.0001s", "1e30h", "99999999999h", "1e400", "inf", "nan", "infs", "nanh"]
BAD += [
    "1x",
    "1m",
    "1hh",
    "h",
    "s",
    "1.5",
    "1h30min",
    "0min",
    "\u0663h",
    "",
    " ",
    "1" * 400 + "h",
    "1" * 5000,
]


@pytest.mark.parametrize("text", BAD)
def test_invalid_windows_are_refused_in_one_line(fullbloom, refused, text):
    done = fullbloom("seen", f"--window={text}", stdin=b"a\n")
    assert "window" in refused(done)
    assert done.stdout == b""


@pytest.mark.parametrize("text", ["1e18", "900T", "1" + "0" * 17])
def test_a_window_of_too_many_lines_is_refused(fullbloom, refused, text):
    done = fullbloom("seen", "--window", text, stdin=b"a\n")
    assert refused(done)
    assert done.stdout == b""


@pytest.mark.parametrize(
    ("text", "lines", "seconds"),
    [
        *(("90s", None, 90), ("1.5h", None, 5400), ("15min", None, 900), ("7d", None, 604_800)),
        *(("2w", None, 1_209_600), ("0.5s", None, 0.5), ("1 h", None, 3600)),
        *(("1000000", 10**6, None), ("1e6", 10**6, None), ("1M", 10**6, None)),
        *(("5k", 5000, None), ("1_000", 1000, None)),
    ],
)
def test_windows_accept_units_and_exponents(text, lines, seconds):
    read = parse_window(text)
    assert (read.lines, read.seconds, str(read)) == (lines, seconds, text)


@pytest.mark.parametrize("kind", OTHERS)
def test_kinds_without_a_window_refuse_one(fullbloom, refused, kind):
    message = refused(fullbloom("seen", "--window", "1h", "--kind", kind, stdin=b"a\n"))
    assert all(name in message for name in KINDS)


def test_a_window_of_lines_sets_the_capacity(fullbloom, refused):
    assert "--expected" in refused(fullbloom("seen", "--window", "100", "--expected", "50", stdin=b"a\n"))


@pytest.mark.parametrize("instance", ["1h", "1000", None])
@pytest.mark.parametrize("asked", ["2h", "2000"])
def test_a_state_of_another_window_is_refused(fullbloom, refused, tmp_path, instance, asked):
    options = [] if instance is None else ["--window", instance]
    fullbloom("seen", "--state", tmp_path / "s", *options, stdin=b"a\n", check=0)
    before = (tmp_path / "s").read_bytes()
    assert "--window" in refused(
        fullbloom("seen", "--state", tmp_path / "s", "--window", asked, stdin=b"b\n")
    )
    assert (tmp_path / "s").read_bytes() == before
    if instance:
        fullbloom("seen", "--state", tmp_path / "s", "--window", instance, stdin=b"b\n", check=0)


@pytest.mark.parametrize("quiet", [[], ["-q"]], ids=["", "quiet"])
def test_more_lines_than_expected_in_a_time_window_are_reported(fullbloom, quiet):
    text = b"".join(b"%d\n" % i for i in range(5000))
    words = ["seen", "--window", "1h", "--expected", "100", "--fpr", "0.01", *quiet]
    done = fullbloom(*words, stdin=text, check=1)
    assert b"give more --expected" in done.stderr
    assert b"expected" not in fullbloom(*words, stdin=text[:200], check=0).stderr
