"""``--select`` in `check` and `seen`, of CSV, TSV and JSON lines: what is printed, counted and remembered."""

from __future__ import annotations

import json

import pytest

import fullbloom as package

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
def test_check_says_by_its_code_that_all_are_found(fullbloom, tmp_path, kind):
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
def test_check_leaves_out_what_is_no_record(fullbloom, refused, tmp_path, kind, bad):
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


def test_check_with_a_type_asks_for_that_type(fullbloom, tmp_path):
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
    told = [b"old\t" if number == 4 else b"new\t" for number in range(6)]
    header = b"mark\t" + HEADER[kind] if HEADER[kind] else b""
    assert marked == header + b"".join(mark + row for mark, row in zip(told, ROWS[kind], strict=True))


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
def test_a_state_of_lines_answers_to_records(fullbloom, tmp_path, words, kind):
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


def test_seen_of_records_is_renewed_by_old_ones(fullbloom, tmp_path):
    run = ["seen", "--quiet", "--select", "id", "--format", "jsonl", "--window", "1000", "--state", "s"]
    text = b'{"id": "x"}\n'
    assert fullbloom(*run, stdin=text, cwd=tmp_path, check=0).stdout == text
    for start in range(0, 8000, 800):
        others = b"".join(b'{"id": %d}\n' % number for number in range(start, start + 800))
        fullbloom(*run, stdin=others, cwd=tmp_path, check=0)
        assert fullbloom(*run, stdin=text, cwd=tmp_path, check=0).stdout == b"", start
