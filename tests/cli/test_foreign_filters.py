"""Files of other programs on the command line: described, converted, and probed."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import fullbloom as package
from fullbloom import ForeignFilter

SPARK = bytes.fromhex("00000001000000040000000187a6190a091be602")
GUAVA = bytes.fromhex("01050000000220100200088402040002404820c0a103")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "spark").write_bytes(SPARK)
    (tmp_path / "guava").write_bytes(GUAVA)
    return tmp_path


def test_info_knows_a_format_by_its_bytes(fullbloom, refused, files):
    facts = json.loads(fullbloom("info", "spark", "--json", cwd=files, check=0).stdout)
    assert (facts["format"], facts["num_bits"], facts["num_hashes"]) == ("spark-v1", 64, 4)
    assert facts["key_type"] == "any"
    facts = json.loads(fullbloom("info", "guava", "--json", cwd=files, check=0).stdout)
    assert (facts["format"], facts["key_type"]) == ("guava", "bytes, utf-16, int, long")
    line = fullbloom("info", "guava", "--key-type", "utf-8", cwd=files, check=0).stdout.decode()
    assert "key_type         bytes" in line
    (files / "noise").write_bytes(b"noise")
    refused(fullbloom("info", "noise", cwd=files))
    assert "its version is" in refused(fullbloom("info", "noise", "--format", "spark", cwd=files))


def test_convert_keeps_the_bits_or_says_why_not(fullbloom, refused, files):
    fullbloom("convert", "spark", "own", "--to", "fullbloom", cwd=files, check=0)
    own = package.open(files / "own")
    assert isinstance(own, ForeignFilter)
    assert own.to_foreign() == SPARK
    fullbloom("convert", "own", "back", "--to", "spark-v1", cwd=files, check=0)
    assert (files / "back").read_bytes() == SPARK
    why = refused(fullbloom("convert", "own", "other", "--to", "spark", cwd=files))
    assert "summed in 32 bits" in why
    assert "summed in 64 bits" in why
    assert not (files / "other").exists()
    fullbloom("build", "lines.bloom", "--capacity", "100", stdin=b"a\n", cwd=files, check=0)
    why = refused(fullbloom("convert", "lines.bloom", "other", "--to", "guava", cwd=files))
    assert "hash xxh3" in why


def test_static_filters_are_described_and_converted(fullbloom, refused, files):
    built = package.ForeignStaticFilter.build("fuse8", ["ada", "alan"], key_type="str")
    (files / "fuse").write_bytes(built.to_foreign())
    facts = json.loads(fullbloom("info", "fuse", "--json", cwd=files, check=0).stdout)
    assert (facts["format"], facts["key_type"], facts["num_keys"]) == ("fuse8", "str, uint64", 2)
    words = ("convert", "fuse", "own", "--to", "fullbloom", "--key-type", "str")
    fullbloom(*words, cwd=files, check=0)
    assert package.open(files / "own") == built
    fullbloom("convert", "own", "back", "--to", "fuse8", cwd=files, check=0)
    assert (files / "back").read_bytes() == built.to_foreign()
    assert "does not contain its keys" in refused(
        fullbloom("convert", "own", "other", "--to", "fuse16", cwd=files)
    )


def test_bits_alone_are_read_under_the_rule_that_is_named(fullbloom, refused, files):
    made = ForeignFilter.with_shape("md5-double", 100, 3)
    made.update(["a", "b"])
    (files / "bits").write_bytes(made.to_foreign())
    shape = ("--format", "md5-double", "--num-bits", "100", "--num-hashes", "3")
    facts = json.loads(fullbloom("info", "bits", *shape, "--json", cwd=files, check=0).stdout)
    assert (facts["format"], facts["num_bits"], facts["key_type"]) == ("md5-double", 100, "bytes")
    fullbloom("convert", "bits", "own", "--to", "fullbloom", *shape, cwd=files, check=0)
    assert package.open(files / "own") == made
    fullbloom("convert", "own", "turned", "--to", "md5-double-msb", cwd=files, check=0)
    fullbloom("convert", "turned", "back", "--to", "md5-double", *shape, "--order", "msb", cwd=files, check=0)
    assert (files / "back").read_bytes() == made.to_foreign()
    assert "say num_bits and num_hashes" in refused(
        fullbloom("info", "bits", "--format", "md5-double", cwd=files)
    )
    assert "is for those of other programs" in refused(
        fullbloom("info", "own", "--num-bits", "100", "--num-hashes", "3", cwd=files)
    )


def test_dumps_of_redisbloom_are_described_and_converted(fullbloom, refused, files):
    made = package.ForeignScalableFilter(100, 0.01)
    made.update(["a", "b"])
    (files / "dump").write_bytes(made.to_foreign())
    facts = json.loads(fullbloom("info", "dump", "--json", cwd=files, check=0).stdout)
    assert (facts["format"], facts["num_added"], facts["class"]) == ("redisbloom", 2, "ForeignScalableFilter")
    fullbloom("convert", "dump", "own", "--to", "fullbloom", cwd=files, check=0)
    assert package.open(files / "own") == made
    fullbloom("convert", "own", "back", "--to", "redisbloom", cwd=files, check=0)
    assert (files / "back").read_bytes() == made.to_foreign()
    assert "MurmurHash64A" in refused(fullbloom("convert", "dump", "no", "--to", "spark", cwd=files))


def test_texts_move_between_parquet_and_a_split_filter(fullbloom, files):
    keys = [f"key {i}" for i in range(200)]
    bloom = package.BloomFilter(1000, 0.01, layout="split", hash="xxh64")
    bloom.update(keys)
    bloom.save(files / "split.bloom")
    fullbloom("convert", "split.bloom", "out", "--to", "parquet", cwd=files, check=0)
    moved = ForeignFilter.open_foreign(files / "out", key_type="bytes")
    own = ForeignFilter.with_shape("parquet", moved.num_bits, 8, key_type="bytes")
    own.update(keys)
    assert own == moved


def test_commands_for_lines_refuse_filters_of_other_programs(refused, fullbloom, files):
    fullbloom("convert", "spark", "own", "--to", "fullbloom", cwd=files, check=0)
    for words in (("check", "own"), ("insert", "own"), ("check", "spark")):
        assert "ForeignFilter" in refused(fullbloom(*words, stdin=b"a\n", cwd=files)), words


def test_filters_of_one_format_and_shape_are_merged(fullbloom, refused, files):
    other = ForeignFilter.with_shape("spark-v1", 64, 4)
    other.add("z")
    (files / "other").write_bytes(other.to_foreign())
    fullbloom("merge", "both", "spark", "other", cwd=files, check=0)
    both = package.open(files / "both")
    assert both == package.open(files / "spark") | other
    ForeignFilter("spark-v1", 100).save(files / "larger")
    assert "num_bits" in refused(fullbloom("merge", "both", "spark", "larger", cwd=files))


def test_probe_prints_the_row_groups_that_may_hold_keys(fullbloom, refused, tmp_path):
    for part in range(3):
        table = pa.table({"user_id": range(part * 1000, part * 1000 + 1000), "name": ["n"] * 1000})
        pq.write_table(
            table,
            tmp_path / f"part-{part}.parquet",
            row_group_size=500,
            bloom_filter_options={"user_id": {"ndv": 500, "fpp": 1e-4}},
        )
    (tmp_path / "keys.txt").write_text("7\n1501\n999999\n")
    words = ("parquet", "probe", "--column", "user_id", "--keys", "keys.txt", "*.parquet")
    found = fullbloom(*words, cwd=tmp_path, check=0).stdout.decode().splitlines()
    assert found == ["part-0.parquet\t0\t7", "part-1.parquet\t1\t1501"]
    facts = json.loads(fullbloom(*words, "--json", cwd=tmp_path, check=0).stdout)
    assert (facts["files"], facts["keys"], facts["matches"][0]["keys"]) == (3, 3, [7])
    fullbloom(*words, "--arrow", "out.arrow", cwd=tmp_path, check=0)
    with pyarrow.ipc.open_file(tmp_path / "out.arrow") as file:
        assert file.read_all()["value"].to_pylist() == [7, 1501]
    (tmp_path / "keys.txt").write_text("999999\n")
    assert fullbloom(*words, cwd=tmp_path, check=1).stdout == b""
    (tmp_path / "keys.txt").write_text("7\nsecret\n")
    why = refused(fullbloom(*words, cwd=tmp_path))
    assert "line 2" in why
    assert "secret" not in why
    listed = (
        fullbloom("parquet", "list", "part-0.parquet", cwd=tmp_path, check=0).stdout.decode().splitlines()
    )
    assert [line.split("\t")[:4] for line in listed] == [
        ["part-0.parquet", str(group), "user_id", "INT64"] for group in range(2)
    ]
    refused(fullbloom("parquet", "probe", "part-0.parquet", cwd=tmp_path))
