"""``--select`` in `check` and `seen`: CSV, TSV and JSON lines, with their quotes, types and nulls."""

from __future__ import annotations

import json
import threading

import pytest

import fullbloom as package
from fullbloom.cli.io.ahead import Ahead

#: Six records with the keys a, b, "c\nd", none, a, e; the third has a newline within where the format can.
ROWS = {
    "csv": [b"a,1\n", b"b,2\n", b'"c\nd",3\n', b"\n", b"a,4\n", b"e,5\n"],
    "tsv": [b"a\t1\n", b"b\t2\n", b"c d\t3\n", b"\n", b"a\t4\n", b"e\t5\n"],
    "jsonl": [
        b'{"id": {"k": "%s"}, "n": %d}\n' % (key, number)
        for number, key in enumerate([b"a", b"b", b"c\\nd", b"", b"a", b"e"])
    ],
}
ROWS["jsonl"][3] = b'{"n": 3}\n'
HEADER = {"csv": b"id,n\n", "tsv": b"id\tn\n", "jsonl": b""}
SELECT = {"csv": "id", "tsv": "id", "jsonl": "id.k"}
KEYS = {kind: ["a", "b", "c d" if kind == "tsv" else "c\nd", "e"] for kind in ROWS}

each_kind = pytest.mark.parametrize("kind", ROWS)
threads = pytest.mark.parametrize("threads", [[], ["--threads", "2"]])


@pytest.fixture
def words(tmp_path):
    """Return the input of a format, written, and the options that read it."""

    def write(kind):
        (tmp_path / f"in.{kind}").write_bytes(HEADER[kind] + b"".join(ROWS[kind]))
        return ["--select", SELECT[kind], f"in.{kind}"]

    return write


def records(kind, *numbers):
    return HEADER[kind] + b"".join(ROWS[kind][number] for number in numbers)


@each_kind
@threads
def test_check_prints_records_found_and_absent(fullbloom, tmp_path, words, kind, threads):
    package.BloomFilter(100, 1e-9).save(tmp_path / "empty")
    some = package.BloomFilter(100, 1e-9)
    some.update([KEYS[kind][0], KEYS[kind][2]])
    some.save(tmp_path / "some")
    every = some.copy()
    every.update(KEYS[kind])
    every.save(tmp_path / "every")
    options = [*words(kind), *threads]
    for name, found, code in (("empty", [], 1), ("some", [0, 2, 4], 1), ("every", [0, 1, 2, 4, 5], 1)):
        absent = [number for number in range(6) if number not in found]
        run = ["check", name, *options]
        assert fullbloom(*run, cwd=tmp_path, check=code).stdout == records(kind, *found)
        assert fullbloom(*run, "--absent", cwd=tmp_path, check=code).stdout == records(kind, *absent)
        assert fullbloom(*run, "--count", cwd=tmp_path, check=code).stdout == b"%d\n" % len(found)
        done = fullbloom(*run, "--count", "--absent", cwd=tmp_path, check=code)
        assert done.stdout == b"%d\n" % len(absent)
        facts = json.loads(fullbloom(*run, "--json", "--count", cwd=tmp_path, check=code).stdout)
        assert (facts["lines"], facts["found"], facts["absent"]) == (6, len(found), len(absent))
        assert fullbloom(*run, "--quiet", cwd=tmp_path, check=code).stdout == b""


@each_kind
def test_check_exits_0_if_all_records_are_found(fullbloom, tmp_path, kind):
    whole = package.BloomFilter(100, 1e-9)
    whole.update(KEYS[kind])
    whole.save(tmp_path / "f")
    rows = HEADER[kind] + b"".join(row for number, row in enumerate(ROWS[kind]) if number != 3)
    run = ["check", "f", "--select", SELECT[kind], "--format", kind]
    assert fullbloom(*run, stdin=rows, cwd=tmp_path, check=0).stdout == rows
    assert fullbloom(*run, "--quiet", stdin=rows, cwd=tmp_path, check=0).stdout == b""
    assert fullbloom(*run, "--absent", stdin=rows, cwd=tmp_path, check=0).stdout == HEADER[kind]


@each_kind
@pytest.mark.parametrize("bad", [False, True])
def test_check_skips_malformed_records(fullbloom, refused, tmp_path, kind, bad):
    package.BloomFilter(100, 1e-9).save(tmp_path / "f")
    column = "n" if kind == "jsonl" else "2"
    (tmp_path / f"in.{kind}").write_bytes(records(kind, 0) + b"torn\n" + ROWS[kind][1])
    run = ["check", "f", "--select", column, f"in.{kind}", "--absent"]
    if not bad:
        line = 2 if kind == "jsonl" else 3
        assert f"in.{kind}: line {line}" in refused(fullbloom(*run, cwd=tmp_path))
        return
    done = fullbloom(*run, "--skip-bad", cwd=tmp_path, check=1)
    assert done.stdout == records(kind, 0, 1)
    assert b"1 record left out" in done.stderr


def test_check_looks_up_keys_of_the_given_type(fullbloom, tmp_path):
    numbers = package.BloomFilter(100, 1e-9)
    numbers.update([1, 3])
    numbers.save(tmp_path / "f")
    (tmp_path / "in.csv").write_bytes(b"id\n1\n2\n3\n")
    run = ["check", "f", "--select", "id", "in.csv"]
    assert fullbloom(*run, "--key-type", "int", cwd=tmp_path, check=1).stdout == b"id\n1\n3\n"
    assert fullbloom(*run, cwd=tmp_path, check=1).stdout == b"id\n"


@each_kind
@threads
def test_seen_marks_new_and_old(fullbloom, tmp_path, words, kind, threads):
    run = ["seen", "--quiet", *words(kind), *threads]
    assert fullbloom(*run, cwd=tmp_path, check=0).stdout == records(kind, 0, 1, 2, 3, 5)
    assert fullbloom(*run, "--old-only", cwd=tmp_path, check=0).stdout == records(kind, 4)
    marked = fullbloom(*run, "--mark", cwd=tmp_path, check=0).stdout
    result = [b"old\t" if number == 4 else b"new\t" for number in range(6)]
    header = b"mark\t" + HEADER[kind] if HEADER[kind] else b""
    assert marked == header + b"".join(mark + row for mark, row in zip(result, ROWS[kind], strict=True))


@each_kind
@pytest.mark.parametrize("mode", ["--new-only", "--old-only", "--mark"])
def test_seen_remembers_in_its_state(fullbloom, tmp_path, words, kind, mode):
    run = ["seen", "--state", "s", *words(kind), mode]
    facts = json.loads(fullbloom(*run, "--json", cwd=tmp_path, check=0).stderr)
    # A record without a key is always new.
    assert (facts["lines"], facts["new"], facts["old"]) == (6, 5, 1)
    assert all(key in package.open(tmp_path / "s") for key in KEYS[kind])
    again = fullbloom(*run, "--json", cwd=tmp_path, check=0)
    facts = json.loads(again.stderr)
    assert (facts["lines"], facts["new"], facts["old"], facts["filter_count"]) == (6, 1, 5, 4)
    if mode != "--mark":
        old = [0, 1, 2, 4, 5] if mode == "--old-only" else [3]
        assert again.stdout == records(kind, *old)


@each_kind
def test_a_state_built_from_lines_matches_records(fullbloom, tmp_path, words, kind):
    fullbloom("seen", "--quiet", "--state", "s", stdin=b"a\nb\n", cwd=tmp_path, check=0)
    done = fullbloom("seen", "--quiet", "--state", "s", *words(kind), cwd=tmp_path, check=0)
    assert done.stdout == records(kind, 2, 3, 5)


@pytest.mark.parametrize("window", ["3", "1h"])
@threads
def test_seen_forgets_keys_of_records_after_a_window(fullbloom, tmp_path, window, threads):
    keys = [*range(20), 19, 0]
    rows = b"n,id\n" + b"".join(b"%d,%d\n" % (number, key) for number, key in enumerate(keys))
    (tmp_path / "in.csv").write_bytes(rows)
    run = ["seen", "--quiet", "--select", "id", "--window", window, "--old-only", *threads, "in.csv"]
    done = fullbloom(*run, cwd=tmp_path, check=0)
    old = [b"20,19\n"] if window == "3" else [b"20,19\n", b"21,0\n"]
    assert done.stdout == b"n,id\n" + b"".join(old)


def test_repeated_records_renew_their_age_in_seen(fullbloom, tmp_path):
    run = ["seen", "--quiet", "--select", "id", "--format", "jsonl", "--window", "1000", "--state", "s"]
    text = b'{"id": "x"}\n'
    assert fullbloom(*run, stdin=text, cwd=tmp_path, check=0).stdout == text
    for start in range(0, 8000, 800):
        others = b"".join(b'{"id": %d}\n' % number for number in range(start, start + 800))
        fullbloom(*run, stdin=others, cwd=tmp_path, check=0)
        assert fullbloom(*run, stdin=text, cwd=tmp_path, check=0).stdout == b"", start


def test_a_quote_in_tsv_is_plain_text(fullbloom, tmp_path):
    rows = [b"id\ttext", b'1\tsays "hi', b'2\t"quoted start', b"3\tq", b"3\tq", b'"4\tq', b"", b""]
    (tmp_path / "in.tsv").write_bytes(b"\n".join(rows) + b"\n")
    done = fullbloom("dedup", "--select", "id", tmp_path / "in.tsv", check=0)
    assert done.stdout.split(b"\n") == [*rows[:4], *rows[5:], b""]


@pytest.mark.parametrize("rest", [1, 200_000])
def test_a_quote_that_never_ends_is_refused_with_its_line(fullbloom, refused, tmp_path, rest):
    (tmp_path / "in.csv").write_bytes(
        b'id,text\n1,"two\nlines"\n2,"stray\n' + b"3,q\n" * 2 + b"4,abcdef\n" * rest
    )
    text = refused(fullbloom("dedup", "--select", "id", "in.csv", "-o", "out", cwd=tmp_path))
    assert "in.csv: line 4: a quoted field is not closed" in text
    assert not (tmp_path / "out").exists()


def test_a_long_cell_on_one_line_is_not_an_open_quote(fullbloom, tmp_path):
    rows = b'id,text\n1,"%s"\n1,x\n' % (b"w," * (1 << 20))
    (tmp_path / "in.csv").write_bytes(rows)
    assert fullbloom("dedup", "--select", "id", tmp_path / "in.csv", check=0).stdout == rows[: -len(b"1,x\n")]


def test_long_records_stay_within_the_memory_limit(fullbloom, tmp_path):
    with (tmp_path / "in.csv").open("wb") as file:
        file.write(b"id,text\n" + b"".join(b"%d%s,x\n" % (i, b"y" * 20_000) for i in range(5_000)))
    options = ["--select", "id", "--memory", "64M", "--json", "--no-output"]
    facts = json.loads(fullbloom("dedup", *options, tmp_path / "in.csv", check=0).stdout)
    assert facts["lines_out"] == 5_000
    assert facts["peak_memory"] <= 1.05 * (64 << 20)


VALUES = [
    "1",
    '"1"',
    "1.0",
    "true",
    '"true"',
    "false",
    "0",
    '"null"',
    "[1]",
    '"[1]"',
    '["1"]',
    "[true]",
]
VALUES += [
    "[]",
    "{}",
    '"{}"',
    '{"a": 1, "b": 2}',
    '{"a": "1", "b": 2}',
    '""',
    "18446744073709551616",
    "[[1]]",
]


@pytest.mark.parametrize("options", [[], ["--verify", "--expected", "5", "--fpr", "0.5"], ["--state", "s"]])
def test_json_values_of_two_types_are_two_keys(fullbloom, tmp_path, options):
    rows = [f'{{"k": {value}, "n": 1}}\n' for value in VALUES]
    again = [f'{{"n": 2, "k": {value}}}\n' for value in [*VALUES, '{"b": 2, "a": 1}']]
    (tmp_path / "in.jsonl").write_text("".join(rows + again))
    done = fullbloom("dedup", "--select", "k", *options, "in.jsonl", cwd=tmp_path, check=0)
    assert done.stdout.decode().splitlines(keepends=True) == rows


def test_a_null_is_not_a_key(fullbloom, tmp_path):
    rows = b'{"k": null}\n{"k": null}\n{"n": 1}\n'
    (tmp_path / "in.jsonl").write_bytes(rows)
    assert fullbloom("dedup", "--select", "k", tmp_path / "in.jsonl", check=0).stdout == rows


def test_json_strings_match_the_keys_of_lines(fullbloom, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"k": "schl\\u00fcssel"}\n{"k": 7}\n{"n": 0}\n')
    fullbloom("build", "f", "in.jsonl", "--select", "k", "--fpr", "1e-9", cwd=tmp_path, check=0)
    assert fullbloom("check", "f", stdin="schlüssel\n7\n".encode(), cwd=tmp_path, check=1).stdout == (
        "schlüssel\n".encode()
    )
    found = package.open(tmp_path / "f")
    assert 7 in found
    assert found.num_added == 2


@pytest.mark.parametrize(
    ("name", "text", "result"),
    [
        (
            "in.jsonl",
            b'{"id": "a"}\n{"id": "\\ud83d"}\n',
            "line 2: the key has half of a surrogate pair, \\ud83d",
        ),
        ("in.csv", b"id,text\n1,a\n2,b\rc\n", "line 3: a carriage return within a field that is not quoted"),
    ],
)
def test_a_malformed_record_is_named_by_file_and_line(fullbloom, refused, tmp_path, name, text, result):
    (tmp_path / name).write_bytes(text)
    for command in (["dedup"], ["build", "f"]):
        assert f"{name}: {result}" in refused(fullbloom(*command, name, "--select", "id", cwd=tmp_path))


def test_lone_surrogates_and_carriage_returns_elsewhere_are_accepted(fullbloom, tmp_path):
    rows = b'{"id": "\\ud83d\\ude00", "n": "\\ud83d"}\n{"id": ["\\ud83d"]}\n'
    (tmp_path / "in.jsonl").write_bytes(rows)
    assert fullbloom("dedup", "--select", "id", tmp_path / "in.jsonl", check=0).stdout == rows
    for name, table in (("in.csv", b'id,t\r\n1,"a\rb"\r\n'), ("in.tsv", b"id\tt\r\n1\ta\rb\r\n")):
        (tmp_path / name).write_bytes(table)
        assert fullbloom("dedup", "--select", "id", tmp_path / name, check=0).stdout == table


@pytest.mark.parametrize(
    ("name", "head"), [("in.csv", b'"id",t\n'), ("in.csv", b"id,t\n"), ("in.tsv", b"id\tt\n")]
)
def test_a_byte_order_mark_is_not_part_of_the_first_cell(fullbloom, tmp_path, name, head):
    between = b"\t" if name == "in.tsv" else b","
    rows = b"\xef\xbb\xbf" + head + b"1" + between + b"x\n"
    (tmp_path / name).write_bytes(rows + b"1" + between + b"y\n")
    assert fullbloom("dedup", "--select", "id", tmp_path / name, check=0).stdout == rows
    (tmp_path / name).write_bytes(b"\xef\xbb\xbfa\na\n")
    done = fullbloom("dedup", "--select", "1", "--no-header", tmp_path / name, check=0)
    assert done.stdout == b"\xef\xbb\xbfa\n"


@pytest.mark.parametrize("command", [["dedup"], ["build", "f"]])
@pytest.mark.parametrize("option", [["--format", "csv"], ["--no-header"]])
def test_an_option_of_select_without_it_is_refused(fullbloom, refused, tmp_path, command, option):
    text = refused(fullbloom(*command, *option, stdin=b"a\n", cwd=tmp_path))
    assert option[0] in text
    assert "add --select" in text
    assert "empty" in refused(fullbloom(*command, "--select", "", stdin=b"a\n", cwd=tmp_path))


def test_threads_that_the_system_does_not_start_are_done_without(monkeypatch):
    started, start = [], threading.Thread.start

    def start_one(thread):
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_one)
    assert list(Ahead(str, 4, lambda: False)(range(100))) == list(map(str, range(100)))
    started[0].join(60)
    assert not started[0].is_alive()
