"""The filters of Parquet files, as pyarrow and DuckDB write them; DuckDB's own pruning is the judge."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile.limits import bounded

import fullbloom
from fullbloom import FormatError, IncompatibleFilters, KeyTypeError, ParameterError, ParameterTypeError
from fullbloom.formats import parquet, sources
from fullbloom.formats.conversion import convert
from fullbloom.formats.parquet import list_filters, probe_filters, probe_table, read_filters, unite_filters

ROWS = 6000
#: One column of each type that has filters, its values, and values that it does not have.
COLUMNS: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "long": (pa.int64(), [i * 7919 for i in range(ROWS)], [-1 - i for i in range(500)]),
    "int": (pa.int32(), list(range(ROWS)), list(range(10**6, 10**6 + 500))),
    "double": (pa.float64(), [i + 0.5 for i in range(ROWS)], [-0.25 - i for i in range(500)]),
    "float": (pa.float32(), [i + 0.5 for i in range(ROWS)], [-0.25 - i for i in range(500)]),
    "text": (pa.string(), [f"user {i} é" for i in range(ROWS)], [f"no {i}" for i in range(500)]),
    "blob": (pa.binary(), [struct.pack("<q", i) for i in range(ROWS)], [b"x" * i for i in range(9, 400)]),
    "fixed": (pa.binary(4), [struct.pack("<i", i) for i in range(ROWS)], [b"%04d" % i for i in range(500)]),
}


def write(path: Path, *, row_group_size: int = 2000, **options: Any) -> Path:
    table = pa.table({name: pa.array(values, of) for name, (of, values, _) in COLUMNS.items()})
    filters = {name: {"ndv": 2000, "fpp": 0.01} for name in COLUMNS}
    pq.write_table(table, path, row_group_size=row_group_size, bloom_filter_options=filters, **options)
    return path


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("parquet") / "all.parquet")


def test_every_filter_of_a_file_is_found(written: Path) -> None:
    places = list(list_filters(written))
    assert len(places) == 3 * len(COLUMNS)
    metadata = pq.ParquetFile(written).metadata
    for place in places:
        index = metadata.schema.names.index(place.column)
        chunk = metadata.row_group(place.row_group).column(index)
        assert (place.physical_type, place.offset) == (chunk.physical_type, chunk.bloom_filter_offset)
        assert (place.length, place.num_rows) == (chunk.bloom_filter_length, 2000)
    assert [place.row_group for place in list_filters(written, "int")] == [0, 1, 2]


@pytest.mark.parametrize("column", COLUMNS)
def test_keys_are_found_in_their_row_group_and_few_others(written: Path, column: str) -> None:
    _, values, absent = COLUMNS[column]
    for group, probe in enumerate(probe_filters(written, column, values)):
        found = np.array(probe.found)
        inside = found[group * 2000 : group * 2000 + 2000]
        assert inside.all()
        assert found.sum() - 2000 < 4000 * 0.02
    for probe in probe_filters(written, column, absent):
        assert sum(probe.found) <= 0.03 * len(absent)


@pytest.mark.parametrize("column", COLUMNS)
def test_our_filter_of_a_column_is_the_written_one(written: Path, column: str) -> None:
    values = COLUMNS[column][1]
    with written.open("rb") as file:
        for place, bloom in read_filters(written, column):
            assert bloom is not None
            own = fullbloom.ForeignFilter.with_shape("parquet", bloom.num_bits, 8, key_type=bloom.key_type)
            own.update(values[place.row_group * 2000 : place.row_group * 2000 + 2000])
            assert own == bloom
            file.seek(place.offset or 0)
            assert own.to_foreign() == file.read(place.length)


def test_unions_find_the_keys_of_all_files(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"part-{i}.parquet") for i in range(3)]
    union = unite_filters(str(tmp_path / "*.parquet"), "text")
    assert all(union.contains_many(COLUMNS["text"][1]))
    assert list(sources.expand(str(tmp_path / "**" / "*.parquet"))) == [str(path) for path in paths]
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "zz.parquet")
    with pytest.raises(IncompatibleFilters, match="has no filter"):
        unite_filters(tmp_path / "zz.parquet", "text")


def test_filters_of_different_sizes_are_united_at_the_smallest(tmp_path: Path) -> None:
    keys = list(range(21_000))
    for name, part in (("a", keys[:1000]), ("b", keys[1000:17_000]), ("c", keys[17_000:])):
        options = {"n": {"ndv": len(part), "fpp": 0.01}}
        pq.write_table(pa.table({"n": part}), tmp_path / f"{name}.parquet", bloom_filter_options=options)
    filters = [bloom for _, bloom in read_filters(str(tmp_path / "*.parquet"), "n") if bloom is not None]
    smallest = min(bloom.num_bits for bloom in filters)
    assert len({bloom.num_bits for bloom in filters}) == 3
    union = unite_filters(str(tmp_path / "*.parquet"), "n")
    fresh = fullbloom.ForeignFilter.with_shape("parquet", smallest, 8, key_type="long")
    fresh.update(keys)
    assert union == fresh
    with pytest.raises(IncompatibleFilters, match="only split blocks"):
        fullbloom.ForeignFilter("spark", 100).fold(64)
    for num_bits in (smallest - 256, smallest * 2, 128):
        with pytest.raises(IncompatibleFilters, match="cannot be folded"):
            union.fold(num_bits)


def test_tables_name_every_row_group_that_may_hold_a_key(tmp_path: Path, written: Path) -> None:
    plain = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"long": [1]}), plain)
    keys = [0, 7919 * 2001, -5, 7919 * 5999]
    table = probe_table([written, plain], "long", keys)
    rows = {(row["file"], row["row_group"], row["key"]) for row in table.to_pylist()}
    assert {(str(written), 0, 0), (str(written), 1, 1), (str(written), 2, 3)} <= rows
    assert {(str(plain), 0, i) for i in range(4)} <= rows
    assert {row["has_filter"] for row in table.to_pylist() if row["file"] == str(plain)} == {False}
    assert probe_table(written, "long", pa.array(keys)).num_rows == table.num_rows - 4
    assert probe_table(written, "long", []).num_rows == 0


def test_duckdb_prunes_where_we_do(tmp_path: Path) -> None:
    path = tmp_path / "duck.parquet"
    # It writes filters for dictionary-encoded columns.
    rows = "SELECT (i % 500) * 3 AS n, 'key ' || (i % 500) AS t FROM range(20000) r(i)"
    duckdb.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 5000)")
    for column, keys in (
        ("n", [*range(0, 1500, 3), *range(10**6, 10**6 + 300)]),
        ("t", ["key 1", "no", "key 499"]),
    ):
        places = list(list_filters(path, column))
        assert any(place.offset is not None for place in places), column
        for key in keys[::25] if column == "n" else keys:
            literal = key if column == "n" else f"'{key}'"
            judged = duckdb.execute(
                f"SELECT row_group_id, bloom_filter_excludes"
                f" FROM parquet_bloom_probe('{path}', '{column}', {literal})"
            ).fetchall()
            ours = {
                probe.place.row_group: probe.found[0]
                for probe in probe_filters(path, column, [key])
                if probe.found
            }
            assert ours == {group: not excludes for group, excludes in judged if group in ours}
            assert ours


def test_only_footers_and_filters_are_read(written: Path) -> None:
    with sources.open_ranged(str(written)) as file:
        found = parquet._Footer(file, "long", None)
        footer = file.bytes_read
        places = list(found)
        for place in places:
            parquet._read_filter(file, place, found.end, found.end)
        asked = sum(place.length or 0 for place in places)
        assert file.bytes_read == footer + asked
        tail = written.read_bytes()[-8:]
        assert footer == 8 + int.from_bytes(tail[:4], "little")


def test_remote_files_are_read_through_fsspec(written: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="needs fsspec: pip install fsspec")
    memory = fsspec.filesystem("memory")
    for name in ("a", "b"):
        memory.pipe(f"/bucket/{name}.parquet", written.read_bytes())
    probes = list(probe_filters("memory://bucket/*.parquet", "long", [0]))
    assert [probe.place.row_group for probe in probes] == [0, 1, 2] * 2
    assert probes[0].found == [True]
    with pytest.raises(FileNotFoundError):
        list(probe_filters("memory://bucket/*.none", "long", [0]))


def test_keys_and_columns_that_do_not_fit_are_refused(written: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyTypeError, match="must be int of 64 bits"):
        list(probe_filters(written, "long", ["a"]))
    with pytest.raises(ParameterError, match="has no column 'absent'; it has long, int"):
        list(probe_filters(written, "absent", [1]))
    with pytest.raises(FileNotFoundError):
        list(probe_filters(tmp_path / "none" / "*.parquet", "long", [1]))


def test_forged_files_are_refused(written: Path, tmp_path: Path) -> None:
    data = bytearray(written.read_bytes())
    path = tmp_path / "lie.parquet"

    def refuse(lie: bytes, match: str) -> None:
        path.write_bytes(lie)
        with pytest.raises(FormatError, match=match):
            list(read_filters(path, "long"))

    refuse(b"", "it has no tail")
    refuse(bytes(100), "does not end with PAR1")
    refuse(bytes(data[:-4]) + b"PARE", "footer is encrypted")
    refuse(bytes(data[:-8]) + (len(data)).to_bytes(4, "little") + b"PAR1", "its footer has")
    refuse(bytes(data[-3000:-8]) + bytes(data[-8:]), "footer|outside")
    place = next(list_filters(written, "long"))
    assert place.offset is not None
    header = bytearray(data)
    header[place.offset] ^= 1
    refuse(bytes(header), "column 'long' of row group 0")
    header = bytearray(data)
    header[place.offset + 2] ^= 0x40
    refuse(bytes(header), "numBytes")


def test_damaged_footers_never_read_outside_of_the_file(written: Path, tmp_path: Path) -> None:
    import random

    data = bytearray(written.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little")
    path = tmp_path / "damaged.parquet"
    draw = random.Random(3)
    for _ in range(400):
        lie = bytearray(data)
        for _ in range(draw.randint(1, 4)):
            lie[len(lie) - 8 - 1 - draw.randrange(footer)] = draw.randrange(256)
        path.write_bytes(lie)
        try:
            for _, bloom in read_filters(path, "long"):
                assert bloom is None or bloom.nbytes <= len(data)
        except (FormatError, ParameterError):
            continue


def test_row_groups_are_chosen_by_number(written: Path) -> None:
    assert [place.row_group for place in list_filters(written, "long", row_groups=[0, 2, 99])] == [0, 2]
    assert [place.row_group for place, _ in read_filters(written, "long", row_groups={1})] == [1]
    probes = list(probe_filters(written, "long", [0, 7919 * 2001], row_groups=(1,)))
    assert [(probe.place.row_group, probe.found) for probe in probes] == [(1, [False, True])]
    table = probe_table(written, "long", [0, 7919 * 2001], row_groups=[1])
    assert table.to_pylist()[0]["row_group"] == 1
    assert unite_filters(written, "long", row_groups=[1]) == dict(enumerate(filters(written, "long")))[1]
    assert list(read_filters(written, "long", row_groups=[])) == []
    with pytest.raises(ParameterError, match="has no column"):
        list(read_filters(written, "absent", row_groups=[0]))
    with pytest.raises(ParameterTypeError, match="row_groups must be numbers"):
        list(read_filters(written, "long", row_groups="1"))  # type: ignore[arg-type]
    with pytest.raises(ParameterTypeError, match="row_groups must be numbers, got list"):
        list(read_filters(written, "long", row_groups=[[1]]))  # type: ignore[list-item]


def filters(path: Path, column: str) -> list[Any]:
    return [bloom for _, bloom in read_filters(path, column)]


def test_many_files_have_the_same_results_in_order_on_any_number_of_threads(tmp_path: Path) -> None:
    for number in range(300):
        ids = [number * 1000 + i for i in range(50)]
        options = {"n": {"ndv": 50, "fpp": 0.01}}
        pq.write_table(pa.table({"n": ids}), tmp_path / f"{number:03}.parquet", bloom_filter_options=options)
    pattern, keys = str(tmp_path / "*.parquet"), [7, 123_007, 299_049, 999_999]
    alone = [(probe.place, probe.found) for probe in probe_filters(pattern, "n", keys)]
    assert [place.file for place, _ in alone] == sorted(str(path) for path in tmp_path.iterdir())
    assert alone[0][1][0]
    assert alone[123][1][1]
    assert alone[299][1][2]
    assert sum(sum(found) for _, found in alone) < 3 + 0.02 * 4 * 300
    for threads in (2, 7):
        found = probe_filters(pattern, "n", keys, threads=threads)
        assert [(probe.place, probe.found) for probe in found] == alone
        assert list(list_filters(pattern, threads=threads)) == list(list_filters(pattern))
        assert probe_table(pattern, "n", keys, threads=threads) == probe_table(pattern, "n", keys)
        assert unite_filters(pattern, "n", threads=threads) == unite_filters(pattern, "n")
    # The first file that is damaged ends the results, and those before it come first.
    (tmp_path / "150.parquet").write_bytes(b"PAR1")
    taken = []
    with pytest.raises(FormatError, match=r"150\.parquet"):
        for place, _ in read_filters(pattern, "n", threads=4):
            taken.append(place.file)
    assert len(taken) == 150
    stopped = probe_filters(pattern, "n", keys, threads=4)
    next(stopped)
    stopped.close()  # type: ignore[attr-defined]
    for threads, error in ((0, ParameterError), ("2", ParameterTypeError)):
        with pytest.raises(error, match="threads must be"):
            list(probe_filters(pattern, "n", keys, threads=threads))  # type: ignore[arg-type]


def test_texts_become_a_plain_filter_of_layout_split_and_back(written: Path) -> None:
    _, theirs = next(iter(read_filters(written, "text")))
    assert theirs is not None
    values = COLUMNS["text"][1][:2000]
    own = fullbloom.loads(convert(theirs, "split"))
    assert isinstance(own, fullbloom.BloomFilter)
    assert (own.layout, own.hash, own.num_bits, own.seed) == ("split", "xxh64", theirs.num_bits, 0)
    assert all(own.contains_many(values))
    absent = [f"absent {i}" for i in range(5000)]
    assert own.contains_many(absent) == theirs.contains_many(absent)
    items, deviation = theirs.approx_count()
    assert abs(own.num_added - items) <= 1 + deviation
    assert convert(own, "parquet") == theirs.to_foreign()
    assert fullbloom.loads(convert(own, "split")) == own
    direct = fullbloom.BloomFilter.with_shape(theirs.num_bits, 8, layout="split", hash="xxh64")
    direct.update(values)
    assert bytes(memoryview(direct)) == bytes(memoryview(own))
    _, longs = next(iter(read_filters(written, "long")))
    seeded = fullbloom.BloomFilter(100, layout="split", hash="xxh64", seed=7)
    numbers = fullbloom.BloomFilter(100, layout="split", hash="xxh64")
    numbers.add(5)
    refused = [longs, fullbloom.ForeignFilter("spark", 100), seeded, numbers]
    for found in (*refused, fullbloom.BloomFilter(100, layout="split")):
        with pytest.raises(IncompatibleFilters, match="of texts and bytes alone"):
            convert(found, "split")


@pytest.mark.timed
def test_columns_of_a_hostile_footer_are_read_one_at_a_time(tmp_path: Path) -> None:
    # A column of 9 bytes: metadata with a type and a path of one name.
    column = bytes([0x3C, 0x15, 4, 0x29, 0x18, 1]) + b"a" + bytes(2)
    count = 400_000
    varint, rest = bytearray(), count
    while rest >= 128:
        varint.append(rest & 127 | 128)
        rest >>= 7
    varint.append(rest)
    group = b"\x19\xfc" + varint + column * count + b"\x26\x02\x00"
    footer = b"\x15\x02\x39\x1c" + group + b"\x00"
    path = tmp_path / "wide.parquet"
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with bounded(8 * len(footer)):
        assert sum(1 for _ in list_filters(path, "b")) == 0
    with bounded(2 * len(footer)):
        first = next(list_filters(path))
    assert (first.column, first.physical_type, first.offset) == ("a", "INT64", None)
    with bounded(8 * len(footer)), pytest.raises(ParameterError, match="has no column 'b'; it has a"):
        next(read_filters(path, "b"))


def write_forged(path: Path, body: bytes, length: int | None, row_groups: int = 1) -> Path:
    """Write a file whose row groups, up to 14, all state that their filter is ``body``."""

    def zigzag(number: int) -> bytes:
        value, out = number << 1, bytearray()
        while value >= 128:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes([*out, value])

    stated = b"" if length is None else b"\x15" + zigzag(length)
    chunk = b"\x3c\x15\x04\x29\x18\x01a" + b"\xb6" + zigzag(4) + stated + b"\0\0"
    group = b"\x19\x1c" + chunk + b"\x26\x02\x00"
    footer = b"\x15\x02\x39" + bytes([row_groups << 4 | 0xC]) + group * row_groups + b"\x00"
    path.write_bytes(b"PAR1" + body + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return path


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.timed
def test_filters_together_take_no_more_bytes_than_their_file(tmp_path: Path, threads: int) -> None:
    body = fullbloom.ForeignFilter.with_shape("parquet", 8 << 20, 8, key_type="long").to_foreign()
    for length in (None, len(body)):
        path = write_forged(tmp_path / "shared.parquet", body, length, row_groups=14)
        with (
            bounded(4 * len(body)),
            pytest.raises(FormatError, match=r"row group 1: .* more bytes than"),
        ):
            list(probe_filters(path, "a", [1], threads=threads))


def test_a_filter_beyond_the_bytes_of_its_file_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = fullbloom.ForeignFilter.with_shape("parquet", 1 << 20, 8, key_type="long").to_foreign()
    read, lengths = sources.RangedFile.read, []

    def count(file: sources.RangedFile, offset: int, length: int) -> bytes:
        lengths.append(length)
        return read(file, offset, length)

    monkeypatch.setattr(sources.RangedFile, "read", count)
    for length in (None, len(body)):
        path = write_forged(tmp_path / "shared.parquet", body, length, row_groups=2)
        lengths.clear()
        with pytest.raises(FormatError, match=f"row group 1: with the {len(body)} bytes of this filter"):
            list(read_filters(path, "a"))
        # Beside the file, only the header of the second filter.
        assert sum(lengths) <= path.stat().st_size + 32


def test_a_filter_of_unstated_length_ends_before_the_footer(tmp_path: Path) -> None:
    block = fullbloom.ForeignFilter.with_shape("parquet", 256, 8, key_type="long")
    block.add(7)
    data = block.to_foreign()

    for length in (None, len(data)):
        [(place, bloom)] = read_filters(write_forged(tmp_path / "one.parquet", data, length), "a")
        assert place.length == length
        assert bloom == block
    # A header that states two blocks, of which the second is the footer.
    two = fullbloom.ForeignFilter.with_shape("parquet", 512, 8, key_type="long").to_foreign()
    path = write_forged(tmp_path / "one.parquet", two[:-32], None)
    with sources.open_ranged(str(path)) as file:
        found = parquet._Footer(file, "a", None)
        before = file.bytes_read
        with pytest.raises(FormatError, match="its numBytes is 64, and 32 bytes follow its header"):
            parquet._read_filter(file, next(iter(found)), found.end, found.end)
        assert file.bytes_read - before <= found.end
