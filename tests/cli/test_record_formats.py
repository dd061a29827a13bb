from __future__ import annotations

import json

import pytest

import fullbloom as package


def test_a_quote_in_tsv_is_text(fullbloom, tmp_path):
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


def test_a_long_cell_on_one_line_is_no_open_quote(fullbloom, tmp_path):
    rows = b'id,text\n1,"%s"\n1,x\n' % (b"w," * (1 << 20))
    (tmp_path / "in.csv").write_bytes(rows)
    assert fullbloom("dedup", "--select", "id", tmp_path / "in.csv", check=0).stdout == rows[: -len(b"1,x\n")]


def test_long_records_stay_within_the_memory_that_was_given(fullbloom, tmp_path):
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


def test_a_null_is_no_key(fullbloom, tmp_path):
    rows = b'{"k": null}\n{"k": null}\n{"n": 1}\n'
    (tmp_path / "in.jsonl").write_bytes(rows)
    assert fullbloom("dedup", "--select", "k", tmp_path / "in.jsonl", check=0).stdout == rows


def test_json_texts_are_the_keys_of_lines(fullbloom, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"k": "schl\\u00fcssel"}\n{"k": 7}\n{"n": 0}\n')
    fullbloom("build", "f", "in.jsonl", "--select", "k", "--fpr", "1e-9", cwd=tmp_path, check=0)
    assert fullbloom("check", "f", stdin="schlüssel\n7\n".encode(), cwd=tmp_path, check=1).stdout == (
        "schlüssel\n".encode()
    )
    found = package.open(tmp_path / "f")
    assert 7 in found
    assert found.num_added == 2


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        (
            "in.jsonl",
            b'{"id": "a"}\n{"id": "\\ud83d"}\n',
            "line 2: the key has half of a surrogate pair, \\ud83d",
        ),
        ("in.csv", b"id,text\n1,a\n2,b\rc\n", "line 3: a carriage return within a field that is not quoted"),
    ],
)
def test_what_is_no_record_is_named_by_file_and_line(fullbloom, refused, tmp_path, name, text, told):
    (tmp_path / name).write_bytes(text)
    for command in (["dedup"], ["build", "f"]):
        assert f"{name}: {told}" in refused(fullbloom(*command, name, "--select", "id", cwd=tmp_path))


def test_half_pairs_and_carriage_returns_elsewhere_are_let_through(fullbloom, tmp_path):
    rows = b'{"id": "\\ud83d\\ude00", "n": "\\ud83d"}\n{"id": ["\\ud83d"]}\n'
    (tmp_path / "in.jsonl").write_bytes(rows)
    assert fullbloom("dedup", "--select", "id", tmp_path / "in.jsonl", check=0).stdout == rows
    for name, table in (("in.csv", b'id,t\r\n1,"a\rb"\r\n'), ("in.tsv", b"id\tt\r\n1\ta\rb\r\n")):
        (tmp_path / name).write_bytes(table)
        assert fullbloom("dedup", "--select", "id", tmp_path / name, check=0).stdout == table


@pytest.mark.parametrize(
    ("name", "head"), [("in.csv", b'"id",t\n'), ("in.csv", b"id,t\n"), ("in.tsv", b"id\tt\n")]
)
def test_a_byte_order_mark_is_no_part_of_the_first_cell(fullbloom, tmp_path, name, head):
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
