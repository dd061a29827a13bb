"""Formats of blockchains: the vectors that their specifications and reference programs publish."""

from __future__ import annotations

import copy
import json
import pickle
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cases import for_each
from compat.foreign.keccak import keccak256

import fullbloom
from fullbloom import (
    ForeignFilter,
    ForeignStaticFilter,
    FormatError,
    IncompatibleFilters,
    KeyTypeError,
    ParameterError,
    ParameterTypeError,
)
from fullbloom.formats import detect, open_foreign
from fullbloom.formats.conversion import convert

#: The test network's blocks of BIP 158: the hash as nodes send it, the scripts, and the filter.
BLOCKS = json.loads((Path(__file__).parent / "foreign" / "bip158.json").read_text())

#: Keys of Bitcoin Core's bloom_tests, and the filters for tweaks 0 and 2147483649.
HASHES = [
    bytes.fromhex(text)
    for text in (
        "99108ad8ed9bb6274d3980bab5a85c048f0950c8",
        "b5a2c786d9ef4658287ced5914b37a1b4aa32eee",
        "b9300670b4c5366e95b2699e8b18bc75e5f729c5",
    )
]
FILTERS = {0: "03614e9b050000000000000001", 2147483649: "03ce4299050000000100008001"}


@pytest.mark.parametrize("tweak", FILTERS)
def test_bip37_filters_are_those_of_bitcoin_core(tweak: int) -> None:
    bloom = ForeignFilter("bip37-all", 3, 0.01, seed=tweak)
    for key in HASHES:
        assert bloom.add(key)
        assert key in bloom
    assert bytes([HASHES[0][0] ^ 0x80]) + HASHES[0][1:] not in bloom
    data = bytes.fromhex(FILTERS[tweak])
    assert bloom.to_foreign() == data
    assert detect(data) == "bip37-all"
    read = open_foreign(data)
    assert read == bloom
    assert (read.format, read.seed, read.num_hashes, read.num_bits) == ("bip37-all", tweak, 5, 24)


def test_the_flag_of_a_bip37_filter_is_its_format() -> None:
    data = bytes.fromhex(FILTERS[0])
    for flag, name in enumerate(["bip37", "bip37-all", "bip37-p2pubkey"]):
        flagged = data[:-1] + bytes([flag])
        assert (detect(flagged), open_foreign(flagged).format) == (name, name)
        assert open_foreign(flagged, "bip37").format == name
        assert convert(open_foreign(data), name) == flagged
    with pytest.raises(FormatError, match=r"flag is 3, not 0, 1 or 2"):
        open_foreign(data[:-1] + b"\3", "bip37")
    with pytest.raises(FormatError, match=r"flag is 1, not 2"):
        open_foreign(data, "bip37-p2pubkey")


def test_a_logs_bloom_is_that_of_go_ethereum() -> None:
    # Its TestBloomExtensively states the Keccak-256 hash of the 256 bytes.
    bloom = ForeignFilter("ethereum", 100)
    keys = [f"xxxxxxxxxx data {i} yyyyyyyyyyyyyy".encode() for i in range(100)]
    bloom.update(keys)
    expected = bytearray(256)
    for key in keys:
        hashed = keccak256(key)
        for at in (0, 2, 4):
            bit = int.from_bytes(hashed[at : at + 2], "big") % 2048
            expected[255 - bit // 8] |= 1 << bit % 8
    assert keccak256(expected).hex() == "c8d3ca65cdb4874300a9e39475508f23ed6da09fdbc487f89a2dcf50b09eb263"
    assert bloom.to_foreign() == expected
    assert open_foreign(bytes(expected), "ethereum") == bloom
    assert detect(bytes(expected)) is None
    assert all(bloom.contains_many(keys))
    with pytest.raises(ParameterError, match="num_hashes must be 3"):
        ForeignFilter.with_shape("ethereum", 2048, 2)


@for_each("block", BLOCKS, ids=lambda block: str(block["height"]))
def test_bip158_filters_are_those_of_the_specification(block: dict[str, str]) -> None:
    scripts, block_hash = (
        [bytes.fromhex(script) for script in block["scripts"]],
        bytes.fromhex(block["block_hash"]),
    )
    data = bytes.fromhex(block["filter"])
    for order in (scripts, scripts[::-1], [*scripts, *scripts]):
        assert build_block(order, block_hash).to_foreign() == data
    read = open_foreign(data, "bip158", block_hash=block_hash)
    assert (read.num_keys, read.approx_count()) == (len(scripts), (len(scripts), 0.0))
    assert read.contains_many(scripts) == [True] * len(scripts)
    assert read.contains_many(pa.array(scripts, pa.binary())).to_pylist() == [True] * len(scripts)
    assert not any(read.contains_many([b"absent", b""]))
    assert bool(read) == bool(scripts)
    assert pickle.loads(pickle.dumps(read)) == copy.copy(read) == read
    assert read != open_foreign(data, "bip158", block_hash=bytes(32))


def build_block(scripts: Any, block_hash: bytes) -> ForeignStaticFilter:
    return ForeignStaticFilter.build("bip158", scripts, block_hash=block_hash)


def test_bip158_filters_are_like_any_other(tmp_path: Path) -> None:
    block_hash, scripts = bytes(range(32)), [b"script %d" % i for i in range(1000)]
    built = build_block(scripts, block_hash)
    path, own = tmp_path / "theirs", tmp_path / "ours"
    path.write_bytes(built.to_foreign())
    for opened in (
        fullbloom.open(path, format="bip158", block_hash=block_hash),
        open_foreign(path, "bip158", block_hash=block_hash, verify=scripts),
        ForeignStaticFilter.open_foreign(path, "bip158", block_hash=block_hash),
    ):
        assert opened == built
    built.save(own)
    for opened in (
        fullbloom.open(own),
        fullbloom.open(own, verify="full"),
        fullbloom.loads(own.read_bytes()),
    ):
        assert opened == built
        assert opened.to_foreign() == path.read_bytes()
        assert all(opened.contains_many(scripts))
    info = built.info()
    assert (info["format"], info["num_keys"], info["class"]) == ("bip158", 1000, "ForeignStaticFilter")
    assert not {"num_cells", "seed", "fingerprint_bits"} & set(info)
    assert (built.num_cells, built.seed, built.fill) == (None, None, 1.0)
    assert convert(built, "bip158") == built.to_foreign()
    with pytest.raises(IncompatibleFilters, match="SipHash-2-4"):
        convert(built, "fuse8")
    assert detect(path) is None
    with pytest.raises(IncompatibleFilters, match="finds 0 of 5 known members"):
        open_foreign(path, "bip158", block_hash=bytes(32), verify=scripts[:5])
    with pytest.raises(ParameterError, match="give block_hash="):
        open_foreign(path, "bip158")
    with pytest.raises(ParameterError, match="block_hash is for filters of a block"):
        open_foreign(ForeignFilter("spark", 10).to_foreign(), block_hash=block_hash)


def test_bip158_finds_other_elements_at_its_rate() -> None:
    built = build_block((i.to_bytes(4, "little") for i in range(20_000)), bytes(range(32)))
    assert 20_000 * 20 <= 8 * built.nbytes <= 20_000 * 22
    assert built.num_keys == 20_000
    asked = 300_000
    found = sum(built.contains_many([b"absent %d" % i for i in range(asked)]))
    expected = asked / 784_931
    assert found <= expected + 6 * expected**0.5 + 1


def test_bip158_bytes_that_lie_are_refused() -> None:
    block_hash = bytes(range(32))
    data = build_block([bytes([i]) for i in range(60)], block_hash).to_foreign()

    def read(lie: bytes) -> Any:
        return open_foreign(lie, "bip158", block_hash=block_hash)

    for cut in range(len(data)):
        with pytest.raises(FormatError, match='format "bip158": '):
            read(data[:cut])
    for lie, field in [
        (data + b"\0", "bytes follow its last hash"),
        (b"\xfd" + data[:1] + b"\0" + data[1:], "takes more bytes than it needs"),
        (b"\xff" + b"\xff" * 8 + data, "its count is 18446744073709551615"),
        (b"\xfe\xff\xff\xff\xff" + data, "its count is 4294967295"),
        (b"\xfd\xff", "its count ends behind"),
        (b"", "it has no count"),
        (b"\1" + b"\xff" * 100, "bits end within hash 0 of 1"),
        (b"\1\xff\xff\0\0\0\0", "beyond the largest"),
    ]:
        with pytest.raises(FormatError, match=field):
            read(lie)
    draw = random.Random(7)
    for _ in range(3000):
        forged = bytearray(data)
        forged[draw.randrange(len(forged))] ^= 1 << draw.randrange(8)
        try:
            accepted = read(bytes(forged))
        except FormatError:
            continue
        assert accepted.to_foreign() == forged


def test_bip158_options_name_what_they_take() -> None:
    with pytest.raises(ParameterError, match="block_hash must have 32 bytes, got 16"):
        build_block([], bytes(16))
    with pytest.raises(ParameterTypeError, match="block_hash must be bytes"):
        build_block([], "00")  # type: ignore[arg-type]
    with pytest.raises(KeyTypeError, match="item 1 of the batch"):
        build_block([b"script", 7], bytes(32))
    with pytest.raises(KeyTypeError, match="a batch takes many keys"):
        build_block(b"script", bytes(32))
