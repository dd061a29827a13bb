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
#: Statements in text that may delete rows; `replace` and the end of a table do so in SQLite.
_DELETES = re.compile(r"\b(delete|replace|drop)\b", re.IGNORECASE)
#: Runs a statement that was prepared, whose text is not known.
_EXECUTES = re.compile(r"(?:^|;)\s*execute\b", re.IGNORECASE)
#: Statements in text that end or prepare a transaction. A `case` that is taken for one does no harm.
_COMMITS = re.compile(r"\bcommit\b|\bprepare\s+transaction\b|(?:^|;|\*/|\n)\s*end\b", re.IGNORECASE)
_COMMITS_PREPARED = re.compile(r"\bcommit\s+prepared\b", re.IGNORECASE)
#: What the database does with a key that refers to a changed one.
_PASSED_ON = {"CASCADE", "SET DEFAULT"}
#: Dialects whose variants of a type count.
_SERVED = ("postgresql", "sqlite")
#: What a class that is derived from a type of SQLAlchemy defines to write other values, or another type.
_CONVERTING = {"bind_expression", "bind_processor", "column_expression", "result_processor"}
_CONVERTING |= {"_compiler_dispatcher", "__visit_name__"}
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
        if isinstance(written, UpdateBase):
            is_written = context.isinsert or context.isupdate
            if is_written and any(map(self._may_be_table, _list_tables(written))):
                return True
            if self._changes_source(written, context):
                return True
        return self._writes_in_cte(context)

    def read(self, context: Any) -> list[tuple[Any, ...]] | None:
        """Return the keys of a statement that may write; None if its parameters do not have them."""
        written = self._find_statement(context)
        if written is None or self._writes_in_cte(context) or self._changes_source(written, context):
            return None
        if context.isupdate:
            changes = not self._lower.isdisjoint(_list_changes(written, context))
            if not changes and not self._is_updated_always:
                return []
        elif written.select is not None or self._has_conflict_update(written):
            return None
        names = self._find_names(written.table)
        if names is None:
            return None
        if not self._are_values(context, names):
            return None
        found = [row for values in context.compiled_parameters for row in _read_parameters(values, names)]
        lists = getattr(written, "_multi_values", ())
        expected = sum(map(len, lists)) if lists else len(context.compiled_parameters)
        return self._check(found) if len(found) == expected else None

    def read_generated(self, context: Any) -> list[tuple[Any, ...]] | None:
        """Return the keys that the database generated for an insert; None if it did not return them."""
        written = self._find_statement(context)
        if self._places is None or not context.isinsert or written is None:
            return None
        # Where a value is an expression, SQLAlchemy takes a parameter of that name for the key.
        names = self._find_names(written.table)
        if names is None or not self._are_values(context, names):
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
        return any(
            names and verbs.search(statement) and _compile_names(names).search(statement)
            for names, verbs in ((self._sources, _UPDATES), (self._sources_of_defaults, _DELETES))
        )

    def _find_statement(self, context: Any) -> Any:
        """Return the statement as an expression; None if it is text, or changes tables, or contains text."""
        statement = getattr(context.compiled, "statement", None)
        is_text = isinstance(statement, TextualSelect)
        return statement if isinstance(statement, UpdateBase | SelectBase) and not is_text else None

    def _writes_in_cte(self, context: Any) -> bool:
        """Return whether a common table expression of a statement may write to the table."""
        for expression, text in (getattr(context.compiled, "ctes", None) or {}).items():
            for part in iterate(expression.element):
                if isinstance(part, UpdateBase) and self._may_write_in_part(part):
                    return True
                if isinstance(part, TextualSelect | sqlalchemy.TextClause) and self._may_write_in_text(text):
                    return True
        return False

    def _may_write_in_part(self, part: Any) -> bool:
        """Return whether a part of a statement may write to the table, itself or by way of another table."""
        tables = _list_tables(part)
        if isinstance(part, Insert | Update) and any(map(self._may_be_table, tables)):
            return True
        names = {table.name.lower() for table in tables}
        return not names.isdisjoint({*self._sources, *self._sources_of_defaults})

    @cached_property
    def _lower(self) -> set[str]:
        return {name.lower() for column in self._columns for name in (column.name, column.key)}

    @cached_property
    def _all_sources(self) -> tuple[dict[str, set[str]], set[str]]:
        """What `_sources` and `_sources_of_defaults` return, computed when all tables are declared."""
        changed: dict[str, set[str]] = {}
        deleted: set[str] = set()
        left, left_of_deletes = [*self._columns], []
        while left:
            for key in left.pop().foreign_keys:
                *_, table, column = key.target_fullname.lower().split(".")
                if _has_action(key.ondelete, "SET DEFAULT"):
                    left_of_deletes.append(key)
                if not _has_action(key.onupdate, *_PASSED_ON) or column in changed.get(table, ()):
                    continue
                is_default = _has_action(key.onupdate, "SET DEFAULT")
                for one in _list_elements(key) if is_default else [key]:
                    changed.setdefault(table, set()).add(one.target_fullname.lower().rpartition(".")[2])
                    with suppress(sqlalchemy.exc.InvalidRequestError):  # a table that nobody declared
                        left.append(one.column)
                        changed[table] |= {one.column.name.lower(), one.column.key.lower()}
        while left_of_deletes:
            key = left_of_deletes.pop()
            *_, table, _column = key.target_fullname.lower().split(".")
            if table not in deleted:
                deleted.add(table)
                with suppress(sqlalchemy.exc.InvalidRequestError):
                    others = key.column.table.foreign_keys
                    left_of_deletes += [one for one in others if _has_action(one.ondelete, "CASCADE")]
        return changed, deleted

    @property
    def _sources(self) -> dict[str, set[str]]:
        """Tables and columns whose changes the database passes on to the columns: ``ON UPDATE CASCADE``."""
        return self._all_sources[0]

    @property
    def _sources_of_defaults(self) -> set[str]:
        """Tables whose deleted rows leave defaults in the columns: ``ON DELETE SET DEFAULT``."""
        return self._all_sources[1]

    def _changes_source(self, written: Any, context: Any) -> bool:
        """Return whether a statement changes rows so that the database writes to our columns."""
        names = {table.name.lower() for table in _list_tables(written)}
        is_replaced = context.isinsert and bool(getattr(written, "_prefixes", ()))
        if (context.isdelete or is_replaced) and not names.isdisjoint(self._sources_of_defaults):
            return True
        columns = set().union(*(self._sources.get(name, ()) for name in names))
        if not columns or context.isdelete:
            return False
        if context.isinsert:
            return not columns.isdisjoint(_list_conflict_changes(written))
        return not columns.isdisjoint(_list_changes(written, context))

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
            is_of_type(value, kind) for row in found for value, kind in zip(row, self._types, strict=True)
        ):
            return None
        return found

    def _has_conflict_update(self, statement: Any) -> bool:
        return not self._lower.isdisjoint(_list_conflict_changes(statement))

    def _are_values(self, context: Any, names: list[str]) -> bool:
        """Return whether the parameters with these names, as far as there are any, are values of our columns.

        ``insert(t).values(name=func.lower(bindparam("name")))`` has a parameter of the column's name, too.
        """
        compiled = context.compiled
        assigned = getattr(compiled.compile_state, "_dict_parameters", None) or {}
        expressions = {str(getattr(column, "key", column)): value for column, value in assigned.items()}
        for name, column in zip(names, self._columns, strict=True):
            for numbered in (name, f"{name}_m0"):
                bind = compiled.binds.get(numbered)
                if bind is None:
                    continue
                expression = expressions.get(name)
                is_whole = isinstance(expression, sqlalchemy.BindParameter) and expression.key == bind.key
                if not (bind._is_crud or is_whole):  # noqa: SLF001 - no public attribute shows it
                    return False
                if type(bind.type) is not type(column.type) and not _keeps_values(bind.type):
                    return False
        return True


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


def _list_conflict_changes(statement: Any) -> set[str]:
    """Return the names and keys of the columns that an insert sets where a row exists, in small letters."""
    clause = getattr(statement, "_post_values_clause", None)
    changes = dict(getattr(clause, "update_values_to_set", None) or ())
    return _list_names(changes, statement.table)


def _has_action(action: str | None, *wanted: str) -> bool:
    return (action or "").upper() in wanted


def _list_elements(key: Any) -> list[Any]:
    """Return all columns of the constraint that a foreign key is part of."""
    return [*key.constraint.elements] if key.constraint is not None else [key]


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


def is_of_type(value: object, kind: type) -> bool:
    """Return whether a value has the type of a column's values."""
    if kind is dt.date and isinstance(value, dt.datetime):
        return False  # another key, and the column keeps its date only
    return isinstance(value, kind)


def can_equal(connection: Any, column: Any) -> bool:
    """Return whether different texts are equal in a column of the database.

    The declared type does not show a collation that ignores case, or ``char(n)`` or ``citext`` in the
    database. So texts are compared as values of the column, in a query that reads no rows.
    """
    empty = sqlalchemy.select(column.label("value")).where(sqlalchemy.false())
    others: list[Any] = [
        sqlalchemy.select(sqlalchemy.literal_column(text).label("value")) for text in ("'A'", "'a '")
    ]
    values = sqlalchemy.union_all(empty, *others).subquery().c.value
    return any(connection.execute(sqlalchemy.select(values == sqlalchemy.literal_column("'a'"))).scalars())


def find_column(column: Any) -> Any:
    """Return the column of a table for itself or a mapped attribute."""
    columns = getattr(getattr(column, "property", None), "columns", None)
    found = columns[0] if columns else column
    if not isinstance(found, sqlalchemy.Column) or not isinstance(found.table, sqlalchemy.Table):
        raise ParameterTypeError(f"a column of a table is needed, got {type(column).__name__}")
    return found


def find_type(column: Any) -> type:
    """Return the type of a column's values; ParameterError if equal values can be different keys."""
    # Both databases that are served must agree.
    kinds = [column.type, *(column.type._variant_mapping.get(name) for name in _SERVED)]  # noqa: SLF001
    found = {_find_type_of(kind) for kind in kinds if kind is not None}
    values = found.pop()
    if found or values is None:
        raise ParameterError(
            f"column {column.name} has the type {column.type!r}, in which values that differ in Python may "
            "be equal; pass normalize=, a function from a value to its key"
        )
    return values


def _find_type_of(kind: Any) -> type | None:
    """Return the type of the values of a type of columns; None if equal values can be different keys."""
    if isinstance(kind, _REFUSED) or _converts(kind):
        return None
    if getattr(kind, "collation", None) or getattr(kind, "as_uuid", True) is False:
        return None
    return next((values for accepted, values in _TYPES if isinstance(kind, accepted)), None)


def _keeps_values(kind: Any) -> bool:
    """Return whether a type of a parameter writes the values that it is given; no type does."""
    return isinstance(kind, sqlalchemy.types.NullType) or _find_type_of(kind) is not None


def _converts(kind: Any) -> bool:
    """Return whether a type may write other values than it is given, by code outside of SQLAlchemy."""
    own = [one for one in type(kind).__mro__ if one.__module__.partition(".")[0] != "sqlalchemy"]
    return any(not _CONVERTING.isdisjoint(vars(one)) for one in own)
