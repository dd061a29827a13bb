"""The keys of rows: columns by name or number, fields of structs by dotted names, with their types."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from fullbloom import _core
from fullbloom.cli.failures import Refusal
from fullbloom.cli.io.arrow import import_arrow
from fullbloom.cli.io.tables import number
from fullbloom.cli.printable import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fullbloom.cli.filters.kinds import Filter

_UUID_BYTES = 16


class Keys:
    """What ``selects`` name in files of ``schema``."""

    def __init__(self, selects: Sequence[str], types: Sequence[str] | None, schema: Any, name: str) -> None:
        """Find the columns; raises `Refusal` that says which there are."""
        self._name, self._selects, self._schema, self._arrow = name, selects, schema, import_arrow()
        kinds = list(types or ["auto"])
        self._types = kinds * len(selects) if len(kinds) == 1 else kinds
        self._paths = [self._path(select) for select in selects]
        names = [schema.names[path[0]] for path in self._paths]
        #: The columns to read for the keys alone; None for all, if a name is ambiguous.
        self.columns = names if all(schema.names.count(name) == 1 for name in names) else None

    def _path(self, select: str) -> list[Any]:
        """Return the number of the column, and the names of the fields within it."""
        schema = self._schema
        names: list[str] = schema.names
        if names.count(select) > 1:
            places = ", ".join(str(place + 1) for place, known in enumerate(names) if known == select)
            raise Refusal(
                f"{self._name}: --select {shorten(select)!r} is {names.count(select)} times in the "
                f"schema, in columns {places}; give the number of one"
            )
        if select in names:
            return [names.index(select)]
        counted = number(select)
        if counted is not None and counted < len(names):
            return [counted]
        return self._field(select)

    def _field(self, select: str) -> list[Any]:
        """As `_path`, of a dotted name."""
        names = self._schema.names
        first, *rest = select.split(".")
        known, kind = names, self._schema.field(first).type if names.count(first) == 1 else None
        at = first
        for part in rest:
            if kind is None or not self._arrow.types.is_struct(kind):
                break
            known = [f"{at}.{field.name}" for field in kind]
            at = f"{at}.{part}"
            kind = kind.field(part).type if kind.get_field_index(part) >= 0 else None
        if kind is None or at != select:
            raise Refusal(
                f"{self._name}: --select {shorten(select)!r} is not in the schema; it has {', '.join(known)}"
            )
        return [names.index(first), *rest]

    def records(self, seen: Filter, table: Any) -> _core.KeyedRecords:
        """Return the rows of ``table`` with the hashes of their keys."""
        columns = [
            self._cast(self._column(path, table), kind, select)
            for path, kind, select in zip(self._paths, self._types, self._selects, strict=True)
        ]
        keys = columns[0]
        if len(columns) > 1:
            keys = self._arrow.StructArray.from_arrays(columns, [str(place) for place in range(len(columns))])
        try:
            return _core.KeyedRecords.of_column(seen, keys)
        except (TypeError, ValueError) as error:
            selects = ", ".join(shorten(select) for select in self._selects)
            raise Refusal(f"{self._name}: --select {selects}: {error}") from None

    def _column(self, path: list[Any], table: Any) -> Any:
        # Where only some columns are read, their numbers are others.
        found = table.column(path[0]) if self.columns is None else table.column(self._schema.names[path[0]])
        for part in path[1:]:
            found = self._arrow.compute.struct_field(found, part)
        return found

    def _cast(self, column: Any, kind: str, select: str) -> Any:
        """Return ``column`` as the type of --key-type."""
        if kind == "auto":
            return column
        arrow = self._arrow
        try:
            if kind == "uuid":
                return _uuids(column, arrow)
            wanted = {
                "str": arrow.string(),
                "int": arrow.int64(),
                "float": arrow.float64(),
                "bool": arrow.bool_(),
            }
            if kind == "int" and arrow.types.is_integer(column.type):
                return column
            return column.cast(wanted[kind])
        except (arrow.ArrowException, ValueError, TypeError, AttributeError) as error:
            why = str(error).splitlines()[0]
            raise Refusal(f"{self._name}: column {shorten(select)!r} is not of type {kind}: {why}") from None


def _uuids(column: Any, arrow: Any) -> Any:
    """Return the 16 bytes of each, of texts as Python reads them."""
    if arrow.types.is_fixed_size_binary(column.type) and column.type.byte_width == _UUID_BYTES:
        return column
    values = [value if value is None else _uuid(value) for value in column.to_pylist()]
    return arrow.array(values, arrow.binary())


def _uuid(value: Any) -> bytes:
    return value.bytes if isinstance(value, uuid.UUID) else uuid.UUID(value).bytes
