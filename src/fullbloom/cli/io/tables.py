"""The first row of CSV and TSV, and the columns it names."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from fullbloom.cli.failures import Refusal
from fullbloom.cli.printable import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: A row continues over further lines for at most so many bytes: more means an unclosed quote.
LONGEST_CONTINUED = 1 << 20
_FIELD_LIMIT = 1 << 30
#: More digits are the name of a column: no table has so many columns.
_MOST_DIGITS = 18
_BOM = b"\xef\xbb\xbf"


def first_row(data: bytes, name: str, *, delimiter: str, quotes: bool) -> tuple[list[str], int] | None:
    """Return the cells of the first row and where it ends; None where it goes on behind ``data``."""
    import csv

    csv.field_size_limit(_FIELD_LIMIT)
    end, wanted_more = 0, False

    def lines() -> Iterator[str]:
        nonlocal end, wanted_more
        for line in BytesIO(data):
            start = len(_BOM) if not end and line.startswith(_BOM) else 0
            end += len(line)
            # Latin-1 maps every byte to a character and back.
            yield line[start:].decode("latin-1")
        wanted_more = True

    dialect: dict[str, Any] = {"quoting": csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE}
    try:
        row = next(csv.reader(lines(), delimiter=delimiter, **dialect), None)
    except csv.Error:
        raise Refusal(
            f"{name}: line 1: a carriage return within a field that is not quoted; "
            "quote the field, or remove it"
        ) from None
    if row is None or wanted_more:
        return None
    return [cell.encode("latin-1").decode("utf-8", "replace") for cell in row], end


def number(select: str) -> int | None:
    """Return the column that ``select`` counts, from 0; None for a name."""
    if not select.isdecimal() or len(select) > _MOST_DIGITS:
        return None
    if int(select) < 1:
        raise Refusal(f"--select counts columns from 1, got {select}")  # noqa: S608 - no SQL
    return int(select) - 1


def columns(selects: Sequence[str], names: list[str] | None, name: str) -> list[int]:
    """Return the columns, from 0, that ``selects`` name or count; ``names`` are those of the header."""
    return [_column(select, names, name) for select in selects]


def _column(select: str, names: list[str] | None, name: str) -> int:
    counted = number(select)
    if names is None:
        if counted is None:
            raise Refusal("--select by name needs a header; give the column's number with --no-header")
        return counted
    places = [place for place, known in enumerate(names) if known == select]
    if len(places) > 1:
        positions = ", ".join(str(place + 1) for place in places)
        raise Refusal(
            f"{name}: line 1: --select {shorten(select)!r} is {len(places)} times in the header, "
            f"in columns {positions}; give the number of one"
        )
    if places:
        return places[0]
    if counted is None or counted >= len(names):
        raise Refusal(f"{name}: line 1: {_absent(select, names)}")
    return counted


def _absent(select: str, names: list[str]) -> str:
    text = f"--select {shorten(select)!r} is not in the header; it has {', '.join(names)}"
    if "," in select and set(select.split(",")) <= set(names):
        text += "; for several columns give --select for each"
    return text
