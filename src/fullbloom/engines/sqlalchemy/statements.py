"""Reads keys from the parameters of statements, and which columns have keys that can be read."""

from __future__ import annotations

import datetime as dt
import itertools
import re
import uuid
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sqlalchemy
from sqlalchemy.dialects.postgresql import CITEXT
from sqlalchemy.sql.dml import Insert, Update, UpdateBase
from sqlalchemy.sql.selectable import SelectBase, TextualSelect
from sqlalchemy.sql.visitors import iterate

from fullbloom.errors import ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Statements in text that may write rows, also by renaming another table, or creating one from a query.
_WRITES = re.compile(r"\b(insert|update|merge|copy|alter|create|into|refresh)\b", re.IGNORECASE)
_UPDATES = re.compile(r"\bupdate\b", re.IGNORECASE)
#: Runs a statement that was prepared, whose text is not known.
_EXECUTES = re.compile(r"(?:^|;)\s*execute\b", re.IGNORECASE)
#: Statements in text that end or prepare a transaction. A `case` that is taken for one does no harm.
_COMMITS = re.compile(r"\bcommit\b|\bprepare\s+transaction\b|(?:^|;|\*/|\n)\s*end\b", re.IGNORECASE)
_COMMITS_PREPARED = re.compile(r"\bcommit\s+prepared\b", re.IGNORECASE)
#: What the database does with a key that refers to a changed one.
_PASSED_ON = {"CASCADE", "SET DEFAULT"}
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
        self._columns = columns
        self._table = columns[0].table
        self._names = [column.key for column in columns]
        self._types = types
        #: Updates write these columns even if they do not name them.
        self._is_updated_always = any(column.onupdate or column.server_onupdate for column in columns)
        self._in_text = _compile_names([self._table.name])
        generated = list(self._table.primary_key.columns)
        #: Places of the columns in the primary key, if they are all part of it.
        self._places = [generated.index(column) for column in columns] if {*columns} <= {*generated} else None

    def may_commit(self, statement: str, context: Any) -> bool:
        """Return whether a statement is text that may end a transaction, or prepare it."""
        return self._find_statement(context) is None and _COMMITS.search(statement) is not None

    def commits_another(self, statement: str) -> bool:
        """Return whether a statement commits a prepared transaction."""
        return _COMMITS_PREPARED.search(statement) is not None

    def may_write(self, statement: str, context: Any) -> bool:
        """Return whether a statement may write to the table."""
        written = self._find_statement(context)
        if written is None:
            return self._may_write_in_text(statement)
        if isinstance(written, UpdateBase) and (context.isinsert or context.isupdate):
            tables = _list_tables(written)
            if any(map(self._may_be_table, tables)) or self._changes_source(written, context):
                return True
        return self._writes_in_cte(context)

    def read(self, context: Any) -> list[tuple[Any, ...]] | None:
        """Return the keys of a statement that may write; None if its parameters do not have them."""
        written = self._find_statement(context)
        if written is None or self._writes_in_cte(context):
            return None
        if context.isupdate:
            if self._changes_source(written, context):
                return None
            changes = not self._lower.isdisjoint(_list_changes(written, context))
            if not changes and not self._is_updated_always:
                return []
        elif written.select is not None or self._has_conflict_update(written):
            return None
        names = self._find_names(written.table)
        if names is None:
            return None
        found = [row for values in context.compiled_parameters for row in _read_parameters(values, names)]
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

    def _may_write_in_text(self, statement: str) -> bool:
        if _EXECUTES.search(statement) or (_WRITES.search(statement) and self._in_text.search(statement)):
            return True
        sources = self._sources
        return bool(sources and _UPDATES.search(statement) and _compile_names(sources).search(statement))

    def _find_statement(self, context: Any) -> Any:
        """Return the statement as an expression; None if it is text, or changes tables, or contains text."""
        statement = getattr(context.compiled, "statement", None)
        is_text = isinstance(statement, TextualSelect)
        return statement if isinstance(statement, UpdateBase | SelectBase) and not is_text else None

    def _writes_in_cte(self, context: Any) -> bool:
        """Return whether a common table expression of a statement may write to the table."""
        for expression, text in (getattr(context.compiled, "ctes", None) or {}).items():
            for part in iterate(expression.element):
                if isinstance(part, Insert | Update) and any(map(self._may_be_table, _list_tables(part))):
                    return True
                if isinstance(part, TextualSelect | sqlalchemy.TextClause) and self._may_write_in_text(text):
                    return True
        return False

    @cached_property
    def _lower(self) -> set[str]:
        return {name.lower() for column in self._columns for name in (column.name, column.key)}

    @cached_property
    def _sources(self) -> dict[str, set[str]]:
        """Tables and columns whose changes the database passes on to the columns: ``ON UPDATE CASCADE``.

        Computed with the first statement, when all tables are declared.
        """
        found: dict[str, set[str]] = {}
        left = [*self._columns]
        while left:
            for key in left.pop().foreign_keys:
                *_, table, column = key.target_fullname.lower().split(".")
                if (key.onupdate or "").upper() not in _PASSED_ON or column in found.get(table, ()):
                    continue
                found.setdefault(table, set()).add(column)
                with suppress(sqlalchemy.exc.InvalidRequestError):  # a table that nobody declared
                    left.append(key.column)
                    found[table] |= {key.column.name.lower(), key.column.key.lower()}
        return found

    def _changes_source(self, written: Any, context: Any) -> bool:
        """Return whether an update changes a column whose values the database passes on to ours."""
        if not context.isupdate or not self._sources:
            return False
        columns = set().union(*(self._sources.get(table.name.lower(), ()) for table in _list_tables(written)))
        return not columns.isdisjoint(_list_changes(written, context)) if columns else False

    def _find_names(self, table: Any) -> list[str] | None:
        """Return the keys of the columns in a description of the table; None if they are not certain."""
        if table is self._table:
            return self._names
        names = []
        for column in self._columns:
            keys = [one.key for one in table.c if one.name.lower() == column.name.lower()]
            if len(keys) != 1:
                return None
            names += keys
        return names

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
        return not self._lower.isdisjoint(_list_names(changes, statement.table))


def _compile_names(names: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds names of tables in text."""
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)", re.IGNORECASE)


def _list_tables(written: Any) -> list[Any]:
    """Return the tables of a statement that writes, also of an alias or a join."""
    if isinstance(written.table, sqlalchemy.TableClause):
        return [written.table]
    return [one for one in iterate(written.table) if isinstance(one, sqlalchemy.TableClause)]


def _list_changes(written: Any, context: Any) -> set[str]:
    """Return the names and keys of the columns that an update sets, in small letters."""
    values = getattr(written, "_values", None) or ()
    return _list_names([*values, *(context.compiled.column_keys or ())], written.table)


def _list_names(columns: Iterable[Any], table: Any) -> set[str]:
    names = set()
    for column in columns:
        found = table.c.get(column) if isinstance(column, str) else column
        names |= {str(getattr(found, name, column)).lower() for name in ("name", "key")}
    return names


def _read_parameters(parameters: dict[str, Any], names: list[str]) -> Iterator[tuple[Any, ...]]:
    if all(name in parameters for name in names):
        yield tuple(parameters[name] for name in names)
        return
    for place in itertools.count():  # of insert().values([row, row])
        numbered = [f"{name}_m{place}" for name in names]
        if not all(name in parameters for name in numbered):
            return
        yield tuple(parameters[name] for name in numbered)


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
