"""Mapped classes of the tests of pre-checks, and an exact filter whose keys can be compared."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import orm


class Base(orm.DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "users"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str | None] = orm.mapped_column("user_name", sa.String(50), unique=True)
    shop: orm.Mapped[int] = orm.mapped_column(default=0)


class Other(Base):
    __tablename__ = "others"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    user_name: orm.Mapped[str]


class Exact(set):
    """A filter without false positives, so that its keys can be compared."""

    def __init__(self, *keys):
        super().__init__(keys)
        self.is_failing = False

    def update(self, *batches):
        if self.is_failing:
            raise ConnectionError("the filter is unavailable")
        super().update(*batches)

    def __contains__(self, key):
        if self.is_failing:
            raise ConnectionError("the filter is unavailable")
        return super().__contains__(key)


def names(engine):
    with engine.connect() as connection:
        return {name for (name,) in connection.execute(sa.select(User.__table__.c.user_name)) if name}


def insert(name):
    """An insert of a user."""
    return sa.insert(User.__table__).values(user_name=name, shop=1)


def exists(check, engine, *wanted):
    """What a pre-check answers for some names."""
    with engine.connect() as connection:
        return [check.exists(connection, one) for one in wanted]
