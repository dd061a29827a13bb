"""Guarantee: values that a database takes for equal are one key of a pre-check, or it refuses the column."""

from __future__ import annotations

import datetime as dt
import enum

import pytest
import sqlalchemy as sa
from engines.tables import Exact
from sqlalchemy.dialects import postgresql

from fullbloom import KeyTypeError, ParameterError
from fullbloom.engines.sqlalchemy import PreCheck


class LowerByFunction(sa.String):
    cache_ok = True

    def bind_expression(self, bindvalue):
        return sa.func.lower(bindvalue)


class LowerInPython(sa.String):
    cache_ok = True

    def bind_processor(self, _dialect):
        return lambda value: value and value.lower()


class Named(sa.String):
    """A type that changes nothing."""

    cache_ok = True


class Colour(enum.StrEnum):
    RED = "red"


def declare(kind, *others):
    return sa.Table("typed", sa.MetaData(), sa.Column("name", kind), *others)


def create(engine, kind, ddl=None):
    table = declare(kind)
    table.metadata.drop_all(engine)
    if ddl is None:
        table.metadata.create_all(engine)
    else:
        with engine.begin() as connection:
            connection.execute(sa.text(f"create table typed (name {ddl})"))
    return table


def load(engine, table):
    check = PreCheck(Exact(), table.c.name)
    check.load(engine)
    return check


REFUSED = {
    "converted by a function": LowerByFunction(),
    "converted in Python": LowerInPython(),
    "a collation in SQLite": sa.String().with_variant(sa.String(collation="NOCASE"), "sqlite"),
    "another type in PostgreSQL": sa.String().with_variant(postgresql.CITEXT(), "postgresql"),
    "values of two types": sa.String().with_variant(sa.Integer(), "sqlite"),
}


@pytest.mark.parametrize("kind", REFUSED.values(), ids=REFUSED)
def test_a_type_that_writes_other_values_needs_a_function(kind):
    column = declare(kind).c.name
    with pytest.raises(ParameterError, match="pass normalize="):
        PreCheck(Exact(), column)
    PreCheck(Exact(), column, normalize=str.lower)


@pytest.mark.parametrize(
    "kind",
    [Named(), sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.String().with_variant(Named(), "x")],
)
def test_a_type_that_writes_the_same_values_needs_none(kind):
    PreCheck(Exact(), declare(kind).c.name)


@pytest.mark.parametrize("ddl", ["text collate nocase", "text collate rtrim"])
def test_a_collation_that_only_sqlite_knows_is_refused(tmp_path, ddl):
    engine = sa.create_engine(f"sqlite:///{tmp_path}/rows.db")
    table = create(engine, sa.String, ddl)
    with pytest.raises(ParameterError, match="different texts are equal in the column name"):
        load(engine, table)
    check = PreCheck(Exact(), table.c.name, normalize=lambda name: name.rstrip().lower())
    check.load(engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(table).values(name="Ada"))
    assert check.stats().is_complete
    check.close()
    engine.dispose()


ANY_CASE = "provider = icu, locale = 'und-u-ks-level2', deterministic = false"


@pytest.mark.parametrize("ddl", ["char(5)", "text collate equal_case", "any_case"])
def test_a_type_or_collation_that_only_postgresql_knows_is_refused(database, ddl):
    engine = sa.create_engine(database)
    with engine.begin() as connection:
        for line in (
            "drop table if exists typed",
            "drop domain if exists any_case",
            f"create collation if not exists equal_case ({ANY_CASE})",
            "create domain any_case as text collate equal_case",
        ):
            connection.execute(sa.text(line))
    table = create(engine, sa.String, ddl)
    with pytest.raises(ParameterError, match="different texts are equal in the column name"):
        load(engine, table)
    with engine.begin() as connection:
        connection.execute(sa.text("drop table typed"))
    engine.dispose()


@pytest.mark.parametrize("kind", [sa.String(), sa.Text(), sa.Unicode(9), sa.Integer(), sa.Date(), sa.Uuid()])
def test_a_column_that_compares_as_python_does_is_loaded(engine, kind):
    check = load(engine, create(engine, kind))
    assert check.stats().is_complete
    check.close()


@pytest.mark.parametrize("ddl", ["numeric", "double precision"])
def test_a_number_that_the_database_returns_as_another_type_is_refused(database, ddl):
    engine = sa.create_engine(database)
    table = create(engine, sa.Integer, ddl)
    with engine.begin() as connection:
        connection.execute(sa.insert(table).values(name=5))
    with pytest.raises(KeyTypeError, match=r"of the type int, got \w+ from the database"):
        load(engine, table)
    table.drop(engine)
    engine.dispose()


def test_a_number_of_a_column_without_integers_is_refused_in_sqlite(tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path}/rows.db")
    table = create(engine, sa.Integer, "real")
    with engine.begin() as connection:
        connection.execute(sa.insert(table).values(name=5))
    check = PreCheck(Exact(), table.c.name)
    with pytest.raises(KeyTypeError, match="of the type int, got float from the database"):
        check.load(engine)
    with engine.connect() as connection:
        assert check.exists(connection, 5)
    check.close()
    engine.dispose()


def test_a_time_is_no_key_of_a_column_of_dates(engine):
    table = create(engine, sa.Date)
    check = load(engine, table)
    with engine.begin() as connection:
        connection.execute(sa.insert(table).values(name=dt.date(2024, 1, 1)))
    with engine.connect() as connection:
        assert check.exists(connection, dt.date(2024, 1, 1))
        with pytest.raises(KeyTypeError, match="of the type date, got datetime"):
            check.exists(connection, dt.datetime(2024, 1, 1))
    check.close()


def lower_parameter(name):
    return sa.func.lower(sa.bindparam(name))


OTHER = declare(LowerInPython())
NAMES = declare(sa.Enum(Colour, native_enum=False, create_constraint=False))
#: Statements with a parameter of the column's name that is not what the row has.
PARAMETERS = {
    "function": (lambda table: sa.insert(table).values(name=lower_parameter("name")), {"name": "X"}),
    "function of a value": (
        lambda table: sa.insert(table).values(name=sa.func.lower(sa.bindparam("name", value="X"))),
        {},
    ),
    "function in an update": (
        lambda table: sa.update(table).values(name=lower_parameter("name")),
        {"name": "X"},
    ),
    "function among values": (
        lambda table: sa.insert(table).values([{"name": lower_parameter("name")}]),
        {"name": "X"},
    ),
    "column of another type": (lambda _table: sa.insert(OTHER), {"name": "X"}),
    "value of another type": (
        lambda table: sa.insert(table).values(name=sa.literal("X", LowerInPython())),
        {},
    ),
}


@pytest.mark.parametrize("statement", PARAMETERS.values(), ids=PARAMETERS)
def test_a_parameter_that_the_statement_changes_is_no_key(engine, statement):
    build, parameters = statement
    table = create(engine, sa.String)
    with engine.begin() as connection:
        connection.execute(sa.insert(table).values(name="before"))
    check = load(engine, table)
    with engine.begin() as connection:
        connection.execute(build(table), parameters)
    with engine.connect() as connection:
        written = {*connection.execute(sa.select(table.c.name)).scalars()} - {"before"}
        assert written <= {"x", "X"}  # PostgreSQL's types do not run the code of a class like the one above
        assert written
        assert all(check.exists(connection, name) for name in written)
    check.close()


def test_the_name_of_a_member_is_no_key_in_place_of_its_value(engine):
    table = create(engine, sa.String)
    check = load(engine, table)
    with engine.begin() as connection:
        connection.execute(sa.insert(NAMES).values(name=Colour.RED))
    with engine.connect() as connection:
        assert check.exists(connection, "RED")
    check.close()


def test_a_primary_key_that_a_function_changed_is_found(engine):
    table = sa.Table("typed", sa.MetaData(), sa.Column("name", sa.String, primary_key=True))
    table.metadata.drop_all(engine)
    table.metadata.create_all(engine)
    check = load(engine, table)
    with engine.begin() as connection:
        connection.execute(sa.insert(table).values(name=lower_parameter("name")), {"name": "X"})
    with engine.connect() as connection:
        assert check.exists(connection, "x")
    check.close()
    table.drop(engine)


WHOLE = {
    "parameter": (lambda table: sa.insert(table).values(name=sa.bindparam("name")), {"name": "x"}),
    "literal": (lambda table: sa.insert(table).values(name=sa.literal("x")), {}),
    "columns": (sa.insert, {"name": "x"}),
    "update": (lambda table: sa.update(table).values(name="x"), {}),
    "update by a column": (lambda table: sa.update(table).values({table.c.name: "x"}), {}),
    "lightweight table": (lambda _table: sa.insert(sa.table("typed", sa.column("name"))), {"name": "x"}),
}


@pytest.mark.parametrize("statement", WHOLE.values(), ids=WHOLE)
def test_a_parameter_that_is_the_whole_value_is_a_key(engine, statement):
    build, parameters = statement
    table = create(engine, sa.String)
    check = load(engine, table)
    with engine.begin() as connection:
        connection.execute(sa.insert(table).values(name="before"))
        connection.execute(build(table), parameters)
    with engine.connect() as connection:
        assert check.exists(connection, "x")
    assert check.stats().is_complete
    check.close()
