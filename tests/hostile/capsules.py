"""Arrow capsules made by hand, to state what no library would."""

from __future__ import annotations

import ctypes
from typing import Any

Address = ctypes.c_void_p


class Schema(ctypes.Structure):
    """``ArrowSchema``."""

    _fields_ = [
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_char_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", Address),
        ("dictionary", Address),
        ("release", Address),
        ("private_data", Address),
    ]


class Array(ctypes.Structure):
    """``ArrowArray``."""

    _fields_ = [
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", Address),
        ("children", Address),
        ("dictionary", Address),
        ("release", Address),
        ("private_data", Address),
    ]


class Stream(ctypes.Structure):
    """``ArrowArrayStream``."""

    _fields_ = [
        ("get_schema", Address),
        ("get_next", Address),
        ("get_last_error", Address),
        ("release", Address),
        ("private_data", Address),
    ]


#: Everything that C holds an address of.
_kept: list[Any] = []


def keep_alive(thing: Any) -> Any:
    """The thing, alive to the end of the process."""
    _kept.append(thing)
    return thing


def address(thing: Any) -> int:
    """Where a structure, an array or a callback of ctypes lies."""
    return (
        ctypes.cast(keep_alive(thing), Address).value
        if callable(thing)
        else ctypes.addressof(keep_alive(thing))
    )


#: How many structures of each kind were released.
released = {Schema: 0, Array: 0, Stream: 0}


def _release(kind: type) -> int:
    """The address of a callback that releases a structure of this kind."""

    def release(at: int) -> None:
        instance = kind.from_address(at)  # type: ignore[attr-defined]
        assert instance.release, "released twice"
        instance.release = None
        released[kind] += 1

    return address(ctypes.CFUNCTYPE(None, Address)(release))


RELEASE = {kind: _release(kind) for kind in released}


def memory(data: bytes, *, align: int = 64, shift: int = 0) -> int:
    """The address of a copy of `data`, `shift` bytes past a multiple of `align`."""
    room = keep_alive(ctypes.create_string_buffer(len(data) + align + shift))
    start = ctypes.addressof(room)
    start += -start % align + shift
    ctypes.memmove(start, data, len(data))
    return start


def schema(format_: bytes | None, **changes: Any) -> Schema:
    """A schema of this format."""
    instance = Schema(format=format_, name=b"", flags=2, release=RELEASE[Schema])
    for name, value in changes.items():
        setattr(instance, name, value)
    return instance


def array(rows: int, *buffers: int | bytes | None, **changes: Any) -> Array:
    """An array of these buffers, each an address or bytes."""
    addresses = [memory(buffer) if isinstance(buffer, bytes) else buffer for buffer in buffers]
    instance = Array(length=rows, null_count=-1, n_buffers=len(addresses), release=RELEASE[Array])
    instance.buffers = address((Address * max(1, len(addresses)))(*addresses))
    for name, value in changes.items():
        setattr(instance, name, value)
    return instance


_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [Address, ctypes.c_char_p, Address]


def capsule(instance: Any, name: bytes | None = None) -> Any:
    """The structure in a capsule."""
    names = {Schema: b"arrow_schema", Array: b"arrow_array", Stream: b"arrow_array_stream"}
    return _new(address(instance), keep_alive(name or names[type(instance)]), None)


class Column:
    """A column whose export is what it was made with."""

    def __init__(self, made_schema: Schema, made_array: Array) -> None:
        self.pair = capsule(made_schema), capsule(made_array)

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.pair


class Streamed:
    """The same for a stream; it is no column of any length."""

    def __init__(self, export: Any) -> None:
        self.export = export

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.export
