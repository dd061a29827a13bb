"""Formats of blockchains: the vectors that their specifications and reference programs publish."""

from __future__ import annotations

import copy
import json
import pickle
import random
from pathlib import Path

import pytest
from cases import for_each
from compat.foreign.keccak import keccak256

from fullbloom import ForeignFilter, FormatError, ParameterError, ParameterTypeError
from fullbloom.formats import detect, open_foreign
from fullbloom.formats.bip158 import BlockFilter
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
    assert detect(data) == "bip37"
    read = open_foreign(data)
    assert read == bloom
    assert (read.format, read.seed, read.num_hashes, read.num_bits) == ("bip37-all", tweak, 5, 24)


def test_the_flag_of_a_bip37_filter_is_its_format() -> None:
    data = bytes.fromhex(FILTERS[0])
    for flag, name in enumerate(["bip37", "bip37-all", "bip37-p2pubkey"]):
        flagged = data[:-1] + bytes([flag])
        assert open_foreign(flagged).format == name
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
        assert BlockFilter.build(order, block_hash).to_bytes() == data
    read = BlockFilter(data, block_hash)
    assert len(read) == len(scripts)
    assert read.match_many(scripts) == [True] * len(scripts)
    assert not read.match_any([b"absent", b""])
    if scripts:
        assert scripts[0] in read
        assert read.match_any([b"absent", scripts[-1]])
    assert pickle.loads(pickle.dumps(read)) == copy.copy(read) == read
    assert read != BlockFilter(data, bytes(32))


def test_bip158_finds_other_elements_at_its_rate() -> None:
    built = BlockFilter.build((i.to_bytes(4, "little") for i in range(20_000)), bytes(range(32)))
    assert 20_000 * 20 <= 8 * len(built.to_bytes()) <= 20_000 * 22
    asked = 300_000
    found = sum(built.match_many([b"absent %d" % i for i in range(asked)]))
    expected = asked / 784_931
    assert found <= expected + 6 * expected**0.5 + 1


def test_bip158_bytes_that_lie_are_refused() -> None:
    block_hash = bytes(range(32))
    data = BlockFilter.build([bytes([i]) for i in range(60)], block_hash).to_bytes()
    for cut in range(len(data)):
        with pytest.raises(FormatError, match='format "bip158": '):
            BlockFilter(data[:cut], block_hash)
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
            BlockFilter(lie, block_hash)
    draw = random.Random(7)
    for _ in range(3000):
        forged = bytearray(data)
        forged[draw.randrange(len(forged))] ^= 1 << draw.randrange(8)
        try:
            read = BlockFilter(bytes(forged), block_hash)
        except FormatError:
            continue
        assert read.to_bytes() == forged


def test_bip158_options_name_what_they_take() -> None:
    with pytest.raises(ParameterError, match="block_hash must have 32 bytes, got 16"):
        BlockFilter.build([], bytes(16))
    with pytest.raises(ParameterTypeError, match="block_hash must be bytes"):
        BlockFilter.build([], "00")  # type: ignore[arg-type]
    with pytest.raises(ParameterTypeError, match="an element must be bytes, got str"):
        BlockFilter.build(["script"], bytes(32))  # type: ignore[list-item]
    with pytest.raises(ParameterTypeError, match="elements must be many"):
        BlockFilter.build(b"script", bytes(32))  # type: ignore[arg-type]
    with pytest.raises(ParameterTypeError, match="data must be bytes"):
        BlockFilter("00", bytes(32))  # type: ignore[arg-type]
