"""Guarantee: --kind takes every registry row whose add takes the key alone, in real pipes."""

from __future__ import annotations

import json
import random
import subprocess

import pytest
from support import chance, most_counted, variants_with

import fullbloom as package
from fullbloom import registry
from fullbloom.cli.filters.kinds import find_kind, list_kinds
from fullbloom.plan import choices
from fullbloom.recipes.dedup import add_new, keeps_copies, unique

ROWS = {row["name"]: row for row in package.variants()}
KINDS = [row["name"] for row in list_kinds()]
KEEPING = [kind for kind in KINDS if ROWS[kind]["false_negatives"] != "by design"]
FORGETTING = [kind for kind in KINDS if kind not in KEEPING]
COUNT = 2000


def size_options(kind: str, option: str = "--expected", count: int = 2 * COUNT) -> list[str]:
    """The options of a kind: its size, unless it grows."""
    return ["--kind", kind] if find_kind(kind).is_growing else ["--kind", kind, option, str(count)]


def rate_of(kind: str) -> float:
    """A low rate that the kind can be made for."""
    cls = getattr(package, ROWS[kind]["class"])
    for rate in (1e-9, 1e-6, 1e-4, 1e-3):
        try:
            cls.nbytes_for(2 * COUNT, rate)
        except package.ParameterError:
            continue
        return rate
    return 0.01


def assert_first_of_each(got: bytes, expected: bytes, kind: str) -> None:
    """Exactly the first of each line; fewer where the kind has no low rate, as that allows."""
    wanted, kept, rate = expected.splitlines(), got.splitlines(), rate_of(kind)
    if rate <= 1e-6:
        assert got == expected
        return
    lines = iter(wanted)
    assert all(line in lines for line in kept), "lines out of order, or twice"
    lost = rate * len(wanted)
    assert len(wanted) - len(kept) <= lost + chance(lost)


@pytest.fixture(scope="module")
def text() -> bytes:
    """Lines of which many repeat, one of them hundreds of times."""
    draw = random.Random(3)
    lines = [b"%d" % draw.randrange(COUNT) for _ in range(3 * COUNT)]
    lines[::20] = [b"again and again"] * len(lines[::20])
    return b"\n".join(lines) + b"\n"


@pytest.mark.parametrize("kind", ["bloom", "cuckoo"])
def test_dedup_and_seen_work_in_a_pipe_of_the_shell(program, kind):
    """Each in a process of its own; all kinds are below, in forks of one."""
    lines, options = b"a\nb\na\n", f"-q --expected 100 --kind {kind} --fpr {rate_of(kind)}"
    for command, expected in (("dedup", b"a\nb\n"), ("seen --old-only", b"a\n")):
        words = f"cat | {' '.join(program)} {command} {options} | cat"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", words], input=lines, capture_output=True, timeout=60
        )
        assert (done.returncode, done.stdout) == (0, expected), done.stderr.decode()


def test_kind_offers_every_row_of_the_registry():
    assert set(KINDS) == {variant.name for variant in variants_with("keys")}


@pytest.mark.parametrize("kind", KEEPING)
def test_dedup_keeps_the_first_of_each_line(fullbloom, exact, text, kind):
    options = ["-q", "--seed", 1, "--fpr", rate_of(kind), *size_options(kind)]
    assert_first_of_each(fullbloom("dedup", *options, stdin=text, check=0).stdout, exact(text), kind)


@pytest.mark.parametrize("kind", [kind for kind in KEEPING if not find_kind(kind).is_growing])
def test_dedup_stays_within_its_memory(fullbloom, exact, text, kind):
    options = ["--seed", 1, "--fpr", rate_of(kind), "--kind", kind, "--memory", "64M", "--json"]
    done = fullbloom("dedup", *options, stdin=text, check=0)
    assert_first_of_each(done.stdout, exact(text), kind)
    facts = json.loads(done.stderr)
    assert facts["filter"]["class"] == ROWS[kind]["class"]
    assert facts["peak_memory"] <= 1.05 * (64 << 20)


@pytest.mark.parametrize("kind", KEEPING)
def test_dedup_verify_is_exact(fullbloom, exact, text, tmp_path, kind):
    (tmp_path / "in").write_bytes(text)
    done = fullbloom("dedup", "--verify", "--fpr", "0.02", *size_options(kind), tmp_path / "in", check=0)
    assert done.stdout == exact(text)


@pytest.mark.parametrize("command", ["dedup", "seen"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_state_reopens_as_its_own_class(fullbloom, refused, tmp_path, command, kind):
    state, options = tmp_path / "s", ["--fpr", rate_of(kind), *size_options(kind)]
    first = fullbloom(command, "--state", state, *options, stdin=b"a\nb\na\n", check=0)
    assert first.stdout == b"a\nb\n"
    assert (b"forgets" in first.stderr) == (kind in FORGETTING)
    assert type(package.open(state, verify="full")).__name__ == ROWS[kind]["class"]
    assert fullbloom(command, "--state", state, stdin=b"b\nc\n", check=0).stdout == b"c\n"
    assert fullbloom(command, "--state", state, *options, stdin=b"c\nd\n", check=0).stdout == b"d\n"
    before = state.read_bytes()
    other = next(name for name in KINDS if name != kind)
    result = refused(fullbloom(command, "--state", state, *size_options(other), stdin=b"x\n"))
    assert f"--kind {other} (it has {kind})" in result
    assert state.read_bytes() == before


@pytest.mark.parametrize("kind", KINDS)
def test_seen_marks_repeated_lines(fullbloom, kind):
    options = ["-q", "--fpr", rate_of(kind), *size_options(kind)]
    lines = b"a\nb\r\na\nb\nc"
    assert (
        fullbloom("seen", "--mark", *options, stdin=lines, check=0).stdout
        == b"new\ta\nnew\tb\r\nold\ta\nold\tb\nnew\tc"
    )
    assert fullbloom("seen", "--old-only", *options, stdin=lines, check=0).stdout == b"a\nb\n"
    assert fullbloom("seen", "--new-only", *options, stdin=lines, check=0).stdout == b"a\nb\r\nc"


@pytest.mark.parametrize("kind", KEEPING)
def test_build_check_and_info_agree(fullbloom, text, tmp_path, kind):
    path = tmp_path / "f.bloom"
    fullbloom(
        "build",
        path,
        "--fpr",
        rate_of(kind),
        *size_options(kind, "--capacity", 4 * COUNT),
        stdin=text,
        check=0,
    )
    found = package.open(path, verify="full")
    assert type(found).__name__ == ROWS[kind]["class"]
    assert fullbloom("check", path, stdin=text, check=0).stdout == text
    assert fullbloom("check", path, "--absent", stdin=b"never\n", check=1).stdout == b"never\n"
    facts = json.loads(fullbloom("info", path, "--json", check=0).stdout)
    assert facts["class"] == ROWS[kind]["class"]
    if "count" in ROWS[kind]["capabilities"] and not ROWS[kind]["once"]:
        most = min(11, most_counted(found))
        assert found.count("again and again") >= most, "a structure that counts is given every line"


@pytest.mark.parametrize("kind", [kind for kind in KEEPING if "merge" in ROWS[kind]["capabilities"]])
def test_merge_unites_two_files_of_a_kind(fullbloom, refused, tmp_path, kind):
    for name in "ab":
        lines = "".join(f"{name}{i}\n" for i in range(100)).encode()
        fullbloom("build", tmp_path / name, *size_options(kind, "--capacity"), stdin=lines, check=0)
    fullbloom("merge", tmp_path / "m", tmp_path / "a", tmp_path / "b", check=0)
    fullbloom("check", tmp_path / "m", "-q", stdin=b"a1\nb1\na99\nb99\n", check=0)
    fullbloom(
        "build", tmp_path / "c", "--seed", "5", *size_options(kind, "--capacity"), stdin=b"x\n", check=0
    )
    assert "seed" in refused(fullbloom("merge", tmp_path / "m", tmp_path / "a", tmp_path / "c"))


def test_kinds_that_cannot_be_merged_are_refused_in_one_line(fullbloom, refused, tmp_path):
    fullbloom("build", tmp_path / "grown", stdin=b"a\n", check=0)
    fullbloom("build", tmp_path / "plain", "--capacity", "10", stdin=b"a\n", check=0)
    result = refused(fullbloom("merge", tmp_path / "m", tmp_path / "plain", tmp_path / "grown"))
    assert "cannot be merged" in result
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("command", ["build", "dedup", "seen"])
def test_an_unknown_kind_is_refused_with_the_known_ones(fullbloom, refused, tmp_path, command):
    arguments = [tmp_path / "out"] if command == "build" else []
    result = refused(fullbloom(command, *arguments, "--kind", "colander", stdin=b"a\n"))
    assert "colander" in result
    assert all(kind in result for kind in KINDS)
    others = [row["name"] for row in package.variants() if row["name"] not in KINDS]
    for kind in others:
        if command == "build" and find_kind(kind).is_static:
            continue
        refused(fullbloom(command, *arguments, "--kind", kind, stdin=b"a\n"))
    for kind in FORGETTING:
        if command == "build":
            result = refused(fullbloom(command, *arguments, *size_options(kind, "--capacity"), stdin=b"a\n"))
            assert "forgets" in result
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not find_kind(kind).is_growing])
def test_a_kind_of_fixed_size_requires_a_capacity(fullbloom, refused, tmp_path, kind):
    assert "--expected" in refused(fullbloom("seen", "--kind", kind, stdin=b"a\n"))
    assert "--expected" in refused(fullbloom("dedup", "--kind", kind, stdin=b"a\n"))
    if kind in KEEPING:
        assert "--capacity" in refused(fullbloom("build", tmp_path / "o", "--kind", kind, stdin=b"a\n"))
        (tmp_path / "in").write_bytes(b"a\nb\n")
        fullbloom("build", "--kind", kind, tmp_path / "o", tmp_path / "in", check=0)
        assert type(package.open(tmp_path / "o")).__name__ == ROWS[kind]["class"]
    for layout in {"classic", "blocked"} - set(ROWS[kind]["layouts"]):
        result = refused(fullbloom("seen", *size_options(kind), "--layout", layout, stdin=b"a\n"))
        assert layout in result


@pytest.mark.parametrize("need", sorted({word for row in package.variants() for word in row["capabilities"]}))
def test_plan_lists_every_row_that_meets_a_need(fullbloom, need):
    meet = {row["name"] for row in package.variants() if need in row["capabilities"]}
    usual = [row for row in package.variants() if registry.is_open(row, "key")]
    # Structures that take a value with each key are listed only for needs that no other structure meets.
    if need in {"label", "value"}:
        usual += [row for row in package.variants() if registry.is_open(row, "key", "value")]
    # Structures that take no key later are listed only if that, or what follows from it, is needed.
    if need in {"static", "overlap"}:
        usual += [row for row in package.variants() if registry.is_built(row, "key")]
    meet &= {row["name"] for row in usual}
    done = fullbloom("plan", "--items", "1e6", "--fpr", "0.01", "--needs", need, "--json", check=0)
    rows = json.loads(done.stdout)["choices"]
    assert {row["structure"] for row in rows} == meet
    for row in rows:
        entry = ROWS[row["structure"]]
        cls = getattr(package, entry["class"])
        assert row["nbytes"] >= cls.nbytes_for(10**6, 0.01) > row["nbytes"] - 64
        assert [row["add_ns_per_key"], row["ns_per_key"]] == entry["ns"]
        assert row["false_negatives"] == entry["false_negatives"]
    kept = [row["false_negatives"] != "by design" for row in rows]
    assert kept == sorted(kept, reverse=True), "what forgets comes last"
    table = fullbloom("plan", "--items", "1e6", "--fpr", "0.01", "--needs", need, check=0).stdout.decode()
    assert all(name in table for name in meet)
    assert "false negatives" in table


def test_plan_takes_several_needs_and_any_two_of_three(fullbloom):
    rows = choices(10**6, 0.01, needs={"merge", "map"})
    assert all({"merge", "map"} <= set(ROWS[row.structure]["capabilities"]) for row in rows)
    done = fullbloom("plan", "--items", "1e6", "--fpr", "0.01", "--needs", "merge,map", "--json", check=0)
    assert [row["structure"] for row in json.loads(done.stdout)["choices"]] == [row.structure for row in rows]
    for row in choices(fpr=0.01, memory=1 << 20, needs={"add"}):
        assert row.nbytes <= 1 << 20
        assert row.items > 10_000
    for row in choices(items=20_000, memory=1 << 20, needs={"add"}):
        assert row.nbytes <= 1 << 20
        assert row.fpr < 0.02
    assert not any(row.fits for row in choices(10**7, 1e-4, memory=1 << 20, needs={"add"}))
    fullbloom("plan", "--items", "1e7", "--fpr", "1e-4", "--memory", "1M", "--needs", "add", check=1)


def test_an_unknown_need_is_refused_with_the_known_ones(fullbloom, refused):
    result = refused(fullbloom("plan", "--items", "9", "--fpr", "0.1", "--needs", "fly,merge"))
    assert "unknown need fly" in result
    assert all(word in result for row in package.variants() for word in row["capabilities"])
    everything = ",".join(sorted({word for row in package.variants() for word in row["capabilities"]}))
    result = refused(fullbloom("plan", "--needs", "fly"))
    assert "unknown need fly" in result, "before it is said that --items is missing"
    for words in ([], ["--fpr", "0.1"], ["--memory", "1M"], ["--needs", "add"]):
        assert "give --items, or both" in refused(fullbloom("plan", *words))
    assert "no structure" in refused(fullbloom("plan", "--items", "9", "--fpr", "0.1", "--needs", everything))


class Copies:
    """A filter that takes memory for every copy of a key."""

    def __init__(self):
        self.keys = []

    def __contains__(self, key):
        return key in self.keys

    def add(self, key):
        new = key not in self.keys
        self.keys.append(key)
        return new

    def remove(self, key):
        self.keys.remove(key)


def test_a_filter_that_keeps_copies_is_given_each_line_once():
    seen = Copies()
    assert keeps_copies(seen)
    assert add_new(["a", "a", "b"], seen) == [True, False, True]
    assert list(unique("abcab", seen)) == ["c"]
    assert seen.keys == ["a", "b", "c"]


@pytest.mark.parametrize("mode", ["--new-only", "--old-only", "--mark"])
def test_seen_gives_a_filter_that_keeps_copies_each_line_once(fullbloom, tmp_path, mode):
    options = ["seen", "-q", "--kind", "counting", "--expected", "100", "--state", tmp_path / "s", mode]
    data = b"a\r\nc\na\nc\r\na"
    first, later = {
        "--new-only": (b"a\r\nc\n", b""),
        "--old-only": (b"a\nc\r\na", data),
        "--mark": (
            b"new\ta\r\nnew\tc\nold\ta\nold\tc\r\nold\ta",
            b"old\ta\r\nold\tc\nold\ta\nold\tc\r\nold\ta",
        ),
    }[mode]
    for expected in (first, later, later):
        assert fullbloom(*options, stdin=data, check=0).stdout == expected
    seen = package.open(tmp_path / "s")
    assert [seen.count(key) for key in "ac"] == [1, 1]
