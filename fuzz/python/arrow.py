"""Arrow arrays and streams by the C interface: any format, offsets and views in the buffers, false values.

Buffers are as long as the stated length requires, so every read stays inside them; offsets, views, indices,
bitmaps and counts are whatever the input says. False values are limited to those that a reader can detect:
negative numbers, lengths and offsets beyond all memory, missing buffers, decreasing offsets, views of no
buffer, indices beyond the dictionary, capsules used twice. Without false values, rows that were added
are found as the values that `rows` reads from them.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from driver import Input, fuzz
from rows import RELEASE, Array, Schema, key

import fullbloom  # after the driver, whose hooks it needs

if TYPE_CHECKING:
    from collections.abc import Iterator

FILTER = fullbloom.CountingBloomFilter(4000)
LABELLED = fullbloom.SpatialBloomFilter(4000)
#: What takes hashes, labels, or keys with labels beside them.
HASHED = (
    FILTER.contains_hashed,
    fullbloom.BloomFilter(4000).add_hashed,
    lambda labels: LABELLED.update([1, 2, 3], labels) or (),
    lambda keys: LABELLED.update(keys, 1) or (),
)
_STREAM_SCHEMA = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Schema))
_STREAM_NEXT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Array))
_STREAM_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class Stream(ctypes.Structure):
    """ArrowArrayStream."""

    _fields_ = (
        ("get_schema", _STREAM_SCHEMA),
        ("get_next", _STREAM_NEXT),
        ("get_last_error", _STREAM_ERROR),
        ("release", RELEASE),
        ("private_data", ctypes.c_void_p),
    )


@RELEASE
def release_schema(schema: int) -> None:
    """Mark as released; the memory is Python's."""
    Schema.from_address(schema).release = RELEASE()


@RELEASE
def release_array(array: int) -> None:
    """As above."""
    Array.from_address(array).release = RELEASE()


@RELEASE
def release_stream(stream: int) -> None:
    """As above."""
    Stream.from_address(stream).release = RELEASE()


_NEW = ctypes.pythonapi.PyCapsule_New
_NEW.restype = ctypes.py_object
_NEW.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

WIDTHS = {
    "n": 0, "c": 1, "C": 1, "s": 2, "S": 2, "i": 4, "I": 4, "l": 8, "L": 8, "e": 2, "f": 4, "g": 8, "b": 1,
    "u": 4, "z": 4, "U": 8, "Z": 8, "vu": 16, "vz": 16, "w:0": 0, "w:3": 3, "w:20": 20,
    "tdD": 4, "tdm": 8, "tts": 4, "ttm": 4, "ttu": 8, "ttn": 8, "tss:": 8, "tsm:UTC": 8, "tsu:": 8,
    "tsn:x": 8, "tDs": 8, "tDm": 8, "tDu": 8, "tDn": 8, "d:9,2": 16,
    "d:5,0,32": 4, "d:18,-3,64": 8, "d:76,40,256": 32,
    "d:38,2147483647": 16,
}  # fmt: skip
FORMATS = [
    *WIDTHS,
    "",
    "+s",
    "+s",
    "+s",
    "+l",
    "w:",
    "w:-1",
    "w:99999999999999999999",
    "w:18446744073709551615",
    "tds",
    "tsx:",
    "tiM",
    "\u00e9",
    "d:9",
    "d:9,2,7",
    "d:9,99999999999",
]
DATA = 64
#: Rows and bits of them for which no machine has addresses.
PAST_ALL_MEMORY = (2**51, 2**57 - 1, 2**60, 2**61, 2**62 - 9, 2**62, 2**63 - 9, 2**63 - 1)


class Lender:
    """Owner of all memory of one column; lends it by the interface."""

    def __init__(self, source: Input) -> None:
        self.source = source
        self.kept: list[Any] = []
        self.is_forged = source.below(4) == 0
        self.format = source.choice(FORMATS)
        self.dictionary = source.below(6) == 0
        self.indices = source.choice(["c", "C", "s", "i", "I", "l", "L", "u", "g"])
        self.chunks = source.below(4)
        self.columns: list[Array] = []
        #: Of a struct: what the fields are, structs among them.
        self.fields = self.format_of_fields(0) if self.format == "+s" else []

    def format_of_fields(self, depth: int) -> list[Any]:
        """A format for each field; a list for a struct, which may be one too deep."""
        source = self.source
        instance: list[Any] = []
        for _ in range(source.below(4)):
            deeper = depth < 9 and source.below(4) == 0
            instance.append(self.format_of_fields(depth + 1) if deeper else source.choice(FORMATS))
        return instance

    def pointers(self, structs: list[Any]) -> int:
        """The address of an array of addresses."""
        addresses = [ctypes.addressof(self.keep(struct)) for struct in structs]
        return ctypes.addressof(self.keep((ctypes.c_void_p * max(1, len(structs)))(*addresses)))

    def keep(self, value: Any) -> Any:
        """Hold on to ``value`` until the lender goes."""
        self.kept.append(value)
        return value

    def memory(self, size: int) -> int:
        """The address of ``size`` bytes, the first of them from the input."""
        data = self.source.take(min(size, self.source.below(200))).ljust(size, b"\0")
        return ctypes.addressof(self.keep(ctypes.create_string_buffer(data, max(1, len(data)))))

    def schema(self) -> Schema:
        """The schema."""
        instance = Schema(
            format=(self.indices if self.dictionary else self.format).encode(), name=b"", flags=2
        )
        instance.release = release_schema
        if self.dictionary:
            inner = self.keep(Schema(format=self.format.encode(), name=b""))
            inner.release = release_schema
            instance.dictionary = ctypes.pointer(inner)
        elif self.fields:
            self.add_fields(instance, self.fields)
        self.keep(instance)
        return instance

    def add_fields(self, instance: Schema, fields: list[Any]) -> None:
        """Give the schema of a struct those of its fields."""
        inner = [
            Schema(format=b"+s" if isinstance(kind, list) else kind.encode(), name=b"f") for kind in fields
        ]
        for schema, kind in zip(inner, fields, strict=True):
            schema.release = release_schema
            if isinstance(kind, list):
                self.add_fields(schema, kind)
        instance.n_children, instance.children = len(fields), self.pointers(inner)

    def struct(self, fields: list[Any], rows: int) -> Array:
        """An array of structs of these fields, each as long as it must be, unless values are false."""
        length = rows - self.source.below(2) * min(1, rows) if self.is_forged else rows
        held = []
        for kind in fields:
            least = length + self.source.below(2)
            held.append(self.struct(kind, least) if isinstance(kind, list) else self.array(kind, rows=least))
        bits = self.memory((rows + 7) // 8) if self.source.below(2) else 0
        offset = self.source.below(2) * min(1, rows)
        instance = Array(length=rows - offset, null_count=-1 if bits else 0, offset=offset)
        instance.n_buffers, instance.n_children = 1, len(held)
        if self.is_forged and self.source.below(4) == 0:
            instance.n_children = self.source.choice((-1, 0, 1, 2**40))
        instance.buffers = self.keep((ctypes.c_void_p * 1)(bits))
        instance.children = self.pointers(held)
        instance.release = release_array
        return self.keep(instance)

    def offsets(self, count: int, width: int) -> int:
        """Offsets into DATA bytes: in order, unless values are false."""
        ends = [self.source.below(DATA + 1) for _ in range(count)]
        if not self.is_forged:
            ends.sort()
        elif self.source.below(4) == 0:
            ends = [end - 70 for end in ends]
        kind = ctypes.c_int32 if width == 4 else ctypes.c_int64
        return ctypes.addressof(self.keep((kind * max(1, count))(*ends)))

    def views(self, count: int) -> int:
        """Views: short ones within, long ones in the one buffer."""
        instance = bytearray()
        for _ in range(count):
            length = self.source.below(40)
            if self.is_forged and self.source.below(4) == 0:
                instance += (length - 4).to_bytes(4, "little", signed=True)
                instance += self.source.take(12).ljust(12, b"\0")
            elif length <= 12:
                instance += length.to_bytes(4, "little") + self.source.take(length).ljust(12, b"\0")
            else:
                at = self.source.below(DATA - length)
                instance += (
                    length.to_bytes(4, "little")
                    + bytes(4)
                    + (0).to_bytes(4, "little")
                    + at.to_bytes(4, "little")
                )
        return ctypes.addressof(
            self.keep(ctypes.create_string_buffer(bytes(instance), max(1, len(instance))))
        )

    def array(self, kind: str, *, inner: bool = False, rows: int | None = None) -> Array:
        """An array of ``kind``; within a struct, of ``rows``."""
        length, offset = self.source.below(40), self.source.choice((0, 0, 1, 7, 8, 9))
        length = length if rows is None else rows
        rows, width = length + offset, WIDTHS.get(kind, 8)
        bits = self.memory((rows + 7) // 8) if self.source.below(2) else 0
        if kind in {"u", "z", "U", "Z"}:
            buffers = [bits, self.offsets(rows + 1, width), self.memory(DATA)]
        elif kind in {"vu", "vz"}:
            lengths = self.keep((ctypes.c_int64 * 1)(DATA))
            buffers = [bits, self.views(rows), self.memory(DATA), ctypes.addressof(lengths)]
        else:
            buffers = [bits, self.memory(rows * width)]
        nulls = self.source.choice((0, -1, 1, length))
        if self.is_forged:
            length, offset, nulls = self.falsify(length, offset, nulls, buffers)
        instance = Array(length=length, null_count=nulls, offset=offset, n_buffers=len(buffers))
        instance.buffers = self.keep((ctypes.c_void_p * max(1, len(buffers)))(*buffers))
        if self.is_forged and self.source.below(8) == 0:
            instance.n_buffers = self.source.choice((-1, 0))
        instance.release = release_array
        if self.dictionary and not inner and not (self.is_forged and self.source.below(4) == 0):
            instance.dictionary = ctypes.pointer(self.array(self.format, inner=True))
        return self.keep(instance)

    def falsify(self, length: int, offset: int, nulls: int, buffers: list[int]) -> tuple[int, int, int]:
        """Length, offset and count of nulls, one of them or the buffers untrue."""
        which = self.source.below(6)
        if which == 0:
            length = self.source.choice((-1, -(2**63), -length, *PAST_ALL_MEMORY))
        elif which == 1:
            offset = self.source.choice((-1, -(2**63), *PAST_ALL_MEMORY))
        elif which == 2:
            del buffers[self.source.below(len(buffers)) :]
        elif which == 3:
            buffers[self.source.below(len(buffers))] = 0
        elif which == 4:
            nulls = self.source.choice((-2, 2**62, length + 1))
        return length, offset, nulls

    def column(self) -> Array:
        """The array of the column, or its next chunk."""
        if self.fields and not self.dictionary:
            instance = self.struct(self.fields, self.source.below(40))
        else:
            instance = self.array(self.indices if self.dictionary else self.format)
        self.columns.append(instance)
        return instance

    def stated_rows(self) -> Iterator[Any]:
        """Of each column that was lent the first and the last row that is a key."""
        values = self.format if self.dictionary else None
        kind = self.fields or (self.indices if values else self.format)
        for instance in self.columns:
            for row in {0, instance.length - 1} if instance.length else ():
                stated = key(kind, instance, row, values)
                if stated is not None:
                    yield stated

    def capsule(self, struct: Any, name: bytes) -> Any:
        """The capsule of a structure, or one of another name."""
        if self.is_forged and self.source.below(12) == 0:
            name = b"arrow"
        return _NEW(ctypes.addressof(struct), self.keep(ctypes.c_char_p(name)), None)


class LentArray(Lender):
    """A column that comes as one array."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.capsule(self.schema(), b"arrow_schema"), self.capsule(self.column(), b"arrow_array")


class LentTwice(Lender):
    """A column that lends the same capsules again, which are empty then."""

    def __init__(self, source: Input) -> None:
        super().__init__(source)
        self.pair = self.capsule(self.schema(), b"arrow_schema"), self.capsule(self.column(), b"arrow_array")

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.pair


class LentStream(Lender):
    """A column that comes in chunks."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        def schema(_stream: int, out: Any) -> int:
            ctypes.memmove(out, ctypes.byref(self.schema()), ctypes.sizeof(Schema))
            return 5 if self.is_forged and self.source.below(8) == 0 else 0

        def chunk(_stream: int, out: Any) -> int:
            if self.chunks == 0:
                ctypes.memset(out, 0, ctypes.sizeof(Array))
                return 0
            self.chunks -= 1
            ctypes.memmove(out, ctypes.byref(self.column()), ctypes.sizeof(Array))
            return 5 if self.is_forged and self.source.below(8) == 0 else 0

        instance = self.keep(
            Stream(_STREAM_SCHEMA(schema), _STREAM_NEXT(chunk), _STREAM_ERROR(lambda _: None))
        )
        instance.release = release_stream
        return self.capsule(instance, b"arrow_array_stream")


#: RuntimeError: a stream that fails, or was consumed. ValueError: a capsule of another name.
ALLOWED = (fullbloom.FullbloomError, RuntimeError, ValueError)


def target(source: Input) -> None:
    """One input."""
    column = source.choice((LentArray, LentArray, LentStream, LentTwice))
    acts = [fullbloom.hash_many, FILTER.contains_many, FILTER.update, *HASHED]
    rest = source.data[1:]
    lender = column(Input(rest))
    for act in (source.choice(acts), fullbloom.hash_many):
        if column is not LentTwice:
            lender = column(Input(rest))
        try:
            answer = act(lender)
        except ALLOWED:
            continue
        if answer is not None:
            len(answer)
        elif not lender.is_forged:
            for row in lender.stated_rows():
                try:
                    found = row in FILTER
                except fullbloom.KeyTypeError:  # longer than tuples may be where fuzzing has a small bound
                    continue
                assert found, row
    if FILTER.num_added > 3500:
        FILTER.clear()


if __name__ == "__main__":
    fuzz(target)
