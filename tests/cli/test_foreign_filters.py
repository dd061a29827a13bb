"""Files of other programs on the command line: described, converted, and probed."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from compat.foreign import samples

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
    assert "--num-bits is for files of other programs" in refused(
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


def test_lines_are_looked_up_in_filters_of_other_programs(fullbloom, refused, files):
    words = [f"user {i}" for i in range(200)]
    guava = ForeignFilter("guava", 1000, key_type="utf-8")
    guava.update(words)
    (files / "users").write_bytes(guava.to_foreign())
    stdin = "".join(f"{word}\n" for word in [*words, "nobody", "no one"]).encode()
    command = ("check", "users", "--key-type", "utf-8")
    found = fullbloom(*command, stdin=stdin, cwd=files, check=1).stdout.decode().splitlines()
    assert found == words
    absent = fullbloom(*command, "--absent", stdin=stdin, cwd=files, check=1).stdout
    assert absent == b"nobody\nno one\n"
    facts = json.loads(fullbloom(*command, "--json", stdin=stdin, cwd=files, check=1).stderr)
    assert (facts["lines"], facts["found"], facts["absent"]) == (202, 200, 2)
    assert fullbloom(*command, "--count", stdin=b"user 1\n", cwd=files, check=0).stdout == b"1\n"
    assert (
        fullbloom(*command, "--threads", "2", stdin=stdin, cwd=files, check=1).stdout.decode().count("\n")
        == 200
    )
    assert "--key-type one of bytes, utf-16, int, long" in refused(
        fullbloom("check", "users", stdin=stdin, cwd=files)
    )
    assert "has no values" in refused(fullbloom(*command, "--values", stdin=stdin, cwd=files))


def test_lines_are_read_as_the_type_of_the_keys(fullbloom, refused, files):
    guava = ForeignFilter("guava", 1000, key_type="long")
    guava.update(range(100))
    (files / "ids").write_bytes(guava.to_foreign())
    command = ("check", "ids", "--key-type", "long")
    assert fullbloom(*command, stdin=b"7\n 99 \n-5\n", cwd=files, check=1).stdout == b"7\n 99 \n"
    why = refused(fullbloom(*command, stdin=b"7\nseven\n", cwd=files))
    assert "line 2" in why
    assert fullbloom(*command, "--skip-bad", stdin=b"7\nseven\n", cwd=files, check=0).stdout == b"7\n"
    # Spark's filters take texts and integers: lines are texts unless the type says otherwise.
    spark = ForeignFilter("spark", 1000)
    spark.update([*range(50), "7"])
    (files / "spark2").write_bytes(spark.to_foreign())
    assert fullbloom("check", "spark2", stdin=b"7\n8\n", cwd=files, check=1).stdout == b"7\n"
    as_longs = ("check", "spark2", "--key-type", "long")
    assert fullbloom(*as_longs, stdin=b"7\n8\n", cwd=files, check=0).stdout == b"7\n8\n"
    floats = ForeignFilter("parquet", 100, key_type="double")
    floats.update([0.5, 2.0])
    (files / "floats").write_bytes(floats.to_foreign())
    assert fullbloom("check", "floats", "--key-type", "double", stdin=b"0.5\n2\n", cwd=files, check=0).stdout
    fullbloom("insert", "floats", "--key-type", "double", stdin=b"0.25\n", cwd=files, check=0)
    assert 0.25 in package.open(files / "floats", key_type="double")


def test_records_are_looked_up_in_filters_of_other_programs(fullbloom, refused, files):
    spark = ForeignFilter("spark", 1000)
    spark.update([1, 2, 3, "one", "two"])
    (files / "spark2").write_bytes(spark.to_foreign())
    table = b"id,name\n1,one\n9,nine\n"
    csv = ("check", "spark2", "--format", "csv", "--select")
    assert fullbloom(*csv, "name", stdin=table, cwd=files, check=1).stdout == b"id,name\n1,one\n"
    assert fullbloom(*csv, "id", stdin=table, cwd=files, check=1).stdout == b"id,name\n"
    typed = fullbloom(*csv, "id", "--key-type", "int", stdin=table, cwd=files, check=1).stdout
    assert typed == b"id,name\n1,one\n"
    objects = b'{"id": 2}\n{"id": "two"}\n{"id": 8}\n'
    lines = ("check", "spark2", "--format", "jsonl", "--select", "id")
    assert fullbloom(*lines, stdin=objects, cwd=files, check=1).stdout == b'{"id": 2}\n{"id": "two"}\n'
    assert "give --select once" in refused(fullbloom(*csv, "id", "--select", "name", stdin=table, cwd=files))
    pq.write_table(pa.table({"id": [1, 9, None, 3], "name": ["a", "b", "c", "d"]}), files / "rows.parquet")
    found = fullbloom("check", "spark2", "rows.parquet", "--select", "id", "--count", cwd=files, check=1)
    assert found.stdout == b"2\n"
    # Bits alone are never detected: one --format is that of the filter, the other that of the records.
    bits = ForeignFilter.with_shape("md5-double", 1000, 3)
    bits.update(["one"])
    (files / "bits").write_bytes(bits.to_foreign())
    shape = ("--format", "md5-double", "--num-bits", "1000", "--num-hashes", "3")
    both = ("check", "bits", *shape, "--format", "csv", "--select", "name")
    assert fullbloom(*both, stdin=table, cwd=files, check=1).stdout == b"id,name\n1,one\n"
    assert fullbloom("check", "bits", *shape, stdin=b"one\n", cwd=files, check=0).stdout == b"one\n"
    why = refused(fullbloom("check", "spark2", "--format", "csv", stdin=table, cwd=files))
    assert "--format is of use with --select only" in why


@pytest.mark.parametrize(
    ("made", "options"),
    [
        (ForeignFilter("spark", 1000), ()),
        (ForeignFilter("spark-v1", 1000), ()),
        (ForeignFilter("guava", 1000, key_type="utf-16"), ("--key-type", "utf-16")),
        (ForeignFilter("parquet", 1000, key_type="bytes"), ("--key-type", "bytes")),
        (ForeignFilter("bip37-all", 1000, seed=5), ()),
        (ForeignFilter("ethereum", 1), ("--format", "ethereum")),
        (ForeignFilter.with_shape("sha1-seeded-msb", 5003, 4), ("--num-bits", "5003", "--num-hashes", "4")),
        (package.ForeignScalableFilter(10), ()),
        (package.ForeignCuckooFilter(10), ()),
    ],
    ids=lambda value: getattr(value, "format", ""),
)
def test_lines_are_added_and_written_back_in_the_same_format(fullbloom, files, made, options):
    path = files / "theirs"
    if "--num-bits" in options:
        options = ("--format", made.format, *options)
    path.write_bytes(made.to_foreign())
    words = [f"word {i}" for i in range(300)]
    stdin = "".join(f"{word}\n" for word in words).encode()
    command = ("insert", "theirs", *options, "--json")
    facts = json.loads(fullbloom(*command, stdin=stdin, cwd=files, check=0).stdout)
    copied = made.copy()
    new = sum(copied.add_many(words))
    assert (facts["lines"], facts["new"], facts["format"]) == (300, new, made.format)
    assert path.read_bytes() == copied.to_foreign()
    assert fullbloom("check", "theirs", *options, stdin=stdin, cwd=files, check=0).stdout == stdin
    # The same in a container of ours stays one.
    made.copy().save(files / "ours")
    fullbloom("insert", "ours", stdin=stdin, cwd=files, check=0)
    assert package.open(files / "ours") == copied
    assert fullbloom("check", "ours", stdin=stdin, cwd=files, check=0).stdout == stdin


def test_filters_that_take_no_lines_say_why(fullbloom, refused, files):
    fuse = package.ForeignStaticFilter.build("fuse8", ["ada", "alan"], key_type="str")
    (files / "fuse").write_bytes(fuse.to_foreign())
    typed = ("--key-type", "str")
    assert fullbloom("check", "fuse", *typed, stdin=b"ada\nzoe\n", cwd=files, check=1).stdout == b"ada\n"
    why = refused(fullbloom("insert", "fuse", *typed, stdin=b"zoe\n", cwd=files))
    assert "takes no lines after it is built" in why
    live = ForeignFilter("pybloom-live", 100)
    (files / "live").write_bytes(samples.unwritten(live))
    why = refused(fullbloom("insert", "live", stdin=b"a\n", cwd=files))
    assert "is read and not written" in why
    assert "fullbloom convert live OUT --to fullbloom" in why
    assert (files / "live").read_bytes() == samples.unwritten(live)
    fullbloom("convert", "live", "own", "--to", "fullbloom", cwd=files, check=0)
    fullbloom("insert", "own", stdin=b"a\n", cwd=files, check=0)
    assert "a" in package.open(files / "own")
    (files / "spark2").write_bytes(ForeignFilter("spark", 100).to_foreign())
    assert "not written in place" in refused(
        fullbloom("insert", "spark2", "--in-place", stdin=b"a\n", cwd=files)
    )
    block = package.ForeignStaticFilter.build("bip158", ["script"], block_hash=bytes(range(32)))
    (files / "block").write_bytes(block.to_foreign())
    hashed = ("--format", "bip158", "--block-hash", bytes(range(32)).hex())
    assert fullbloom("check", "block", *hashed, stdin=b"script\n", cwd=files, check=0).stdout == b"script\n"
    assert (
        json.loads(fullbloom("info", "block", *hashed, "--json", cwd=files, check=0).stdout)["num_keys"] == 1
    )
    fullbloom("convert", "block", "own", *hashed, "--to", "fullbloom", cwd=files, check=0)
    assert package.open(files / "own") == block
    assert "64 hexadecimal digits" in refused(fullbloom("info", "block", "--block-hash", "00", cwd=files))


def test_filters_of_one_format_and_shape_are_merged_in_that_format(fullbloom, refused, files):
    other = ForeignFilter.with_shape("spark-v1", 64, 4)
    other.add("z")
    (files / "other").write_bytes(other.to_foreign())
    fullbloom("merge", "both", "spark", "other", cwd=files, check=0)
    both = package.open(files / "spark") | other
    assert (files / "both").read_bytes() == both.to_foreign()
    other.save(files / "ours")
    fullbloom("merge", "both", "ours", "spark", cwd=files, check=0)
    assert package.open(files / "both") == both
    assert package.open(files / "both").path == str(files / "both")
    ForeignFilter("spark-v1", 100).save(files / "larger")
    assert "num_bits" in refused(fullbloom("merge", "both", "spark", "larger", cwd=files))
    bits = [ForeignFilter.with_shape("md5-double", 1000, 3) for _ in range(2)]
    for number, each in enumerate(bits):
        each.add(f"key {number}")
        (files / f"bits{number}").write_bytes(each.to_foreign())
    shape = ("--format", "md5-double", "--num-bits", "1000", "--num-hashes", "3")
    fullbloom("merge", "both", "bits0", "bits1", *shape, cwd=files, check=0)
    assert (files / "both").read_bytes() == (bits[0] | bits[1]).to_foreign()
    dumps = [package.ForeignScalableFilter(100) for _ in range(2)]
    for number, dump in enumerate(dumps):
        dump.update(f"{number} {i}" for i in range(300))
        (files / f"dump{number}").write_bytes(dump.to_foreign())
    fullbloom("merge", "both", "dump0", "dump1", cwd=files, check=0)
    merged = package.open(files / "both")
    assert merged == dumps[0] | dumps[1]
    assert all(merged.contains_many([f"{number} {i}" for number in range(2) for i in range(300)]))
    (files / "cuckoo").write_bytes(package.ForeignCuckooFilter(100).to_foreign())
    assert "cannot be merged" in refused(fullbloom("merge", "both", "cuckoo", "cuckoo", cwd=files))


def test_cells_of_other_programs_are_shown(fullbloom, refused, files):
    text = fullbloom("show", "spark", "--key", "hello", cwd=files, check=0).stdout.decode()
    assert "spark: a ForeignFilter, 8 B of cells" in text
    assert "the key is probably in the filter; its cells: " in text
    facts = json.loads(
        fullbloom("show", "spark", "--key", "1", "--key-type", "long", "--json", cwd=files, check=0).stdout
    )
    opened = package.open(files / "spark")
    assert facts["key"] == {"found": True, "positions": opened.positions(1)}
    assert (facts["capacity"], facts["sections"][0]["cells"]) == (None, 64)
    assert facts["sections"][0]["set"] == sum(opened.bits())
    facts = json.loads(fullbloom("show", "guava", "--json", cwd=files, check=0).stdout)
    assert facts["sections"][0]["cells"] == 128
    assert "--key is not a valid int" in refused(
        fullbloom("show", "guava", "--key", "a", "--key-type", "long", cwd=files)
    )
    for made in (
        package.ForeignScalableFilter(100),
        package.ForeignCuckooFilter(100),
        package.ForeignStaticFilter.build("xor16", ["a"], key_type="str"),
    ):
        (files / "theirs").write_bytes(made.to_foreign())
        made.save(files / "ours")
        for name in ("theirs", "ours"):
            facts = json.loads(fullbloom("show", name, "--json", cwd=files, check=0).stdout)
            assert (facts["class"], facts["nbytes"]) == (type(made).__name__, made.nbytes)
            assert fullbloom("show", name, cwd=files, check=0).stdout
    fullbloom("build", "lines.bloom", "--capacity", "100", stdin=b"a\n", cwd=files, check=0)
    assert "is for filters of other programs" in refused(
        fullbloom("show", "lines.bloom", "--key", "a", "--key-type", "long", cwd=files)
    )


def test_known_members_are_asked_before_anything_is_written(fullbloom, refused, files):
    made = ForeignFilter.with_shape("md5-double", 10_000, 5)
    members = [f"member {i}" for i in range(100)]
    made.update(members)
    (files / "bits").write_bytes(made.to_foreign())
    (files / "known").write_text("".join(f"{member}\n" for member in members))
    shape = ("--num-bits", "10000", "--num-hashes", "5", "--members", "known")
    right, wrong = ("--format", "md5-double", *shape), ("--format", "sha1-double", *shape)
    for command, stdin in (
        (("info", "bits"), b""),
        (("convert", "bits", "out", "--to", "fullbloom"), b""),
        (("insert", "bits"), b"more\n"),
        (("merge", "out", "bits", "bits"), b""),
    ):
        (files / "out").unlink(missing_ok=True)
        before = (files / "bits").read_bytes()
        why = refused(fullbloom(*command, *wrong, stdin=stdin, cwd=files))
        assert "of 100 known members, where chance finds" in why
        assert (files / "bits").read_bytes() == before
        assert not (files / "out").exists()
        fullbloom(*command, *right, stdin=stdin, cwd=files, check=0)
    guava = ForeignFilter("guava", 100, key_type="long")
    guava.update(range(10))
    (files / "ids").write_bytes(guava.to_foreign())
    (files / "known").write_text("1\n2\n")
    fullbloom("info", "ids", "--key-type", "long", "--members", "known", cwd=files, check=0)
    (files / "known").write_text("1\nsecret\n")
    why = refused(fullbloom("info", "ids", "--key-type", "long", "--members", "known", cwd=files))
    assert "line 2" in why
    assert "secret" not in why


def test_texts_move_from_parquet_to_a_split_filter(fullbloom, refused, files):
    theirs = ForeignFilter("parquet", 1000, key_type="bytes")
    theirs.update(f"key {i}" for i in range(500))
    (files / "theirs").write_bytes(theirs.to_foreign())
    typed = ("--key-type", "bytes")
    fullbloom("convert", "theirs", "split.bloom", "--to", "split", *typed, cwd=files, check=0)
    split = package.open(files / "split.bloom")
    assert (split.layout, split.hash) == ("split", "xxh64")
    assert all(split.contains_many([f"key {i}" for i in range(500)]))
    fullbloom("convert", "split.bloom", "back", "--to", "parquet", cwd=files, check=0)
    assert (files / "back").read_bytes() == theirs.to_foreign()
    why = refused(fullbloom("convert", "theirs", "no", "--to", "split", "--key-type", "long", cwd=files))
    assert "keys of type long" in why


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
    together = fullbloom(*words, "--threads", "3", cwd=tmp_path, check=0).stdout.decode().splitlines()
    assert together == found
    second = fullbloom(*words, "--row-group", "1", cwd=tmp_path, check=0).stdout.decode().splitlines()
    assert second == found[1:]
    both = fullbloom(*words, "--row-group", "0", "--row-group", "1", cwd=tmp_path, check=0).stdout
    assert both.decode().splitlines() == found
    fullbloom(*words, "--row-group", "0", "--arrow", "out.arrow", "--threads", "2", cwd=tmp_path, check=0)
    with pyarrow.ipc.open_file(tmp_path / "out.arrow") as file:
        assert file.read_all()["value"].to_pylist() == [7]
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
