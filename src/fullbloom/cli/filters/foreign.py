"""Filters of other programs: opened, checked against known members, and written back in their format."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Arguments of ``fullbloom.open`` in its messages, which are options here.
_ARGUMENT = re.compile(
    r"\b(key_type|funnel|num_bits|num_hashes|block_hash|format)=?(?= is for| is required| one of)"
)
_WHOLE, _REAL = ("long", "int", "hash", "uint64"), ("float", "double")


@dataclass(frozen=True, kw_only=True)
class Description:
    """How the file of another program is read: what its bytes do not say."""

    format: str | None
    key_type: str | None
    num_bits: int | None
    num_hashes: int | None
    order: Literal["lsb", "msb"] | None
    block_hash: bytes | None
    #: A file of keys that are known members, one per line.
    members: str | None
    #: Whether ``key_type`` is that of records, if no other program wrote the file.
    is_of_records: bool = False


def is_foreign(seen: Any) -> bool:
    """Return whether a filter is one of another program, in its bytes or in a container."""
    return hasattr(seen, "to_foreign")


def open_any(
    description: Description, path: str, secret_file: str | None, *, verify: Literal["header", "full"]
) -> Any:
    """Open a filter's file of fullbloom's or of another program; refuse one without its known members."""
    import fullbloom
    from fullbloom.cli.failures import Refusal
    from fullbloom.cli.secret import read_secret
    from fullbloom.errors import IncompatibleFilters, ParameterError
    from fullbloom.formats.verification import require_members

    try:
        found: Any = fullbloom.open(
            path,
            verify=verify,
            secret=read_secret(secret_file),
            format=description.format,
            key_type=_choose_key_type(description, path),
            num_bits=description.num_bits,
            num_hashes=description.num_hashes,
            order=description.order,
            block_hash=description.block_hash,
        )
    except ParameterError as error:
        raise Refusal(_name_options(str(error))) from None
    if description.members is not None:
        try:
            require_members(
                found, read_keys(description.members, find_line_type(description.key_type or found.key_type))
            )
        except IncompatibleFilters as error:
            raise Refusal(f"{path}: {error}") from None
    return found


def _choose_key_type(description: Description, path: str) -> str | None:
    """Return the type of the filter's keys, None where the option says that of lines or records alone."""
    if description.key_type is None:
        return None
    from fullbloom.formats import detect, find_row

    name = description.format or detect(path)
    if description.is_of_records if name is None else find_row(name)["key_types"] == ["any"]:
        return None
    return description.key_type


def _name_options(message: str) -> str:
    """Return a message about arguments as one about options."""

    def name(match: re.Match[str]) -> str:
        word = "key-type" if match[1] == "funnel" else match[1].replace("_", "-")
        return f"--{word}"

    return _ARGUMENT.sub(name, message)


def find_line_type(key_type: str) -> str:
    """Return the type of records as which keys of ``key_type`` are read: str, int or float."""
    return "int" if key_type in _WHOLE else "float" if key_type in _REAL else "str"


def parse_key(text: str, line_type: str) -> Any:
    """Return the key that a text is; raises ValueError."""
    return int(text) if line_type == "int" else float(text) if line_type == "float" else text


def read_keys(path: str, line_type: str) -> list[Any]:
    """Return the keys of a file, one per line; no message shows a key."""
    return [*_parse_lines(path, line_type)]


def _parse_lines(path: str, line_type: str) -> Iterator[Any]:
    import sys

    from fullbloom.cli.failures import Refusal

    data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            yield parse_key(line.decode("utf-8"), line_type)
        except ValueError:  # of the text, or of its encoding
            raise Refusal(f"{path}: line {number} is not a valid {line_type} in UTF-8") from None


def require_written(seen: Any, path: str) -> None:
    """Refuse a filter that cannot be written back in its format."""
    from fullbloom.cli.failures import Refusal
    from fullbloom.formats import find_row

    if seen.path is None and not find_row(seen.format)["written"]:
        raise Refusal(
            f"{path}: format {seen.format} is read and not written: its program records more than the bits; "
            f"first write it as a file of fullbloom's: fullbloom convert {path} OUT --to fullbloom"
        )


def save_back(seen: Any, path: str, *, as_container: bool) -> None:
    """Write a filter to ``path``, atomically: as a container of fullbloom, or in its program's format."""
    from fullbloom.cli.io.output import Output, save_filter

    if as_container:
        save_filter(seen, path)
        return
    output = Output(path)
    try:
        output.write(seen.to_foreign())
        output.commit(durable=True)
    finally:
        output.discard()
