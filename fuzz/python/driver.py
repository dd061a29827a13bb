"""Runs a Python function under libFuzzer, guided by the coverage of the extension.

The extension is built with LLVM's coverage and leaves its hooks open; the driver, libFuzzer as a shared
library, is loaded before it and closes them. What is not one of the errors that a target allows, a panic
above all, aborts, and libFuzzer keeps the input.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
_LIBRARY = ctypes.CDLL(os.environ["BLOOMERY_FUZZ_DRIVER"], mode=ctypes.RTLD_GLOBAL)


class Input:
    """The bytes of an input, taken from the front; zeros once they have run out."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def __bool__(self) -> bool:
        return self.at < len(self.data)

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes, or what is left."""
        taken = self.data[self.at : self.at + count]
        self.at += len(taken)
        return taken

    def byte(self) -> int:
        """The next byte."""
        if self.at >= len(self.data):
            return 0
        self.at += 1
        return self.data[self.at - 1]

    def below(self, bound: int) -> int:
        """A number below ``bound``, which is at most 256."""
        return self.byte() % bound

    def number(self, size: int, *, signed: bool = True) -> int:
        """A whole number of ``size`` bytes."""
        return int.from_bytes(self.take(size), "little", signed=signed)

    def choice(self, among: Any) -> Any:
        """One of a sequence."""
        return among[self.below(len(among))]


def _last() -> mmap.mmap:
    """The input at hand, with its length before it: all that is left where the stack overflowed."""
    with Path(os.environ["BLOOMERY_FUZZ_LAST"]).open("w+b") as file:
        file.truncate(1 << 20)
        return mmap.mmap(file.fileno(), 0)


def fuzz(target: Callable[[Input], None]) -> None:
    """Run ``target`` on inputs, as libFuzzer's arguments on the command line say."""

    last = _last()

    def one(data: int, size: int) -> int:
        given = ctypes.string_at(data, size)
        last[: 4 + size] = size.to_bytes(4, "little") + given
        try:
            target(Input(given))
        except BaseException:  # noqa: BLE001 - a panic is one
            traceback.print_exc()
            sys.stderr.flush()
            os.abort()
        return 0

    # libFuzzer starts itself anew for a merge, by the first of its arguments.
    arguments = [os.fsencode(argument) for argument in [f"{sys.executable} {sys.argv[0]}", *sys.argv[1:]]]
    values = (ctypes.c_char_p * (len(arguments) + 1))(*arguments, None)
    pointer = ctypes.pointer(ctypes.cast(values, ctypes.POINTER(ctypes.c_char_p)))
    sys.exit(
        _LIBRARY.LLVMFuzzerRunDriver(ctypes.byref(ctypes.c_int(len(arguments))), pointer, _CALLBACK(one))
    )


class Lines:
    """Coverage of Python lines in some files, as counters of libFuzzer."""

    SIZE = 1 << 14

    def __init__(self, *parts: str) -> None:
        """Count lines of files whose path contains one of ``parts``."""
        self.parts = parts
        self.counters = (ctypes.c_ubyte * self.SIZE)()
        self.places = (ctypes.c_size_t * (2 * self.SIZE))()
        start = ctypes.addressof(self.counters)
        _LIBRARY["__sanitizer_cov_8bit_counters_init"](
            ctypes.c_void_p(start), ctypes.c_void_p(start + ctypes.sizeof(self.counters))
        )
        start = ctypes.addressof(self.places)
        _LIBRARY["__sanitizer_cov_pcs_init"](
            ctypes.c_void_p(start), ctypes.c_void_p(start + ctypes.sizeof(self.places))
        )
        self.bases: dict[Any, int] = {}

    def __call__(self, frame: Any, _event: str, _argument: Any) -> Any:
        """The trace function of a call: traces lines where they count."""
        code = frame.f_code
        base = self.bases.get(code)
        if base is None:
            counted = any(part in code.co_filename for part in self.parts)
            base = self.bases[code] = (
                hash((code.co_filename, code.co_firstlineno)) % self.SIZE if counted else -1
            )
        return None if base < 0 else self.line

    def line(self, frame: Any, event: str, _argument: Any) -> Any:
        """Count a line."""
        if event == "line":
            place = (self.bases[frame.f_code] + frame.f_lineno * 7) % self.SIZE
            self.counters[place] = (self.counters[place] + 1) & 0xFF or 1
        return self.line
