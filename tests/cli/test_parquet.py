"""``--select`` of Parquet and Arrow IPC: rows whose key is a column, a field, or several."""

from __future__ import annotations

import io
import json
import uuid

import pytest

import fullbloom as package

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

KINDS = {"parquet": "in.parquet", "file": "in.arrow", "stream": "in.ipc"}
ROWS = 80_000
IDS = [number % 60_000 if number % 1000 else None for number in range(ROWS)]
TABLE = pa.table(
    {
        "id": pa.array(IDS, pa.int32()),
        "name": [f"n{number % 7}" for number in range(ROWS)],
        "user": [{"key": f"u{number % 1000}", "n": number} for number in range(ROWS)],
        "tags": [["a", "b"]] * ROWS,
    }
)


def write_table(table, kind):
    out = io.BytesIO()
    if kind == "parquet":
        parquet.write_table(table, out, row_group_size=30_000)
    else:
        with (pa.ipc.new_file if kind == "file" else pa.ipc.new_stream)(out, table.schema) as writer:
            writer.write_table(table, max_chunksize=70_000)
    return out.getvalue()


def read(data, kind):
    source = io.BytesIO(data)
    if kind == "parquet":
        return parquet.read_table(source)
    return (pa.ipc.open_file if kind == "file" else pa.ipc.open_stream)(source).read_all()


def firsts(keys):
    seen = set()
    return [number for number, key in enumerate(keys) if key is None or not (key in seen or seen.add(key))]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("columns")
    for kind, name in KINDS.items():
        (folder / name).write_bytes(write_table(TABLE, kind))
    return folder


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [["--threads", "2"], ["--state", "s"], ["--keep", "last"]])
def test_dedup_keeps_rows_and_schema(fullbloom, inputs, tmp_path, kind, options):
    words = ["--select", "id", "-o", "out", "--dupes-output", "rest", *options, inputs / KINDS[kind]]
    done = fullbloom("dedup", "--json", *words, cwd=tmp_path, check=0)
    kept, rest = (read((tmp_path / name).read_bytes(), kind) for name in ("out", "rest"))
    keep = firsts(IDS)
    if "last" in options:
        keep = sorted(ROWS - 1 - number for number in firsts(IDS[::-1]))
    assert kept.equals(TABLE.take(keep))
    assert kept.num_rows + rest.num_rows == ROWS
    facts = json.loads(done.stdout)
    assert (facts["lines_in"], facts["lines_out"]) == (ROWS, len(keep))
    if "--state" in options:
        again = fullbloom("dedup", "--quiet", *words, cwd=tmp_path, check=0)
        assert again.stdout == b""
        assert read((tmp_path / "out").read_bytes(), kind).equals(TABLE.filter(TABLE["id"].is_null()))


@pytest.mark.parametrize(
    ("select", "keys"),
    [
        (["user.key"], [row["key"] for row in TABLE["user"].to_pylist()]),
        (
            ["2", "--select", "user.key"],
            [
                (n, u["key"])
                for n, u in zip(TABLE["name"].to_pylist(), TABLE["user"].to_pylist(), strict=True)
            ],
        ),
        (["user"], [tuple(row.values()) for row in TABLE["user"].to_pylist()]),
        (["id", "--key-type", "str"], [None if n is None else str(n) for n in IDS]),
        (["id", "--key-type", "float"], [None if n is None else float(n) for n in IDS]),
    ],
)
def test_a_filter_built_by_the_command_finds_its_keys_in_python(fullbloom, inputs, tmp_path, select, keys):
    for command in (["build", "f", "--fpr", "1e-9"], ["insert", "f"]):
        fullbloom(*command, "--select", *select, inputs / "in.parquet", cwd=tmp_path, check=0)
        found = package.open(tmp_path / "f")
        wanted = {key for key in keys if key is not None}
        assert all(key in found for key in list(wanted)[:1000])
        assert found.num_added == len(wanted)
        assert found.capacity < 2 * ROWS


@pytest.mark.parametrize("kind", KINDS)
def test_check_prints_rows_that_are_found_or_absent(fullbloom, inputs, tmp_path, kind):
    half = write_table(TABLE.filter(pa.compute.less(TABLE["id"], 1000)), "parquet")
    (tmp_path / "half.parquet").write_bytes(half)
    fullbloom("build", "f", "--fpr", "1e-9", "--select", "id", "half.parquet", cwd=tmp_path, check=0)
    words = ["check", "f", "--select", "id", inputs / KINDS[kind]]
    known = [number for number, key in enumerate(IDS) if key is not None and key < 1000]
    assert read(fullbloom(*words, cwd=tmp_path, check=1).stdout, kind).equals(TABLE.take(known))
    absent = fullbloom(*words, "--absent", cwd=tmp_path, check=1).stdout
    assert read(absent, kind).num_rows == ROWS - len(known)
    assert fullbloom(*words, "--count", cwd=tmp_path, check=1).stdout == b"%d\n" % len(known)
    assert fullbloom(*words, "--quiet", cwd=tmp_path, check=1).stdout == b""


def test_seen_writes_new_rows(fullbloom, inputs, tmp_path):
    words = ["seen", "--quiet", "--select", "id", "--state", "s", inputs / "in.parquet"]
    assert read(fullbloom(*words, cwd=tmp_path, check=0).stdout, "parquet").equals(TABLE.take(firsts(IDS)))
    again = fullbloom(*words, "--old-only", cwd=tmp_path, check=0).stdout
    assert read(again, "parquet").equals(TABLE.filter(TABLE["id"].is_valid()))


def test_an_arrow_stream_is_read_from_a_pipe(fullbloom, inputs):
    words = ["dedup", "--quiet", "--select", "name", "--format", "arrow"]
    done = fullbloom(*words, stdin=(inputs / "in.ipc").read_bytes(), check=0)
    assert read(done.stdout, "stream").equals(TABLE.take(firsts(TABLE["name"].to_pylist())))


def test_uuids_hash_as_their_16_bytes(fullbloom, tmp_path):
    ids = [uuid.UUID(int=2**100 + number) for number in range(4)]
    table = pa.table(
        {"u": [str(one) for one in ids], "b": pa.array([one.bytes for one in ids], pa.binary(16))}
    )
    (tmp_path / "in.parquet").write_bytes(write_table(table, "parquet"))
    for column in "ub":
        words = ["--select", column, "--key-type", "uuid", "in.parquet"]
        fullbloom("build", "f", *words, cwd=tmp_path, check=0)
        assert all(one in package.open(tmp_path / "f") for one in ids)


def test_an_empty_table_is_written_as_an_empty_table(fullbloom, tmp_path):
    for kind, name in KINDS.items():
        (tmp_path / name).write_bytes(write_table(TABLE.slice(0, 0), kind))
        done = fullbloom("dedup", "--quiet", "--select", "id", name, cwd=tmp_path, check=0)
        assert read(done.stdout, kind).equals(TABLE.slice(0, 0))
        fullbloom("build", "f", "--select", "id", name, cwd=tmp_path, check=0)


REFUSED = {
    "absent": (["--select", "nope"], "--select 'nope' is not in the schema; it has id, name, user, tags"),
    "absent field": (["--select", "user.x"], "'user.x' is not in the schema; it has user.key, user.n"),
    "field of none": (["--select", "id.x"], "'id.x' is not in the schema"),
    "number": (["--select", "5"], "'5' is not in the schema"),
    "nested": (["--select", "tags"], "--select tags: "),
    "type": (["--select", "name", "--key-type", "int"], "column 'name' is not of type int: "),
    "uuid": (["--select", "name", "--key-type", "uuid"], "column 'name' is not of type uuid: "),
    "delimiter": (["--select", "id", "--delimiter", ";"], "--delimiter is for CSV"),
}


@pytest.mark.parametrize("command", [["dedup", "-o", "out"], ["build", "out"]])
@pytest.mark.parametrize("fault", REFUSED)
def test_a_column_that_cannot_be_a_key_is_refused_in_one_line(
    fullbloom, refused, inputs, tmp_path, command, fault
):
    options, result = REFUSED[fault]
    done = fullbloom(*command, *options, inputs / "in.parquet", cwd=tmp_path)
    assert result in refused(done)
    assert done.stdout == b""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99999])
def test_a_truncated_file_is_refused_in_one_line_and_leaves_no_output(
    fullbloom, refused, inputs, tmp_path, kind, share
):
    data = (inputs / KINDS[kind]).read_bytes()
    name = KINDS[kind]
    for command in (["dedup", "-o", "out"], ["build", "out"]):
        (tmp_path / name).write_bytes(data[: int(len(data) * share)])
        if kind == "stream" and share == 0.99999:
            (tmp_path / name).write_bytes(data[:-500])
        result = refused(fullbloom(*command, "--select", "id", name, cwd=tmp_path))
        assert f"{name}: is not a complete" in result
        assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "result"),
    [
        (["dedup", "--verify"], "--verify compares the text of keys, and parquet is not text"),
        (["dedup", "--memory", "500M"], "--memory does not limit pyarrow's memory"),
        (["dedup", "--state", "s"], "--state needs --output FILE"),
        (["seen", "--mark"], "--mark puts a word in front of lines"),
        (["dedup", "x.csv"], "the files are csv and parquet; give files of one format"),
    ],
)
def test_options_for_text_formats_are_refused(fullbloom, refused, inputs, tmp_path, words, result):
    (tmp_path / "x.csv").write_bytes(b"id\n1\n")
    assert result in refused(fullbloom(*words, "--select", "id", inputs / "in.parquet", cwd=tmp_path))


def test_files_with_different_columns_are_refused_if_rows_are_written(fullbloom, refused, tmp_path):
    for name, columns in (("a.parquet", {"id": [1, 2]}), ("b.parquet", {"n": ["x"], "id": [2]})):
        (tmp_path / name).write_bytes(write_table(pa.table(columns), "parquet"))
    result = refused(fullbloom("dedup", "--select", "id", "a.parquet", "b.parquet", cwd=tmp_path))
    assert "b.parquet: has other columns than a.parquet" in result
    fullbloom("build", "f", "--select", "id", "a.parquet", "b.parquet", cwd=tmp_path, check=0)
    assert package.open(tmp_path / "f").num_added == 2


def test_a_missing_pyarrow_is_reported_with_the_extra_to_install(inputs, tmp_path):
    import subprocess
    import sys

    code = "import sys; sys.modules['pyarrow'] = None; from fullbloom.cli import main; main(sys.argv[1:])"
    words = [sys.executable, "-c", code, "dedup", "--select", "id", str(inputs / "in.parquet")]
    done = subprocess.run(words, capture_output=True, cwd=tmp_path, timeout=60)
    assert b"fullbloom[arrow]" in done.stderr
    assert b"Traceback" not in done.stderr
