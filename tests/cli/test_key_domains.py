"""Guarantee: lines looked up in a filter of numbers give one line on stderr that names ``--key-type``."""

from __future__ import annotations

import json

import pytest

import fullbloom as package

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

IDS = range(5000)
LINES = "".join(f"{number}\n" for number in IDS).encode()
CSV = b"id,name\n" + b"".join(b"%d,n\n" % number for number in IDS)
ABSENT = b"none\n" * 100_000


@pytest.fixture(scope="module", params=["parquet", "arrow", "csv"])
def numbers(request, fullbloom, tmp_path_factory):
    """A folder with a filter, built by the command line from a column of integers."""
    folder = tmp_path_factory.mktemp("numbers")
    table = pa.table({"id": pa.array(IDS, pa.int64())})
    if request.param == "parquet":
        parquet.write_table(table, folder / "in.parquet")
    elif request.param == "arrow":
        with pa.ipc.new_file(folder / "in.arrow", table.schema) as writer:
            writer.write_table(table)
    else:
        (folder / "in.csv").write_bytes(CSV)
    chosen = ["--select", "id", *(["--key-type", "int"] if request.param == "csv" else [])]
    built = ["build", "ids.bloom", *chosen, "--fpr", "1e-9", "--quiet", f"in.{request.param}"]
    assert fullbloom(*built, cwd=folder, check=0).stderr == b""
    return folder


def warned(done) -> None:
    said = done.stderr.decode().splitlines()
    assert len(said) == 1, said
    warning = "fullbloom: keys of type text were looked up in a filter that holds keys of type integer"
    assert said[0].startswith(warning)
    assert "--key-type int" in said[0]


@pytest.mark.parametrize("options", [[], ["--count"], ["--absent"], ["--threads", "2"]])
def test_a_lookup_of_lines_in_a_filter_of_numbers_warns_in_one_line(fullbloom, numbers, options):
    for lines in (LINES, LINES + ABSENT):  # one block, and several
        done = fullbloom("check", "ids.bloom", *options, stdin=lines, cwd=numbers, check=1)
        warned(done)
        assert done.stdout == {"--count": b"0\n", "--absent": lines}.get(options[0] if options else "", b"")


def test_a_lookup_of_a_text_column_warns_in_one_line(fullbloom, numbers):
    asked = ["check", "ids.bloom", "--select", "id", "--format", "csv"]
    warned(fullbloom(*asked, stdin=CSV, cwd=numbers, check=1))
    done = fullbloom(*asked, "--key-type", "int", stdin=CSV, cwd=numbers, check=0)
    assert (done.stdout, done.stderr) == (CSV, b"")


def test_quiet_silences_the_warning_and_keeps_the_code(fullbloom, numbers):
    done = fullbloom("check", "--quiet", "ids.bloom", stdin=LINES, cwd=numbers, check=1)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_lines_added_to_a_filter_of_numbers_warn_in_one_line(fullbloom, numbers, tmp_path):
    (tmp_path / "ids.bloom").write_bytes((numbers / "ids.bloom").read_bytes())
    done = fullbloom("insert", "ids.bloom", stdin=b"1\n2\n", cwd=tmp_path, check=0)
    said = [line for line in done.stderr.decode().splitlines() if "--key-type" in line]
    assert len(said) == 1, said
    assert "keys of type text were added to a filter that held keys of type integer only" in said[0]


def test_info_shows_the_types_of_keys(fullbloom, numbers, tmp_path):
    done = fullbloom("info", "ids.bloom", cwd=numbers, check=0)
    assert ["key_domains", "integer"] in [line.split() for line in done.stdout.decode().splitlines()]
    facts = json.loads(fullbloom("info", "--json", "ids.bloom", cwd=numbers, check=0).stdout)
    assert facts["key_domains"] == "integer"
    package.BloomFilter(10).save(tmp_path / "empty.bloom")
    facts = json.loads(fullbloom("info", "--json", "empty.bloom", cwd=tmp_path, check=0).stdout)
    assert facts["key_domains"] == "none"
