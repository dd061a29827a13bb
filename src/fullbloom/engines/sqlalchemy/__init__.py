"""A filter in front of a table: lookups of absent keys cost no query.

>>> from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, insert
>>> from sqlalchemy.pool import StaticPool
>>> from fullbloom import BloomFilter
>>> from fullbloom.engines.sqlalchemy import PreCheck
>>> users = Table("users", MetaData(), Column("id", Integer, primary_key=True), Column("name", String))
>>> engine = create_engine("sqlite://", poolclass=StaticPool)
>>> users.metadata.create_all(engine)
>>> check = PreCheck(BloomFilter(1000, fpr=0.001), users.c.name)
>>> check.load(engine)
0
>>> with engine.begin() as connection:
...     _ = connection.execute(insert(users), [{"name": "ada"}])
>>> with engine.connect() as connection:
...     check.exists(connection, "ada"), check.exists(connection, "alan")
(True, False)
>>> check.stats().queries_saved
1

Needs SQLAlchemy 2 (``pip install 'fullbloom[sqlalchemy]'``) and serves PostgreSQL and SQLite.
"""

from fullbloom.extras import require_extra

with require_extra("sqlalchemy"):
    from fullbloom.engines.sqlalchemy.precheck import PreCheck, Stats

__all__ = ["PreCheck", "Stats"]
