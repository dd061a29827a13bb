"""Arrow columns that state what cannot be are refused, and what is allowed though odd is read right."""

from __future__ import annotations

import contextlib
import ctypes
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from cases import for_each
from hostile.capsules import (
    RELEASE,
    Array,
    Column,
    Schema,
    Stream,
    Streamed,
    address,
    array,
    capsule,
    memory,
    released,
    schema,
)

import fullbloom

if TYPE_CHECKING:
    from collections.abc import Callable


def assert_refused(column: Callable[[], Any], match: str = "key") -> None:
    """Every call refuses the column and adds nothing; what was taken over is released once."""
    bloom, layered = fullbloom.BloomFilter(100), fullbloom.SpatialBloomFilter(100)
    ways: list[Callable[[Any], Any]] = [
        bloom.update,
        bloom.add_many,
        bloom.contains_many,
        fullbloom.hash_many,
    ]
    ways.append(lambda keys: layered.update(keys, 1))
    # Columns of hashes, and of numbers beside keys, are read by the same rules.
    numbers: list[Callable[[Any], Any]] = [
        bloom.add_hashed,
        bloom.contains_hashed,
        lambda labels: layered.update([1, 2], labels),
        lambda values: fullbloom.CompactApproximator(100).update([1, 2], values),
        lambda values: fullbloom.BloomierMap.build([1, 2], values),
    ]
    for way in numbers:
        with pytest.raises(fullbloom.FullbloomError):
            way(column())
    for way in ways:
        before = dict(released)
        instance = column()
        with pytest.raises(fullbloom.KeyTypeError, match=match):
            way(instance)
        if isinstance(instance, Column):
            taken = released[Array] - before[Array], released[Schema] - before[Schema]
            assert taken in {(1, 1), (0, 1), (1, 0)}, taken
    assert bloom.num_added == layered.num_added == 0


def words(*numbers: int, kind: str = "i") -> bytes:
    """The numbers as an array in C."""
    return struct.pack(f"{len(numbers)}{kind}", *numbers)


def view(text: bytes, buffer: int = 0, offset: int = 0, length: int | None = None) -> bytes:
    """A view of Arrow."""
    length = len(text) if length is None else length
    if 0 <= length <= 12:
        return struct.pack("i12s", length, text)
    return struct.pack("i4sii", length, text[:4], buffer, offset)


LONG = b"a text longer than twelve bytes"
SIZES = words(len(LONG), kind="q")

#: One column of two rows of each layout: its format and its buffers.
LAYOUTS: dict[bytes, list[Any]] = {
    **{
        name: [None, bytes(16)]
        for name in (b"c", b"C", b"s", b"S", b"i", b"I", b"l", b"L", b"e", b"f", b"g", b"b")
    },
    b"w:3": [None, b"abcdef"],
    **{
        name: [None, bytes(64)]
        for name in b"tdD tdm tts ttn tsu: tsn:UTC tDm d:9,2,32 d:9,2,64 d:9,2 d:9,-2,128 d:76,2,256".split()
    },
    b"u": [None, words(0, 1, 3), b"abb"],
    b"z": [None, words(0, 1, 3), b"abb"],
    b"U": [None, words(0, 1, 3, kind="q"), b"abb"],
    b"Z": [None, words(0, 1, 3, kind="q"), b"abb"],
    b"vu": [None, view(b"short") + view(LONG), LONG, SIZES],
    b"vz": [None, view(b"short") + view(LONG), LONG, SIZES],
}

#: What is wrong with an array of any layout.
WRONG: dict[str, dict[str, Any]] = {
    "negative length": {"length": -1},
    "the least length": {"length": -(2**63)},
    "the greatest length": {"length": 2**63 - 1},
    "negative offset": {"offset": -1},
    "the greatest offset": {"offset": 2**63 - 1},
    "both": {"length": 2**63 - 1, "offset": 2**63 - 1},
    "rows past all memory": {"length": 2**62},
    "an offset past all memory": {"offset": 2**61},
    "an offset whose bits lie past all memory": {"offset": 2**51},
    "an offset close to a turn": {"offset": 2**62 - 9},
    "a null count and an offset": {"offset": 2**62, "null_count": 0},
    "an offset close to the other turn": {"offset": 2**63 - 9, "null_count": 0},
    "no rows, and an offset": {"length": 0, "offset": 2**63 - 1, "null_count": 0},
    "buffers past all memory": {"n_buffers": 2**62},
    "fewer nulls than none": {"null_count": -2},
    "more nulls than rows": {"null_count": 3},
    "nulls without a bitmap": {"null_count": 1},
    "no buffers": {"n_buffers": 0},
    "one buffer": {"n_buffers": 1},
    "a negative number of buffers": {"n_buffers": -1},
    "buffers nowhere": {"buffers": None},
    "buffers in the first page": {"buffers": 64},
    "buffers at an odd address": {"buffers": memory(bytes(64), shift=3)},
    "a dictionary out of place": {"dictionary": address(array(0, None, None))},
}


@for_each("format_", LAYOUTS)
def test_every_arrow_layout_is_read(format_: bytes) -> None:
    keys = Column(schema(format_), array(2, *LAYOUTS[format_]))
    before = dict(released)
    assert pa.array(fullbloom.hash_many(keys)).null_count == 0
    assert released == {**before, Array: before[Array] + 1, Schema: before[Schema] + 1}


@for_each("wrong", WRONG)
@for_each("format_", LAYOUTS)
def test_impossible_numbers_are_refused(format_: bytes, wrong: str) -> None:
    """With a bitmap, too, where they say where it lies."""
    for bits in (None, b"\1") if WRONG[wrong].keys() & {"length", "offset"} else (None,):
        assert_refused(
            lambda b=bits: Column(schema(format_), array(2, b, *LAYOUTS[format_][1:], **WRONG[wrong]))
        )


@for_each("format_", LAYOUTS)
@for_each("at", [None, 1, 4095, 2**63, 2**64 - 4096])
def test_buffers_at_impossible_addresses_are_refused(format_: bytes, at: int | None) -> None:
    plain = LAYOUTS[format_]
    for i in range(1, len(plain)):
        assert_refused(lambda i=i: Column(schema(format_), array(2, *plain[:i], at, *plain[i + 1 :])))


@for_each("format_", LAYOUTS)
def test_columns_without_rows_need_no_data(format_: bytes) -> None:
    buffers = [None] * (3 if format_.startswith(b"v") else len(LAYOUTS[format_]))
    assert pa.array(fullbloom.hash_many(Column(schema(format_), array(0, *buffers)))).to_pylist() == []


@for_each(
    "format_", [b"", None, b"w:", b"w:-1", b"w:1e3", b"w:" + b"9" * 30, b"\xff", b"+l", b"tiM", b"?" * 500]
)
def test_formats_that_hold_no_keys(format_: bytes | None) -> None:
    assert_refused(lambda: Column(schema(format_), array(2, None, bytes(64))))


@for_each("offsets", [(1, 0, 3), (0, 3, 2), (-1, 0, 1), (0, -1, 1), (5, 4, 3), (0, 2**31 - 1, -1)])
def test_decreasing_offsets_are_refused(offsets: tuple[int, ...]) -> None:
    for formats, kind in ((b"uz", "i"), (b"UZ", "q")):
        for format_ in formats:
            data = words(*offsets, kind=kind)
            assert_refused(
                lambda f=format_, d=data: Column(schema(bytes([f])), array(2, None, d, b"abc")), "fall"
            )


@for_each(
    "wild",
    [
        view(LONG, buffer=1),
        view(LONG, buffer=-1),
        view(LONG, buffer=2**31 - 1),
        view(LONG, offset=1),
        view(LONG, offset=-1),
        view(LONG, offset=2**31 - 1),
        view(LONG, length=len(LONG) + 1),
        view(LONG, length=2**31 - 1),
        view(LONG, length=-1),
        view(LONG, length=-(2**31)),
    ],
)
def test_views_outside_their_buffers_are_refused(wild: bytes) -> None:
    def column(nulls: Any) -> Column:
        return Column(schema(b"vu"), array(2, nulls, view(LONG) + wild, LONG, SIZES))

    assert_refused(lambda: column(None), "outside")
    # The view of a null may be anything.
    hashes = pa.array(fullbloom.hash_many(column(b"\x01"))).to_pylist()
    assert hashes == [fullbloom.hash_key(LONG), None]


@pytest.mark.parametrize("sizes", [words(-1, kind="q"), words(-(2**63), kind="q")])
def test_negative_buffer_sizes_are_refused(sizes: bytes) -> None:
    assert_refused(lambda: Column(schema(b"vu"), array(1, None, view(LONG), LONG, sizes)), "bytes of text")


@for_each("kind", "cCsSiIlL")
def test_columns_of_whole_numbers_are_hashes_and_values(kind: str) -> None:
    """Of any exporter: a library that lists a column reads what the column says, wherever that lies."""

    def column(*numbers: int, nulls: bytes | None = None) -> Column:
        return Column(
            schema(kind.encode()), array(len(numbers), nulls, words(*numbers, kind=INDEX_KINDS[kind]))
        )

    bloom = fullbloom.BloomFilter(10)
    assert pa.array(bloom.add_hashed(column(5, 7, nulls=b"\1"))).to_pylist() == [True, None]
    assert pa.array(bloom.contains_hashed(column(7, 5))).to_pylist() == [False, True]
    assert fullbloom.BloomierMap.build(["a", "b"], column(5, 7), check_bits=30)["b"] == 7
    layered = fullbloom.SpatialBloomFilter(10)
    layered.update(["a", "b"], column(2, 3))
    assert layered.label_many(["b", "a"]) == [3, 2]
    with pytest.raises(fullbloom.ParameterTypeError, match="label must be a whole number, got None"):
        layered.update(["a", "b"], column(2, 3, nulls=b"\1"))
    for other in (column(1), column(1, 2, 3)):
        with pytest.raises(fullbloom.ParameterError, match=r"as many labels as keys, got .* for 2 keys"):
            layered.update(["a", "b"], other)
    if kind.islower():
        for call in (bloom.add_hashed, bloom.contains_hashed):
            with pytest.raises(
                fullbloom.ParameterError, match=r"a hash must be between 0 and 2\*\*64 - 1, got -7"
            ):
                call(column(5, -7))
            # Of a null it may be anything.
            assert pa.array(call(column(5, -7, nulls=b"\1"))).to_pylist()[1] is None
        with pytest.raises(fullbloom.ParameterError, match=r"values must be between 0 and .*, got -7"):
            fullbloom.BloomierMap.build(["a", "b"], column(5, -7))


@for_each("format_", sorted(LAYOUTS.keys() - {kind.encode() for kind in "cCsSiIlL"}))
def test_columns_of_other_types_are_refused_as_hashes_and_values(format_: bytes) -> None:
    def column() -> Column:
        return Column(schema(format_), array(2, *LAYOUTS[format_]))

    for call in (fullbloom.BloomFilter(10).add_hashed, fullbloom.BloomFilter(10).contains_hashed):
        with pytest.raises(fullbloom.KeyTypeError, match="hashes must be whole numbers"):
            call(column())
    with pytest.raises(fullbloom.ParameterTypeError, match="values must be a whole number, got an Arrow"):
        fullbloom.BloomierMap.build(["a", "b"], column())


INDEX_KINDS = {"c": "b", "C": "B", "s": "h", "S": "H", "i": "i", "I": "I", "l": "q", "L": "Q"}


def encoded(kind: str, indices: tuple[int, ...], nulls: bytes | None = None, **changes: Any) -> Column:
    """A dictionary column over the values "a", "bb" and null."""
    values = array(3, b"\x03", words(0, 1, 3, 3), b"abb")
    outer = schema(kind.encode(), dictionary=address(schema(b"u")))
    data = words(*indices, kind=INDEX_KINDS[kind])
    settings = {"dictionary": address(values), **changes}
    return Column(outer, array(len(indices), nulls, data, **settings))


@for_each("kind", INDEX_KINDS)
def test_dictionary_indices_are_checked(kind: str) -> None:
    a, bb = fullbloom.hash_key("a"), fullbloom.hash_key("bb")
    hashes = fullbloom.hash_many(encoded(kind, (0, 1, 2, 1)))
    assert pa.array(hashes).to_pylist() == [a, bb, None, bb]
    top = 2 ** (8 * struct.calcsize(INDEX_KINDS[kind]) - kind.islower()) - 1
    for wild in (3, top, *((-1, -top - 1) if kind.islower() else ())):
        assert_refused(lambda wild=wild: encoded(kind, (0, wild)), "index")
        # The index of a null may be anything.
        hashes = fullbloom.hash_many(encoded(kind, (0, wild), b"\x01"))
        assert pa.array(hashes).to_pylist() == [a, None]


@for_each("kind", INDEX_KINDS)
def test_dictionaries_are_accepted_as_hashes(kind: str) -> None:
    """A column of pyarrow with such an index killed the process when it was listed."""

    def column(*indices: int, nulls: bytes | None = None) -> Column:
        values = array(3, b"\3", words(50, 70, 90, kind="Q"))
        outer = schema(kind.encode(), dictionary=address(schema(b"L")))
        data = words(*indices, kind=INDEX_KINDS[kind])
        return Column(outer, array(len(indices), nulls, data, dictionary=address(values)))

    bloom = fullbloom.BloomFilter(10)
    assert pa.array(bloom.add_hashed(column(0, 2, 1, 0))).to_pylist() == [True, None, True, False]
    assert bloom.contains_hashed([50, 70, 90]) == [True, True, False]
    for wild in (3, 100, *((-1, -100) if kind.islower() else ())):
        assert_refused(lambda wild=wild: column(0, wild), "index")
        instance = pa.DictionaryArray.from_arrays(
            pa.array([0, abs(wild) + 2]), pa.array([50, 70]), safe=False
        )
        for call in (bloom.add_hashed, bloom.contains_hashed):
            with pytest.raises(fullbloom.KeyTypeError, match="index"):
                call(instance)
            assert pa.array(call(column(0, wild, nulls=b"\1"))).to_pylist()[1] is None


def test_missing_dictionaries_are_refused() -> None:
    assert_refused(lambda: encoded("i", (0, 1), dictionary=None), "dictionary")
    assert_refused(lambda: encoded("i", (0, 1), dictionary=8), "dictionary")
    assert_refused(
        lambda: Column(schema(b"i", dictionary=8), array(1, None, words(0), dictionary=8)), "dictionary"
    )
    assert_refused(lambda: encoded("i", (0, 1), dictionary=address(array(-1, None, words(0), b""))), "length")
    inner = schema(b"c", dictionary=address(schema(b"u")))
    nested = array(1, None, b"\0", dictionary=address(array(1, None, words(0, 1), b"a")))
    outer = {"dictionary": address(inner)}
    assert_refused(
        lambda: Column(schema(b"c", **outer), array(1, None, b"\0", dictionary=address(nested))),
        "dictionaries",
    )


@pytest.mark.parametrize("null_count", [-1, 0, 1, 2])
def test_the_null_bitmap_is_used_and_the_null_count_is_not_trusted(null_count: int) -> None:
    keys = Column(schema(b"l"), array(2, b"\x02", words(5, 7, kind="q"), null_count=null_count))
    assert pa.array(fullbloom.hash_many(keys)).to_pylist() == [None, fullbloom.hash_key(7)]


@for_each("length", [0, 1, 7, 8, 9, 64, 200])
@for_each("offset", [0, 1, 7, 8, 13])
def test_nulls_are_found_at_every_offset(length: int, offset: int) -> None:
    data = words(*range(length + offset), kind="q")
    for null in [*range(0, length, 5), length - 1, None]:
        # Bits outside of the column are zero: they are no nulls of its.
        bits = ((1 << length) - 1 & ~(0 if null is None else 1 << null % max(1, length))) << offset
        bitmap = bits.to_bytes((length + offset) // 8 + 1, "little")
        keys = Column(schema(b"l"), array(length, bitmap, data, offset=offset))
        expected = [None if i == null else fullbloom.hash_key(i + offset) for i in range(length)]
        assert pa.array(fullbloom.hash_many(keys)).to_pylist() == expected


@for_each("format_", LAYOUTS)
def test_data_may_lie_at_any_address(format_: bytes) -> None:
    plain = LAYOUTS[format_]
    moved = [data if data is None else memory(data, shift=3) for data in plain]
    hashes = [
        pa.array(fullbloom.hash_many(Column(schema(format_), array(2, *buffers))))
        for buffers in (plain, moved)
    ]
    assert hashes[0].equals(hashes[1])


@pytest.mark.parametrize("kind", ["pair", "stream", "our own"])
def test_a_consumed_column_is_refused(kind: str) -> None:
    exporters: dict[str, Any] = {
        "pair": pa.array(["a", "b"]),
        "our own": fullbloom.hash_many(Column(schema(b"l"), array(2, None, bytes(16)))),
    }
    if kind == "stream":
        keys: Any = Streamed(pa.chunked_array([["a"], ["b"]]).__arrow_c_stream__())
    else:
        keys = Column.__new__(Column)
        keys.pair = exporters[kind].__arrow_c_array__()
    fullbloom.hash_many(keys)
    assert_refused(lambda: keys if kind == "stream" else Reused(keys), "consumed")


class Reused:
    """A column that was exported before."""

    def __init__(self, column: Column) -> None:
        self.column = column

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.column.pair


@pytest.mark.parametrize("changes", [{"release": None}, {"get_schema": None}])
def test_released_streams_are_refused(changes: dict[str, Any]) -> None:
    assert_refused(lambda: Streamed(capsule(stream([], **changes))), "consumed")


def test_a_stream_without_callbacks_is_refused() -> None:
    assert_refused(lambda: Streamed(capsule(stream([], get_next=None))), "chunks")


@for_each("export", [None, 5, "capsule", (), (1,), (1, 2), (1, 2, 3), [1, 2]])
def test_exports_that_are_not_capsules_are_refused(export: Any) -> None:
    assert_refused(lambda: Streamed(export), "capsule")


def test_capsules_with_other_names_are_refused() -> None:
    assert_refused(lambda: Streamed(capsule(array(0), b"arrow_array")), "capsule")
    assert_refused(lambda: Streamed((capsule(array(0)), capsule(schema(b"l")))), "capsule")


def stream(chunks: list[Array], code: int = 0, **changes: Any) -> Stream:
    """A stream of these chunks of int64, after which it ends, or fails with `code`."""
    left = iter(chunks)

    def get_schema(_: int, out: int) -> int:
        ctypes.memmove(out, address(schema(b"l")), ctypes.sizeof(Schema))
        return 0

    def get_next(_: int, out: int) -> int:
        chunk = next(left, None)
        if chunk is None:
            return code
        ctypes.memmove(out, address(chunk), ctypes.sizeof(Array))
        return 0

    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    instance = Stream(
        get_schema=address(callback(get_schema)),
        get_next=address(callback(get_next)),
        release=RELEASE[Stream],
    )
    for name, value in changes.items():
        setattr(instance, name, value)
    return instance


def numbers(*values: int, **changes: Any) -> Array:
    """A chunk of a stream."""
    return array(len(values), None, words(*values, kind="q"), **changes)


def test_chunks_before_a_forged_one_are_added() -> None:
    bloom = fullbloom.BloomFilter(100)
    before = dict(released)
    with pytest.raises(fullbloom.KeyTypeError, match="length"):
        bloom.update(Streamed(capsule(stream([numbers(1, 2), numbers(3, length=-1), numbers(4)]))))
    assert [key in bloom for key in range(5)] == [False, True, True, False, False]
    assert released == {Stream: before[Stream] + 1, Array: before[Array] + 2, Schema: before[Schema] + 1}


def test_a_failing_stream_raises_after_its_chunks_are_added() -> None:
    bloom = fullbloom.BloomFilter(100)
    with pytest.raises(RuntimeError, match="stream failed"):
        bloom.update(Streamed(capsule(stream([numbers(1, 2)], code=5))))
    assert bloom.num_added == 2


def test_a_stream_is_read_lazily() -> None:
    """Each chunk is released before the next is requested, so a long stream takes no memory."""
    alive = []

    def chunks() -> Any:
        for i in range(50):
            alive.append(instance - released[Array] + i)
            yield numbers(i)

    instance = released[Array]
    bloom = fullbloom.BloomFilter(100)
    bloom.update(Streamed(capsule(stream(chunks()))))
    assert bloom.num_added == 50
    assert max(alive) <= 1


def test_fuzzed_numbers_of_every_layout_give_an_error_or_a_result() -> None:
    """Any number in every field that is checked: it leads to memory that is there, or past all memory."""
    rng = np.random.default_rng(7)
    room = bytes(4096)
    bloom, layered = fullbloom.BloomFilter(100), fullbloom.SpatialBloomFilter(100)
    ways: list[Callable[[Any], Any]] = [
        fullbloom.hash_many,
        bloom.contains_many,
        bloom.update,
        bloom.add_hashed,
    ]
    ways += [
        bloom.contains_hashed,
        lambda keys: layered.update(keys, 1),
        lambda one: layered.update([1], one),
    ]

    def extent() -> int:
        """A number of rows: few, of no data at hand, or so many that what they take is past all memory."""
        if rng.integers(4):
            return int(rng.integers(-3, 60))
        return min(2 ** int(rng.choice([51, 57, 60, 61, 62, 63])) + int(rng.integers(-70, 70)), 2**63 - 1)

    for _ in range(4000):
        format_ = list(LAYOUTS)[rng.integers(len(LAYOUTS))]
        plain = [room if data is not None else None for data in LAYOUTS[format_]]
        plain[0] = [None, room][rng.integers(2)]
        changes = {"length": extent(), "offset": extent(), "null_count": extent()}
        changes["n_buffers"] = int(rng.integers(-1, len(plain) + 1))
        if rng.integers(4) == 0:
            values = array(0, *plain, length=extent(), offset=extent())
            changes["dictionary"] = address(values)
            outer = schema(b"cCsSiIlL"[(at := rng.integers(8)) : at + 1], dictionary=address(schema(format_)))
            column = Column(outer, array(0, plain[0], room, **{**changes, "n_buffers": 2}))
        else:
            column = Column(schema(format_), array(0, *plain, **changes))
        with contextlib.suppress(fullbloom.FullbloomError):
            ways[rng.integers(len(ways))](column)
