"""``--select``: several columns, types, delimiters, threads, the last of a key, and malformed records."""

from __future__ import annotations

import csv
import io
import json
import random
import sys
import uuid

import pytest

import fullbloom as package
from fullbloom import BloomFilter, _core

CSV = b"id;name;day\n7;ann;1\n 8;bob;2\n7;eve;3\n9;ann;1\n"
IDS = {"int": [7, 8, 9], "float": [7.0, 8.0, 9.0], "str": ["7", " 8", "9"], "auto": ["7", " 8", "9"]}


@pytest.mark.parametrize("kind", IDS)
def test_a_filter_built_by_the_command_finds_typed_keys(fullbloom, tmp_path, kind):
    (tmp_path / "in.csv").write_bytes(CSV)
    options = ["--select", "id", "--delimiter", ";", "--key-type", kind, "--fpr", "1e-9"]
    fullbloom("build", "f", "in.csv", *options, cwd=tmp_path, check=0)
    found = package.open(tmp_path / "f")
    for other, keys in IDS.items():
        same = other == kind or {other, kind} == {"str", "auto"}
        assert [key in found for key in keys] == [same] * 3
    assert found.num_added == 3


def test_a_filter_built_by_the_command_finds_the_values_of_a_column(fullbloom, tmp_path):
    numpy = pytest.importorskip("numpy")
    (tmp_path / "in.csv").write_bytes(CSV)
    options = ["--select", "1", "--delimiter", "semicolon", "--key-type", "int", "--fpr", "1e-9"]
    fullbloom("build", "f", "in.csv", *options, cwd=tmp_path, check=0)
    column = numpy.array([7, 8, 9, 10], dtype="int32")
    assert package.open(tmp_path / "f").contains_many(column).tolist() == [True, True, True, False]


def test_cells_are_converted_to_the_given_type(fullbloom, tmp_path):
    one = uuid.UUID(int=2**100 + 7)
    rows = ["u,b,n", f"{one},true,", f"{{{one.hex}}},False,{2**70}", f"urn:uuid:{one},TRUE,-{2**63}", ",,"]
    (tmp_path / "in.csv").write_text("\n".join(rows))
    for select, kind, keys in (
        ("u", "uuid", [one]),
        ("b", "bool", [True, False]),
        ("n", "int", [2**70, -(2**63)]),
    ):
        options = ["--select", select, "--key-type", kind, "--fpr", "1e-9"]
        fullbloom("build", "f", "in.csv", *options, cwd=tmp_path, check=0)
        found = package.open(tmp_path / "f")
        assert all(key in found for key in keys)
        assert found.num_added == len(keys)


def test_several_columns_are_keyed_as_a_tuple(fullbloom, tmp_path):
    (tmp_path / "in.csv").write_bytes(CSV)
    (tmp_path / "in.jsonl").write_text(
        '{"a": {"id": 7}, "n": "ann"}\n{"n": "bob", "a": {"id": 8.5}}\n{"n": 1}\n'
    )
    options = ["--fpr", "1e-9", "--select"]
    table = ["id", "--select", "name", "--delimiter", ";", "--key-type", "int", "--key-type", "str"]
    fullbloom("build", "f", "in.csv", *options, *table, cwd=tmp_path, check=0)
    found = package.open(tmp_path / "f")
    assert all(key in found for key in [(7, "ann"), (8, "bob"), (7, "eve"), (9, "ann")])
    assert ("ann", 7) not in found
    fullbloom("build", "f", "in.jsonl", *options, "a.id", "--select", "n", cwd=tmp_path, check=0)
    found = package.open(tmp_path / "f")
    assert [(7, "ann") in found, (8.5, "bob") in found, found.num_added] == [True, True, 2]
    done = fullbloom(
        "dedup", "in.csv", *table[3:5], "--select", "day", "--select", "name", cwd=tmp_path, check=0
    )
    assert done.stdout == CSV.replace(b"9;ann;1\n", b"")


def table_of(draw, rows):
    """CSV with all that it may have, and each row with its bytes."""
    text, keyed = [], []
    for number in range(rows):
        cells = [str(draw.randrange(rows // 2)), draw.choice(["", "x", "a b", "né"]), str(number)]
        cells.insert(1, "".join(draw.choice('ab,"\n\r') for _ in range(draw.randrange(12))))
        out = io.StringIO(newline="")
        quoting = csv.QUOTE_ALL if "\r" in cells[1] else csv.QUOTE_MINIMAL
        csv.writer(out, lineterminator=draw.choice(["\n", "\r\n"]), quoting=quoting).writerow(cells)
        text.append(out.getvalue().encode())
        keyed.append((cells[0], cells[1]))
    return text, keyed


@pytest.mark.long
@pytest.mark.parametrize("options", [[], ["--threads", "2"], ["--threads", "3", "--verify"]])
@pytest.mark.parametrize("keep", ["first", "last"])
def test_a_large_table_is_read_as_python_reads_it(fullbloom, tmp_path, options, keep):
    if keep == "last" and "--verify" in options:
        options = options[:2]
    raws, keyed = table_of(random.Random(len(options)), 30_000)
    header = b'id,"a ""quoted"" name",c,d\n'
    (tmp_path / "in.csv").write_bytes(header + b"".join(raws))
    assert [tuple(row[:2]) for row in csv.reader(io.StringIO(b"".join(raws).decode(), newline=""))] == keyed
    for selects, keys in ((["id"], [key for key, _ in keyed]), (["1", 'a "quoted" name'], keyed)):
        order = range(len(raws)) if keep == "first" else reversed(range(len(raws)))
        seen, kept = set(), []
        for place in order:
            if keys[place] not in seen:
                seen.add(keys[place])
                kept.append(place)
        words = [word for select in selects for word in ("--select", select)]
        words += ["--seed", "1", "--keep", keep, *options]
        done = fullbloom("dedup", *words, "in.csv", cwd=tmp_path, check=0)
        assert done.stdout == header + b"".join(raws[place] for place in sorted(kept))


@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_last_of_equal_lines_is_kept(fullbloom, lines, tmp_path, threads):
    (tmp_path / "in").write_bytes(lines + b"\n")
    rest = lines.split(b"\n")
    places = {line: place for place, line in enumerate(rest)}
    kept = b"".join(rest[place] + b"\n" for place in sorted(places.values()))
    done = fullbloom(
        "dedup", "--seed", 1, "--keep", "last", "--threads", threads, "in", cwd=tmp_path, check=0
    )
    assert done.stdout == kept


def test_plain_lines_on_two_threads(fullbloom, lines, exact):
    assert fullbloom("dedup", "--seed", 1, "--threads", "2", stdin=lines, check=0).stdout == exact(lines)


def value_of(draw, depth=0):
    kind = draw.randrange(9 if depth < 3 else 6)
    if kind < 2:
        return "".join(
            chr(draw.choice([34, 92, 10, 7, 127, 97, 233, 0x20AC, 0x1F600])) for _ in range(draw.randrange(5))
        )
    if kind == 2:
        return draw.choice([0, -1, 7, 2**53, -(2**63), 2**63, 10**30, -(10**25)])
    if kind == 3:
        return draw.choice([0.0, -0.0, 1.5, 1e16, 1e-5, -2.5e300, float("inf"), float("nan"), 0.1 + 0.2])
    if kind < 6:
        return draw.choice([True, False, None])
    if kind == 6:
        return [value_of(draw, depth + 1) for _ in range(draw.randrange(4))]
    return {
        draw.choice(["a", "b", "é", 'q"', "\x07"]): value_of(draw, depth + 1)
        for _ in range(draw.randrange(4))
    }


def test_json_values_match_the_keys_of_python():
    draw = random.Random(11)
    for _ in range(2_000):
        value = value_of(draw)
        line = json.dumps({"x": [1], "k": value}, ensure_ascii=draw.random() < 0.5, indent=None).encode()
        found = BloomFilter(10, 1e-12)
        read = _core.Selection.objects(found, ["k"], ["auto"]).read(line)
        assert read.fault() is None, line
        read.add(found)
        if value is None:
            assert (read.without_key, found.num_added) == (1, 0)
            continue
        plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
        assert (value if plain else (json.dumps(value, sort_keys=True),)) in found, line


FAULTS = {
    "open quote": ("in.csv", b'id,t\n1,a\n2,"b\n3,c\n', "line 3: a quoted field is not closed", 2),
    "return": ("in.csv", b"id,t\n1,a\n2,b\rc\n3,c\n", "line 3: a carriage return", 2),
    "short": ("in.csv", b"t,id\na,1\nb\nc,3\n", "line 3: the row has 1 cell, and the key is in column 2", 2),
    "short tsv": ("in.tsv", b"t\tid\na\t1\nb\nc\t3\n", "line 3: the row has 1 cell", 2),
    "array": ("in.jsonl", b'{"id": 1}\n{"id": 2}\n[3]\n{"id": 4}\n', "line 3 is an array, not an object", 3),
    "scalar": ("in.jsonl", b'{"id": 1}\n"id"\n', "line 2 is a text, not an object", 1),
    "cut off": (
        "in.jsonl",
        b'{"id": 1}\n{"id": 2, "t": "x',
        "line 2 is not JSON: it is cut off at byte 18",
        1,
    ),
    "encoding": ("in.jsonl", b'{"id": 1}\n{"id": "\xe9"}\n', "line 2 is not JSON: no UTF-8 at byte 9", 1),
}
TABLES = {
    "absent": ("in.csv", b"a,b\n1,2\n", "'id' is not in the header; it has a, b"),
    "twice": ("in.csv", b"id,b,id\n1,2,3\n", "'id' is 2 times in the header, in columns 1, 3"),
    "wide": ("in.csv", "id,b\n1,2\n".encode("utf-16"), "line 1: the text is UTF-16"),
    "wide json": ("in.jsonl", '{"id": 1}\n'.encode("utf-16"), "line 1: the text is UTF-16"),
    "open header": ("in.csv", b'id,"b\n1,2\n', "line 1: a quoted field is not closed"),
}


@pytest.mark.parametrize(
    "command", [["dedup", "-o", "out"], ["dedup", "-o", "out", "--threads", "2"], ["build", "out"]]
)
@pytest.mark.parametrize("fault", [*FAULTS, *TABLES])
def test_malformed_records_are_refused_with_file_and_line(fullbloom, refused, tmp_path, command, fault):
    name, data, result, *_ = {**FAULTS, **TABLES}[fault]
    (tmp_path / name).write_bytes(data)
    assert f"{name}: " in (text := refused(fullbloom(*command, "--select", "id", name, cwd=tmp_path)))
    assert result in text
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("fault", FAULTS)
def test_malformed_records_are_skipped_and_counted(fullbloom, tmp_path, fault):
    name, data, result, left = FAULTS[fault]
    (tmp_path / name).write_bytes(data)
    words = ["--select", "id", "--skip-bad", name]
    done = fullbloom("dedup", "--json", "-o", "out", *words, cwd=tmp_path, check=0)
    facts = json.loads(done.stdout)
    assert (facts["bad"], facts["lines_out"], facts["lines_in"]) == (1, left, left)
    assert result in done.stderr.decode()
    rows = data.split(b"\n")
    del rows[left if name == "in.jsonl" and fault != "array" else 2]
    assert (tmp_path / "out").read_bytes().split(b"\n") == rows + [b""] * (fault == "cut off")
    done = fullbloom("build", "f", *words, cwd=tmp_path, check=0)
    assert b"1 record left out" in done.stderr
    assert package.open(tmp_path / "f").num_added == left


def test_an_unclosed_quote_in_a_large_table_loses_one_row(fullbloom, tmp_path):
    rows = [b"%d,abcdefgh\n" % i for i in range(200_000)]
    (tmp_path / "in.csv").write_bytes(b"id,t\n" + b"".join(rows[:9]) + b'9,"open\n' + b"".join(rows[9:]))
    done = fullbloom("dedup", "--seed", 1, "--select", "id", "--skip-bad", "in.csv", cwd=tmp_path, check=0)
    assert done.stdout == b"id,t\n" + b"".join(rows)


@pytest.mark.parametrize(
    ("kind", "cell", "result"),
    [
        ("int", "1.5", '"1.5" is not a valid int'),
        ("uuid", "12", "not a valid uuid"),
        ("bool", "yes", "not a valid bool"),
        ("float", "x", "not a valid float"),
    ],
)
def test_a_key_of_another_type_is_named(fullbloom, refused, tmp_path, kind, cell, result):
    (tmp_path / "in.csv").write_text(f"id\n\n{cell}\n")
    done = fullbloom("dedup", "--select", "id", "--key-type", kind, "in.csv", cwd=tmp_path)
    text = refused(done)
    assert "in.csv: line 3: " in text
    assert result in text


def test_several_tables_share_one_header_and_may_reorder_columns(fullbloom, tmp_path):
    (tmp_path / "a.csv").write_bytes(b"id,n\n1,a\n2,b")
    (tmp_path / "b.csv").write_bytes(b"n,id\na,2\nb,3")
    done = fullbloom("dedup", "--select", "id", "a.csv", "b.csv", cwd=tmp_path, check=0)
    assert done.stdout == b"id,n\n1,a\n2,b\nb,3"


@pytest.mark.parametrize(
    ("words", "result"),
    [
        (["--keep", "last", "--state", "s"], "drop --state"),
        (["--keep", "last", "--verify"], "drop --verify"),
        (["--keep", "last", "-"], "reads its input twice"),
        (["--delimiter", ";"], "add --select"),
        (["--select", "a", "--delimiter", "ab"], "is not a delimiter"),
        (["--select", "a", "--key-type", "int", "--key-type", "str"], "once for each of 1"),
        (["--select", "a,b", "in.csv"], "give --select for each"),
    ],
)
def test_contradictory_options_are_refused(fullbloom, refused, tmp_path, words, result):
    (tmp_path / "in.csv").write_bytes(b"a,b\n1,2\n")
    assert result in refused(fullbloom("dedup", *words, cwd=tmp_path))


def test_a_live_stream_is_processed_at_once_on_two_threads(program, tmp_path):
    import subprocess

    words = [*program, "dedup", "--quiet", "--select", "id", "--format", "jsonl", "--threads", "2"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path) as process:
        for number in range(3):
            process.stdin.write(b'{"id": %d}\n{"id": 0}\n' % number)
            process.stdin.flush()
            assert process.stdout.readline() == b'{"id": %d}\n' % number
        process.stdin.close()
        assert process.stdout.read() == b""


def test_output_is_compressed_by_its_suffix(fullbloom, lines, exact, tmp_path):
    for suffix in (".gz", ".zst"):
        if suffix == ".zst" and sys.version_info < (3, 14):
            pytest.importorskip("zstandard")
        words = ["--seed", 1, "-o", f"kept{suffix}", "--dupes-output", f"dropped{suffix}"]
        fullbloom("dedup", *words, stdin=lines, cwd=tmp_path, check=0)
        assert (tmp_path / f"kept{suffix}").stat().st_size < len(exact(lines)) // 2
        assert fullbloom("dedup", "--seed", 1, f"kept{suffix}", cwd=tmp_path, check=0).stdout == exact(lines)
        assert (tmp_path / f"dropped{suffix}").stat().st_size > 0
    first = (tmp_path / "kept.gz").read_bytes()
    assert first[:4] == b"\x1f\x8b\x08\x00"
    assert first[4:8] == bytes(4)
