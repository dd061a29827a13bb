"""Additions of the stub to the extension's declarations: overloads for each kind of batch, and literals.

The extension declares that a batch of keys returns ``Answers[bool]``; here these become overloads. The names
that a parameter takes are listed in the error for any other name.
"""

import re
from collections.abc import Iterator
from typing import Any

from fullbloom import _core, errors

HEADER = """import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Self, SupportsIndex, TypeAlias, TypeVar, final, overload

import numpy as np
from numpy.typing import NDArray

from fullbloom.keys import (
    ArrowArray, Frame, Hashes, Key, Keys, ListedHashes, ListedKeys, Numbers, NumPyArray, OtherColumns, Series
)

_Series = TypeVar("_Series", bound=Series)
"""

NUMPY = {"bool": "np.bool_", "int": "np.uint64"}
OPEN = '(\\bmode: )str = "r"'
METHOD = re.compile(
    r"^(?P<indent> *)def (?P<name>\w+)"
    r"\((?P<before>[^()]*?)(?P<keys>keys|hashes): (?P<type>[\w |]+)(?P<after>[^()]*)\)"
    r' -> Answers\[(?P<one>[\w |]+)\]:(?P<body>\n\s+"""\n.*?""")?',
    re.MULTILINE | re.DOTALL,
)


def overload_batches(text: str) -> str:
    """Return the text with an overload for each kind of batch."""
    return METHOD.sub(lambda method: "\n".join(_overloads(method)), text)


def _overloads(method: re.Match[str]) -> Iterator[str]:
    """Yield the kinds, the narrowest first; the first has the documentation."""
    indent, one, body = method["indent"], method["one"], method["body"]
    kinds = [
        ("_Series", "_Series"),
        ("Frame[_Series]", "_Series"),
        ("ArrowArray", "ArrowArray"),
        ("NumPyArray", f"NDArray[{NUMPY[one.split()[0]]}]"),
        (f"Listed{method['keys'].title()}", f"list[{one}]"),
        *([("SupportsIndex", one)] if "SupportsIndex" in method["type"] else []),
        ("OtherColumns", "Any"),
    ]
    for takes, answers in kinds:
        signature = f"{method['before']}{method['keys']}: {takes}{method['after']}"
        yield f"{indent}@overload\n{indent}def {method['name']}({signature}) -> {answers}:{body or ' ...'}"
        body = None


def overload_open(text: str) -> str:
    """Return the text with ``open`` by mode: of a class, and of the package."""
    parts = re.split(r"^(?=@final$|def )", text, flags=re.MULTILINE)
    writable = [
        _class(part) for part in parts if _class(part) and "def flush(" in part and "def close(" in part
    ]
    return "".join(_overload_open(part, writable) for part in parts)


def _class(part: str) -> str:
    found = re.match(r"@final\nclass (\w+)", part)
    return found[1] if found else ""


def _overload_open(part: str, writable: list[str]) -> str:
    """Return a class or a function; files of ``writable`` are opened for writing, too."""
    if not part.startswith("def open("):
        modes = '"r", "r+"' if _class(part) in writable else '"r"'
        return re.sub(OPEN, rf'\1Literal[{modes}] = "r"', part)
    signature, body = re.split(r"(?<=-> _Filter:)", part, maxsplit=1)
    reading = re.sub(OPEN, r'\1Literal["r"] = "r"', signature)
    writing = re.sub(OPEN, r'\1Literal["r+"]', signature).replace("_Filter", " | ".join(writable))
    return f"@overload\n{reading}{body}@overload\n{writing} ...\n"


def list_literals(text: str) -> str:
    """Return the text with a ``Literal`` for parameters of classes that take one of several names."""
    rows = {row["class"]: row for row in _core.variants()}
    parts = re.split(r"^(?=@final$|def )", text, flags=re.MULTILINE)
    return "".join(_list_literals(part, rows.get(_class(part), {"parameters": []})) for part in parts)


def _list_literals(part: str, row: dict[str, Any]) -> str:
    if "def merge(" not in part:
        part = part.replace("*keys: Keys | Self,", "*keys: Keys,")
    for name, kind, _ in row["parameters"]:
        if kind in {"str", "str | None"}:
            names = f"Literal[{', '.join(repr(one) for one in _names(row['class'], name))}]"
            # Those of open() and freeze() take other names.
            part = re.sub(rf"(\b{name}: )str\b(?! = (?:\"r\"|\.\.\.))", rf"\1{names}", part)
            part = re.sub(rf"(def {name}\(self, /\) -> )str\b", rf"\1{names}", part)
    if row["parameters"] and _has_buffer(row["class"]):
        buffer = "    def __buffer__(self, flags: int, /) -> memoryview: ...\n"
        part = re.sub(r"(?m)^(?=    def __contains__\()", buffer, part, count=1)
    return part


def _has_buffer(of: str) -> bool:
    """Return whether an instance has a memoryview, which declarations do not show."""
    try:
        memoryview(getattr(_core, of)(100))
    except TypeError:
        return False
    return True


def _names(of: str, parameter: str) -> list[str]:
    """Return the names that a parameter of a constructor takes: ``must be one of a, b or c, got``."""
    try:
        getattr(_core, of)(100, 0.01, **{parameter: "?"})
    except errors.ParameterError as refusal:
        names = re.search(rf"{parameter} must be (?:one of )?(.*), got", str(refusal))
        return re.split(", | or ", names[1]) if names else []
    raise ValueError(f"{of} takes any {parameter}")
