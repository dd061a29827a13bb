"""Keys that hold themselves, nest without end or encode to more than fits: an error of the tree, and soon."""

from __future__ import annotations

import functools
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import for_each
from support import Variant, every_variant, show

import fullbloom

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDS = {
    "one field": "[('a', object)]",
    "two fields": "[('a', object), ('b', object)]",
    "a field of records": "[('a', [('b', object)])]",
}

# A fault here ends the process, so it is one of its own.
PROGRAM = """
import numpy as np
import fullbloom
f = fullbloom.BloomFilter(9)
calls = [f.add, fullbloom.hash_key, lambda key: f.update([key]), lambda key: f.update({'k': key}.values())]
key = np.zeros(1, DTYPE)[0]
inner = key
while inner.dtype[0].names:
    inner = inner[0]
for value in (key, (key,), (1, (key, key))):
    for name in inner.dtype.names:
        inner[name] = value
    for call in calls:
        try:
            call(key)
        except fullbloom.KeyTypeError as error:
            print(error)
"""


def doubled(times: int, key: Any = ()) -> Any:
    """A tuple of two equal tuples of two equal tuples ..."""
    return functools.reduce(lambda inner, _: (inner, inner), range(times), key)


@pytest.mark.parametrize("dtype", RECORDS)
def test_a_record_that_holds_itself_nests_too_deep(dtype: str) -> None:
    program = PROGRAM.replace("DTYPE", RECORDS[dtype])
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-300:])
    assert done.stdout.count("64 levels") == 12


def test_records_are_the_tuples_of_their_fields() -> None:
    record = np.zeros(1, [("a", "i4"), ("b", "U3"), ("c", [("d", "f8"), ("e", "S2")])])[0]
    assert fullbloom.hash_key(record) == fullbloom.hash_key((0, "", (0.0, b"")))
    assert fullbloom.hash_key((record, 1)) == fullbloom.hash_key(((0, "", (0.0, b"")), 1))


@pytest.mark.parametrize("depth", [1, 63, 64])
def test_tuples_nest_64_deep(depth: int) -> None:
    key: Any = functools.reduce(lambda inner, _: (inner,), range(depth - 1), (1,))
    assert fullbloom.hash_key(key) != fullbloom.hash_key((key,) if depth < 64 else (2,))
    if depth == 64:
        with pytest.raises(fullbloom.KeyTypeError, match="64 levels"):
            fullbloom.hash_key((key,))


LONG_KEYS: dict[str, Callable[[], Any]] = {
    "40 doublings": lambda: doubled(40),
    "63 doublings": lambda: doubled(63),
    "doublings of text": lambda: doubled(30, ("a" * 1000,)),
    "doublings of records": lambda: doubled(30, np.zeros(1, [("a", "i4")])[0]),
    "many empty parts": lambda: ((),) * 2_000_000,
    "a long text": lambda: ("a" * (16 << 20),),
    "long bytes": lambda: (1, b"a" * (16 << 20)),
    "a long bytearray": lambda: (bytearray(16 << 20), 1),
    "a long integer": lambda: (1 << (8 * (16 << 20)),),
}


@for_each("name", LONG_KEYS)
def test_a_tuple_takes_at_most_16_mib_encoded(name: str) -> None:
    key = LONG_KEYS[name]()
    for call in (fullbloom.hash_key, fullbloom.BloomFilter(9).add, lambda key: fullbloom.hash_many([key])):
        with pytest.raises(fullbloom.KeyTypeError, match=r"16777216 bytes"):
            call(key)


class Asked:
    """A part that counts how often its value is read, as a scalar of NumPy or as a UUID."""

    def __init__(self, value: Any) -> None:
        self.value, self.times = value, 0
        self.dtype = None

    def item(self) -> Any:
        self.times += 1
        return self.value

    @property
    def bytes(self) -> bytes:
        return bytes(self.item())


class Long(int):
    """An int beyond 64 bits that counts how often its bits are read."""

    times = 0

    def bit_length(self) -> int:
        self.times += 1
        return super().bit_length()


Scalar = type("Scalar", (Asked,), {"__module__": "numpy"})
Identifier = type("UUID", (Asked,), {"__module__": "uuid"})


@pytest.mark.long
@for_each(
    "instance",
    [
        lambda: Scalar(()),
        lambda: Scalar((1, 2)),
        lambda: Scalar(7),
        lambda: Scalar(1 << 80),
        lambda: Identifier(b"sixteen symbols!"),
        lambda: Long(1 << 80),
    ],
)
def test_a_repeated_part_of_a_tuple_is_encoded_once(instance: Any) -> None:
    """Only after 64 KiB is it remembered; 16 MiB would ask 600,000 times, for 2 us each."""
    part = instance()
    with pytest.raises(fullbloom.KeyTypeError, match="16777216 bytes"):
        fullbloom.hash_key(doubled(30, part))
    assert part.times < (64 << 10) // 9 + 64
    # A thousand are.
    parts = [instance() for _ in range(2000)]
    with pytest.raises(fullbloom.KeyTypeError, match="16777216 bytes"):
        fullbloom.hash_key(doubled(30, tuple(parts)))
    asked = sorted(part.times for part in parts)
    assert asked[0] <= (64 << 10) // 9 // 2000 + 2


@for_each("part", [7, (), (1, (2,)), "text", 1 << 80, -(1 << 63) - 1])
def test_a_cached_part_encodes_as_an_uncached_one(part: Any) -> None:
    deep = functools.reduce(lambda inner, _: (inner, inner), range(5), Scalar(part))
    plain = functools.reduce(lambda inner, _: (inner, inner), range(5), part)
    for head in ("", "a" * (64 << 10)):
        assert fullbloom.hash_key((head, deep, (deep,), 1)) == fullbloom.hash_key((head, plain, (plain,), 1))


def test_a_cached_part_nests_no_deeper_than_an_uncached_one() -> None:
    part, head = Scalar(((),)), "a" * (64 << 10)

    def nested(depth: int) -> Any:
        return functools.reduce(lambda inner, _: (inner,), range(depth), part)

    fullbloom.hash_key((head, nested(60), nested(61)))
    with pytest.raises(fullbloom.KeyTypeError, match="64 levels"):
        fullbloom.hash_key((head, nested(60), nested(62)))


def test_a_tuple_of_exactly_16_mib_is_accepted() -> None:
    longest = b"a" * ((16 << 20) - 9)
    assert fullbloom.hash_key((longest,)) == fullbloom.hash_key((bytearray(longest),))
    with pytest.raises(fullbloom.KeyTypeError):
        fullbloom.hash_key((longest, ()))


def test_views_of_python_objects_are_refused() -> None:
    with pytest.raises(fullbloom.KeyTypeError, match="objects"):
        fullbloom.hash_key(memoryview(np.array(["a"], object)))


@for_each(
    "view",
    [
        memoryview(b"0123456789ab"),
        memoryview(b"0123456789ab")[::-1],
        memoryview(b"0123456789ab")[1::3],
        memoryview(b"0123456789ab").cast("B", (3, 4)),
        memoryview(b"0123456789ab").cast("i"),
        memoryview(np.arange(12, dtype="i2").reshape(3, 4).T),
        memoryview(np.zeros((0, 3))),
        memoryview(b""),
        memoryview(bytearray(b"abc")),
    ],
    ids=show,
)
def test_a_memoryview_hashes_as_its_bytes(view: memoryview) -> None:
    assert fullbloom.hash_key(view) == fullbloom.hash_key(bytes(view))
    assert fullbloom.hash_key((view, 1)) == fullbloom.hash_key((bytes(view), 1))


class Text(str):
    __slots__ = ()


class Data(bytes):
    __slots__ = ()


@for_each(
    ("key", "same"),
    [
        (Text("é" * 300), "é" * 300),
        (Data(b"\xff" * 300), b"\xff" * 300),
        (bytearray(b"\xff" * 300), b"\xff" * 300),
        (np.str_("é"), "é"),
        (np.bytes_(b"ab"), b"ab"),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), 1),
        (np.float32(0.5), 0.5),
    ],
    ids=lambda key: type(key).__name__,
)
def test_a_part_of_a_tuple_is_encoded_like_a_key(key: Any, same: Any) -> None:
    assert fullbloom.hash_key(key) == fullbloom.hash_key(same)
    assert fullbloom.hash_key((0, key, (key,))) == fullbloom.hash_key((0, same, (same,)))


@for_each("key", [("a", 1), (), "a", 5, b"x", np.int64(7)], ids=show)
@for_each("variant", every_variant("remove", "keys"))
def test_the_key_error_of_a_removal_has_the_whole_key(variant: Variant, key: Any) -> None:
    with pytest.raises(KeyError) as caught:
        variant.make(100).remove(key)
    assert caught.value.args == (key,)


@pytest.mark.parametrize("point", [0xFFFFFFFF, 0x110000])
def test_a_record_with_invalid_unicode_is_refused(point: int) -> None:
    """Of which NumPy says SystemError."""
    codes = np.array([65, 1, point, 2, 66, 3], np.uint32)
    records = codes.view([("text", "U1"), ("count", "i4")])
    instance = fullbloom.BloomFilter(9)
    for call in (instance.add, fullbloom.hash_key, instance.__contains__):
        with pytest.raises(fullbloom.KeyTypeError, match=r"NumPy cannot read this numpy\.void"):
            call(records[1])
    for batch in (instance.update, instance.contains_many, fullbloom.hash_many):
        with pytest.raises(fullbloom.KeyTypeError, match="item 1 of the batch"):
            batch(records)
