"""Reads keys from the parameters of statements, and which columns have keys that can be read."""

from __future__ import annotations

import datetime as dt
import itertools
import re
import uuid
from typing import TYPE_CHECKING, Any

import sqlalchemy
from sqlalchemy.dialects.postgresql import CITEXT
from sqlalchemy.schema import ExecutableDDLElement

from fullbloom.errors import ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Statements in text that may write rows, also by renaming another table, or creating one from a query.
_WRITES = re.compile(r"\b(insert|update|merge|copy|replace|alter|create|into)\b", re.IGNORECASE)
#: Types of columns whose values are equal exactly if they are in Python, and the type of those values.
_TYPES = (
    (sqlalchemy.Integer, int),
    (sqlalchemy.String, str),
    (sqlalchemy.Uuid, uuid.UUID),
    (sqlalchemy.LargeBinary, bytes),
    (sqlalchemy.Date, dt.date),
)
_REFUSED = (sqlalchemy.CHAR, sqlalchemy.NCHAR, CITEXT, sqlalchemy.Enum)


class Statements:
    """Reads the keys that statements write to the columns of one table."""

    def __init__(self, columns: list[Any], types: list[type] | None) -> None:
        self._table = columns[0].table
        self._names = [column.key for column in columns]
        self._types = types
        #: Updates write these columns even if they do not name them.
        self._is_updated_always = any(column.onupdate or column.server_onupdate for column in columns)
        self._in_text = re.compile(rf"(?<!\w){re.escape(self._table.name)}(?!\w)", re.IGNORECASE)
        generated = list(self._table.primary_key.columns)
        #: Places of the columns in the primary key, if they are all part of it.
        self._places = [generated.index(column) for column in columns] if {*columns} <= {*generated} else None

    def may_write(self, statement: str, context: Any) -> bool:
        """Return whether a statement may write to the table."""
        written = self._find_statement(context)
        if written is None:
            return bool(_WRITES.search(statement) and self._in_text.search(statement))
        is_write = context.isinsert or context.isupdate
        return bool(is_write and self._may_be_table(written.table))

    def read(self, context: Any) -> list[tuple[Any, ...]] | None:
        """Return the keys of a statement that may write; None if its parameters do not have them."""
        written = self._find_statement(context)
        if written is None:
            return None
        if context.isupdate:
            changed = {getattr(name, "key", name) for name in getattr(written, "_values", None) or ()}
            changed |= {*(context.compiled.column_keys or ())}
            if not self._is_updated_always and not {*self._names} & changed:
                return []
        elif written.select is not None or self._has_conflict_update(written):
            return None
        found = [row for row in context.compiled_parameters for row in self._read_parameters(row)]
        lists = getattr(written, "_multi_values", ())
        expected = sum(map(len, lists)) if lists else len(context.compiled_parameters)
        return self._check(found) if len(found) == expected else None

    def read_generated(self, context: Any) -> list[tuple[Any, ...]] | None:
        """Return the keys that the database generated for an insert; None if it did not return them."""
        if self._places is None or not context.isinsert or self._find_statement(context) is None:
            return None
        rows = context.inserted_primary_key_rows
        if not rows or len(rows) != len(context.compiled_parameters) or any(None in row for row in rows):
            return None
        return self._check([tuple(row[place] for place in self._places) for row in rows])

    def _may_be_table(self, table: Any) -> bool:
        """Return whether a table of a statement may be ours, which another object can describe.

        Databases ignore the case of names without quotes, and a table without a schema is in the default one.
        """
        schemas = {one.schema.lower() for one in (table, self._table) if getattr(one, "schema", None)}
        return bool(table.name.lower() == self._table.name.lower() and len(schemas) <= 1)

    def _find_statement(self, context: Any) -> Any:
        """Return the statement as an expression; None if it is text, or changes tables."""
        statement = getattr(context.compiled, "statement", None)
        is_text = isinstance(statement, sqlalchemy.TextClause | ExecutableDDLElement)
        return None if is_text else statement

    def _read_parameters(self, parameters: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        if all(name in parameters for name in self._names):
            yield tuple(parameters[name] for name in self._names)
            return
        for place in itertools.count():  # of insert().values([row, row])
            names = [f"{name}_m{place}" for name in self._names]
            if not all(name in parameters for name in names):
                return
            yield tuple(parameters[name] for name in names)

    def _check(self, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]] | None:
        """Return the rows without nulls; None if the database may have converted a value."""
        found = [row for row in rows if None not in row]
        if self._types and not all(
            _is_of_type(value, kind) for row in found for value, kind in zip(row, self._types, strict=True)
        ):
            return None
        return found

    def _has_conflict_update(self, statement: Any) -> bool:
        clause = getattr(statement, "_post_values_clause", None)
        changes = dict(getattr(clause, "update_values_to_set", None) or ())
        return any(getattr(name, "key", name) in self._names for name in changes)


def _is_of_type(value: object, kind: type) -> bool:
    if kind is dt.date and isinstance(value, dt.datetime):
        return False  # another key, and the column keeps its date only
    return isinstance(value, kind)


def find_column(column: Any) -> Any:
    """Return the column of a table for itself or a mapped attribute."""
    columns = getattr(getattr(column, "property", None), "columns", None)
    found = columns[0] if columns else column
    if not isinstance(found, sqlalchemy.Column) or not isinstance(found.table, sqlalchemy.Table):
        raise ParameterTypeError(f"a column of a table is needed, got {type(column).__name__}")
    return found


def find_type(column: Any) -> type:
    """Return the type of a column's values; ParameterError if equal values can be different keys."""
    kind = column.type
    for accepted, values in _TYPES:
        if isinstance(kind, accepted) and not isinstance(kind, _REFUSED):
            if getattr(kind, "collation", None) or getattr(kind, "as_uuid", True) is False:
                break
            return values
    raise ParameterError(
        f"column {column.name} has the type {kind!r}, in which values that differ in Python may be equal; "
        "pass normalize=, a function from a value to its key"
    )
