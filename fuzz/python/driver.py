"""Runs a Python function under libFuzzer, guided by the coverage of the extension.

The extension is built with LLVM's coverage and leaves its hooks open; the driver, libFuzzer as a shared
library, is loaded before it and closes them. What is not one of the errors that a target allows, a panic
above all, aborts, and libFuzzer keeps the input.
"""

from __future__ import annotations

import ast
import builtins
import ctypes
import mmap
import os
import sys
import traceback
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
_LIBRARY = ctypes.CDLL(os.environ["FULLBLOOM_FUZZ_DRIVER"], mode=ctypes.RTLD_GLOBAL)


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
    with Path(os.environ["FULLBLOOM_FUZZ_LAST"]).open("w+b") as file:
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


class Branches(ast.NodeTransformer, MetaPathFinder):
    """Coverage of modules in Python, as counters of libFuzzer: how often each function, branch and loop runs.

    Counting is written into the modules as they are imported: 40 ns a branch, where a trace function takes
    six times as long as all that it traces.
    """

    SIZE = 1 << 12
    TAKEN = "__branches_taken__"

    def __init__(self, *modules: str) -> None:
        """Count in ``modules`` and those within them; to be called before any is imported."""
        super().__init__()
        self.modules = modules
        self.number = 0
        counters = bytearray(self.SIZE)
        setattr(builtins, self.TAKEN, counters)
        self.places = (ctypes.c_size_t * (2 * self.SIZE))()
        for hook, start, size in (
            (
                "8bit_counters",
                ctypes.addressof((ctypes.c_ubyte * self.SIZE).from_buffer(counters)),
                self.SIZE,
            ),
            ("pcs", ctypes.addressof(self.places), ctypes.sizeof(self.places)),
        ):
            init = _LIBRARY[f"__sanitizer_cov_{hook}_init"]
            init(ctypes.c_void_p(start), ctypes.c_void_p(start + size))
        sys.meta_path.insert(0, self)

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """The module as it would be found, with counting where it is one of ours."""
        if not any(fullname == name or fullname.startswith(f"{name}.") for name in self.modules):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None, fullname
        assert isinstance(spec.loader, SourceFileLoader), fullname
        loader = spec.loader
        tree = self.visit(ast.parse(loader.get_data(loader.path)))
        code = compile(ast.fix_missing_locations(tree), loader.path, "exec")
        loader.get_code = lambda _name: code  # type: ignore[method-assign]
        return spec

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Count where a list of statements within a function begins."""
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            bare = isinstance(node, ast.Try) and not node.handlers and name == "orelse"
            if isinstance(body, list) and not bare and not isinstance(node, (ast.Module, ast.ClassDef)):
                body.insert(0, self.count())
        return node

    def count(self) -> ast.stmt:
        """The next counter, one up; from 255 to 1, since 0 is what never ran."""
        self.number += 1
        assert self.number < self.SIZE
        taken = f"{self.TAKEN}[{self.number}]"
        return ast.parse(f"{taken} = {taken} % 255 + 1").body[0]
