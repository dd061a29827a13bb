"""Exit codes, output and help of every command."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import random
import subprocess

import pytest
from support import LONG, write_parquet

import fullbloom as package
from fullbloom import _core
from fullbloom.cli.completion import list_commands
from fullbloom.cli.filters.overfull import is_overfull
from fullbloom.cli.parser import COMMANDS, build_parser
from fullbloom.plan import choices


@pytest.fixture
def built(fullbloom, tmp_path):
    path = tmp_path / "f.bloom"
    fullbloom("build", path, "--capacity", "1000", "--fpr", "1e-9", stdin=b"a\nb\nc\n", check=0)
    return path


def test_check_has_the_exit_codes_of_grep(fullbloom, refused, built):
    assert fullbloom("check", built, stdin=b"a\nb\n", check=0).stdout == b"a\nb\n"
    assert fullbloom("check", built, stdin=b"a\nx\n", check=1).stdout == b"a\n"
    assert fullbloom("check", built, "--absent", stdin=b"a\nx\n", check=1).stdout == b"x\n"
    assert fullbloom("check", built, "--count", stdin=b"a\nx\nb\n", check=1).stdout == b"2\n"
    assert fullbloom("check", built, "-q", stdin=b"a\nx\n", check=1).stdout == b""
    assert (
        json.loads(fullbloom("check", built, "--count", "--json", stdin=b"a\nx\n", check=1).stdout)["absent"]
        == 1
    )
    assert fullbloom("check", built, stdin=b"", check=0).stdout == b""
    refused(fullbloom("check", built, "/nonexistent/file"))


def test_build_writes_the_bytes_of_python(fullbloom, tmp_path):
    (tmp_path / "in").write_bytes(b"a\nb\r\nc")
    text = fullbloom("build", "out", "in", "--fpr", "0.001", cwd=tmp_path, check=0).stdout.decode()
    assert "3 lines read" in text
    found = package.open(tmp_path / "out", verify="full")
    assert isinstance(found, package.BloomFilter)
    assert (found.capacity, found.target_fpr) == (3, 0.001)
    assert all(key in found for key in "abc")
    piped = json.loads(fullbloom("build", "grown", "--json", cwd=tmp_path, stdin=b"a\nb\n", check=0).stdout)
    assert (piped["class"], piped["num_added"]) == ("ScalableBloomFilter", 2)


def test_info_shows_the_parameters_of_a_file(fullbloom, refused, built):
    facts = json.loads(fullbloom("info", built, "--json", check=0).stdout)
    assert (facts["capacity"], facts["num_added"], facts["target_fpr"]) == (1000, 3, 1e-9)
    damaged = bytearray(built.read_bytes())
    damaged[-1] ^= 4
    built.write_bytes(damaged)
    refused(fullbloom("info", "--verify", "full", built))


def test_merge_warns_if_the_result_is_overfull(fullbloom, refused, tmp_path):
    for name in "ab":
        text = "".join(f"{name}{i}\n" for i in range(1000)).encode()
        fullbloom("build", tmp_path / name, "--capacity", "1000", stdin=text, check=0)
    done = fullbloom("merge", tmp_path / "m", tmp_path / "a", tmp_path / "b", check=0)
    assert b"exceeds its capacity" in done.stderr
    fullbloom("check", tmp_path / "m", "-q", stdin=b"a1\nb1\n", check=0)
    fullbloom("build", tmp_path / "c", "--capacity", "5", stdin=b"x\n", check=0)
    assert "num_bits" in refused(fullbloom("merge", tmp_path / "m", tmp_path / "a", tmp_path / "c"))


@pytest.mark.parametrize(
    ("kind", "keys", "said"),
    # A table of 1,024 slots has room for more than 700 lines at the rate.
    [("bloom", 1050, b", not 0.01"), ("quotient", 708, b"still within 0.01")],
)
def test_a_rate_is_reported_above_the_target_only_if_it_is(fullbloom, tmp_path, kind, keys, said):
    capacity = 1000 if kind == "bloom" else 700
    for name, numbers in (("a", range(600)), ("b", range(600, keys))):
        text = "".join(f"{i}\n" for i in numbers).encode()
        fullbloom("build", tmp_path / name, "--kind", kind, "--capacity", capacity, stdin=text, check=0)
    done = fullbloom("merge", tmp_path / "m", tmp_path / "a", tmp_path / "b", check=0)
    assert b"exceeds its capacity" in done.stderr
    assert said in done.stderr
    merged = package.open(tmp_path / "m")
    assert merged.num_added > capacity
    assert (kind == "bloom") == (merged.fpr() > 0.01) == is_overfull(merged)


@pytest.mark.parametrize(
    ("options", "about"),
    [((), True), (("--capacity", "50000"), True), (("--kind", "cuckoo", "--capacity", "50000"), False)],
)
def test_an_estimated_number_of_lines_is_labelled_as_an_estimate(fullbloom, tmp_path, options, about):
    # A file is read as one block, of which a table finds no line before it is added; of a pipe it may.
    (tmp_path / "in").write_bytes(b"".join(b"%d\n" % i for i in range(50_000)))
    done = fullbloom("build", tmp_path / "f", *options, tmp_path / "in", check=0).stdout
    assert (b"50,000 lines read, about 49,9" in done) == about
    few = fullbloom("build", tmp_path / "f", *options, stdin=b"a\nb\na\n", check=0).stdout
    assert b"about" not in few


@pytest.mark.parametrize("fpr", [0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-9])
@pytest.mark.parametrize("items", [10_000, 10_000_000])
def test_plan_recommends_the_layout_that_auto_picks(items, fpr):
    best = choices(items, fpr)[0]
    assert best.recommended
    assert best.layout == _core.layout_for(items, fpr)
    assert (best.num_bits, best.num_hashes) == _core.size_for(best.layout, items, fpr)


def test_plan_takes_the_rate_that_costs_least(fullbloom, refused):
    costs = ["--cost-of-false-positive", "1e-6", "--cost-of-byte", "1e-8"]
    done = fullbloom("plan", "--items", "10M", *costs, "--absent-lookups", "1.5G", "--json", check=0)
    facts = json.loads(done.stdout)
    best = choices(10**7, cost_of_false_positive=1e-6, cost_of_byte=1e-8, absent_lookups=1.5e9)[0]
    assert facts["choices"][0]["fpr"] == best.fpr
    assert facts["asked"]["absent_lookups"] == 1_500_000_000
    assert "costs choose the rate" in refused(fullbloom("plan", "--items", "1M", *costs, "--fpr", "0.1"))
    assert "positive number" in refused(fullbloom("plan", "--items", "1M", "--cost-of-byte=-1"))


def test_plan_marks_filters_that_do_not_fit(fullbloom, refused):
    done = fullbloom("plan", "--items", "1e6", "--fpr", "1e-3", "--memory", "1M", check=1)
    assert done.stdout.count(b"too large") == 5
    rows = json.loads(fullbloom("plan", "--fpr", "1e-3", "--memory", "1M", "--json", check=0).stdout)[
        "choices"
    ]
    assert all(row["nbytes"] <= 1 << 20 and row["fpr"] <= 1e-3 for row in rows)
    assert "give --items, or both" in refused(fullbloom("plan", "--fpr", "0.1"))
    assert "give --items, or both" in refused(fullbloom("plan", "--memory", "1M"))


@pytest.mark.parametrize("text", ["1M", "1m", "1000K", "1e6", "1_000_000", "1000000", "0.001G"])
def test_counts_accept_suffixes_and_exponents(fullbloom, text):
    assert json.loads(fullbloom("plan", "--items", text, "--json", check=0).stdout)["asked"]["items"] == 10**6


@pytest.mark.parametrize("text", ["M", "1MM", "1X", "0M", "1.5", "0.0001K", "-1M", "1Mi", "infM", "nanK"])
def test_invalid_counts_are_refused(fullbloom, refused, text):
    assert text in refused(fullbloom("plan", f"--items={text}"))


@pytest.mark.parametrize("needs", [[], ["--needs", "remove"], ["--needs", "merge", "--universe", "10M"]])
def test_the_json_of_a_plan_is_complete(fullbloom, needs):
    result = json.loads(fullbloom("plan", "--items", "1M", "--json", *needs, check=0).stdout)
    assert (result["asked"]["items"], result["asked"]["fpr"], result["asked"]["memory"]) == (
        10**6,
        0.01,
        None,
    )
    assert result["asked"]["needs"] == needs[1:2]
    assert [row["recommended"] for row in result["choices"]].count(True) == 1
    for row in result["choices"]:
        instance = eval(row["python"], vars(package).copy())  # what a plan says is to be pasted
        assert (type(instance).__name__, instance.nbytes) == (row["class"], row["nbytes"])
        assert (getattr(instance, "layout", row["layout"]) == row["layout"]) or row["layout"] == "auto"
        assert set(needs[1:2]) <= set(row["capabilities"])
        assert row["num_hashes"] in {None, getattr(instance, "num_hashes", None)}
        assert row["add_ns_per_key"] is None or row["add_ns_per_key"] > 0


@pytest.mark.parametrize(
    "options",
    [
        ["--items", "1e6", "--memory", "1G"],
        ["--items", "1e6", "--memory", "200G"],
        ["--fpr", "1e-15", "--memory", "1M"],
        ["--fpr", "1e-14", "--memory", "1G"],
        ["--items", "1000", "--memory", "700"],
    ],
)
def test_plan_shows_what_constructors_accept(fullbloom, options):
    rows = json.loads(fullbloom("plan", *options, "--json", check=0).stdout)["choices"]
    assert rows[0]["recommended"]
    for row in rows:
        assert row["fpr"] <= 0.5
        assert _core.size_for(row["layout"], row["items"], row["fpr"])[0] <= 1.01 * row["num_bits"] + 512


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (["--memory", "64", "--items", "1e9"], "raise memory or lower items"),
        (["--memory", "64", "--items", "1e9", "--needs", "remove"], "raise memory or lower items"),
        (["--memory", "1M", "--fpr", "1e-300"], "at least 1.0e-15 for any capacity"),
        (["--items", "1e6", "--fpr", "1e-14"], "at least 1.1e-13 for 1000000 items"),
        (["--memory", "256G", "--fpr", "0.01", "--needs", "parquet"], "lower memory"),
    ],
)
def test_plan_reports_that_no_filter_matches(fullbloom, refused, options, remedy):
    assert remedy in refused(fullbloom("plan", *options))


@pytest.mark.parametrize(
    "options", [["--memory", "256G", "--fpr", "0.01"], ["--items", "2e11", "--fpr", "0.01"]]
)
def test_plan_omits_filters_without_a_shape_and_says_so(fullbloom, options):
    done = fullbloom("plan", *options, check=0)
    assert b"left out: split (num_bits" in done.stdout
    facts = json.loads(fullbloom("plan", *options, "--json", check=0).stdout)
    assert {row["layout"] for row in facts["choices"]} == {"blocked", "classic", "partitioned", "two-block"}
    assert list(facts["left_out"]) == ["split"]


def test_needs_may_be_a_string():
    assert choices(1000, 0.01, needs="remove") == choices(1000, 0.01, needs={"remove"})
    assert [row.layout for row in choices(1000, 0.01, needs="parquet")] == ["split"]


@pytest.mark.parametrize(
    "options",
    [
        ["dedup"],
        ["dedup", "in"],
        ["dedup", "--memory", "64M"],
        ["seen"],
        ["build", "f"],
        ["build", "f", "in"],
    ],
)
def test_an_unreachable_rate_is_refused_as_it_was_written(fullbloom, refused, tmp_path, options):
    (tmp_path / "in").write_bytes(b"a\n")
    done = fullbloom(*options, "--fpr", "1e-300", stdin=b"a\n", cwd=tmp_path)
    assert "got 1e-300" in refused(done)
    assert done.stdout == b""


@pytest.mark.parametrize(
    "arguments",
    [
        *(["dedup", path] for path in ("/nonexistent/file", "/")),
        *(["dedup", "--fpr", fpr] for fpr in ("1.5", "nan", "0")),
        *(["dedup", "--expected", number] for number in ("0", "1e18", "some", "inf")),
        ["dedup", "--expected", "9", "--fpr", "1e-300"],
        ["dedup", "--memory", "many"],
        ["dedup", "--seed", "-1"],
        ["dedup", "--no-such-option"],
        ["build", "/nonexistent/dir/out"],
        ["check", "/dev/null"],
        ["info", "/"],
        ["seen", "--state", "/"],
        ["nothing"],
        [],
    ],
    ids=lambda arguments: " ".join(arguments) or "none",
)
def test_bad_input_is_one_line_and_exit_code_2(fullbloom, refused, arguments):
    refused(fullbloom(*arguments))


def test_quiet_prints_nothing(fullbloom, tmp_path):
    assert fullbloom("dedup", "--quiet", stdin=b"a\n", check=0).stderr == b""
    done = fullbloom("build", "-q", tmp_path / "f", "--capacity", "1", stdin=b"a\nb\n", check=0)
    assert done.stdout + done.stderr == b""


def test_every_command_has_help_with_an_example(fullbloom):
    for name in COMMANDS:
        text = fullbloom(name, "--help", check=0).stdout.decode()
        assert "example:" in text
        assert f"fullbloom {name}" in text.split("example:")[1]


# Those of a service or server that runs are tried on one: tests/service, tests/engines.
OF_SERVERS = {"backup", "restore", "token", "redis-load", "redis-save", "redis-info"}


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in OF_SERVERS])
def test_the_example_of_every_help_runs(fullbloom, program, tmp_path, name):
    for text in ("words.txt", "urls.txt", "typed.txt", "app.log"):
        (tmp_path / text).write_bytes(b"a\nb\na\n")
    for part in ("words", "monday", "tuesday"):
        fullbloom("build", f"{part}.bloom", "words.txt", cwd=tmp_path, check=0)
    (tmp_path / "others.txt").write_bytes(b"c\nd\n")
    (tmp_path / "seen.spark").write_bytes(package.ForeignFilter("spark", 9).to_foreign())
    (tmp_path / "keys.txt").write_bytes(b"7\n")
    (tmp_path / "data" / "of").mkdir(parents=True)
    write_parquet(tmp_path / "data" / "of" / "users.parquet")
    for part in ("old", "new"):
        words = ["--kind", "cascade", f"{part}.cascade", "words.txt", "--except", "others.txt"]
        fullbloom("build", *words, cwd=tmp_path, check=0)
    example = COMMANDS[name].EXAMPLE.replace("tail -F", "cat").replace("2G", "64M")
    # A service would run on.
    example = example.replace("fullbloom serve", "fullbloom serve --check")
    # The other machine is this one.
    example = example.replace("ssh host fullbloom", " ".join(program))
    script = f'set -o pipefail; fullbloom() {{ {" ".join(program)} "$@"; }}; {example}'
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, timeout=60)
    assert (done.returncode, b"fullbloom: " in done.stderr) == (0, False), done.stderr


def test_options_may_appear_between_files(fullbloom, refused, tmp_path):
    for name, text in (("a", b"a\n"), ("b", b"b\n"), ("-q", b"q\n")):
        (tmp_path / name).write_bytes(text)
    for arguments, out in (
        ("dedup a -q b", b"a\nb\n"),
        ("dedup a -q -- b -q", b"a\nb\nq\n"),
        ("dedup -q -- - a -q", b"in\na\nq\n"),
        ("build f -q --fpr 0.01 a", b""),
        ("check f --count -", b"0\n"),
        ("check f --absent a b", b"b\n"),
    ):
        assert fullbloom(*arguments.split(), cwd=tmp_path, stdin=b"in\n").stdout == out
    assert "--foo" in refused(fullbloom("dedup", "a", "--foo", "b", cwd=tmp_path))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_lists_every_command_and_option(fullbloom, shell):
    script = fullbloom("completion", shell, check=0).stdout.decode()
    found = {name: options for name, _, options in list_commands(build_parser())}
    assert tuple(found) == tuple(COMMANDS)
    for name, options in found.items():
        assert name in script
        for flag in (flag for option in options for flag in option.names):
            short = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
            assert (short if shell == "fish" else flag) in script


def test_the_version_needs_no_argparse(program):
    code = (
        "import sys; from fullbloom.cli import main; main(['--version']); sys.exit('argparse' in sys.modules)"
    )
    assert subprocess.run([program[0], "-c", code], capture_output=True, timeout=60).returncode == 0


@pytest.mark.parametrize("needs", [(), ("add",)], ids=["layouts", "structures"])
def test_plan_stays_within_the_given_memory(needs):
    sizes = [*range(64, 700), 17_777, 999_999]
    for memory in sizes if LONG else random.sample(sizes, 12):
        for given in ({"items": 100}, {"fpr": 0.01}, {"items": 14_000, "fpr": 0.01}):
            try:
                rows = choices(**given, memory=memory, needs=needs)
            except package.ParameterError:
                continue
            assert all(row.nbytes <= memory for row in rows if row.fits), memory


def parser_of(name):
    """Return the parser of one command."""
    (commands,) = (
        action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    return commands.choices[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_declared_option_is_a_field(name):
    declared = {action.dest for action in parser_of(name)._actions} - {"help"}
    fields = {field.name: field for field in dataclasses.fields(COMMANDS[name].OPTIONS)}
    assert declared <= set(fields)
    # A field that a command does not declare has a value for it, such as that of an option of others.
    undeclared = [fields[field].default for field in set(fields) - declared]
    assert dataclasses.MISSING not in undeclared


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_frozen_and_named_by_the_command(name):
    command = COMMANDS[name]
    assert command.OPTIONS.__dataclass_params__.frozen
    (parameter,) = inspect.signature(command.run).parameters.values()
    assert parameter.annotation == command.OPTIONS.__name__
