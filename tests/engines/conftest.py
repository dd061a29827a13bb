"""Servers of a file of tests, and of one test; and engines that must be there."""

from __future__ import annotations

import os
import uuid

import pytest
import sqlalchemy as sa
from engines.clusters import PATIENT, Cluster
from engines.tables import Base, Exact, User
from sqlalchemy import orm

from fullbloom._core import WireBatch
from fullbloom.engines.redis import storage
from fullbloom.engines.redis.protocol import SendBatch
from fullbloom.engines.sqlalchemy import PreCheck

#: Set by `make test-engines`, which installs what these tests need: a test that is skipped there has failed.
IS_REQUIRED = os.environ.get("FULLBLOOM_REQUIRE_ENGINES") == "1"
ENGINES = ("test_arrow", "test_dask", "test_duckdb", "test_engine_examples", "test_extras", "test_polars")
ENGINES += ("test_spark", "test_sqlalchemy")


def refuse_skip(report, path):
    """Turn a test, or a file, that was skipped into one that failed, if its engine must be there."""
    if IS_REQUIRED and report.skipped and not hasattr(report, "wasxfail") and path.name.startswith(ENGINES):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"FULLBLOOM_REQUIRE_ENGINES is set, but this cannot run. {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    return refuse_skip((yield), item.path)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return refuse_skip((yield), collector.path)


@pytest.fixture
def client(server):
    """A client of it."""
    with server.client() as instance:
        yield instance


@pytest.fixture
def name():
    """The name of a filter that no other test uses."""
    return f"f{uuid.uuid4().hex}"


@pytest.fixture(params=["together", "by key"])
def way(request, monkeypatch):
    """Keys that are added go together where that pays, or each by itself: no caller sees which."""

    def make_by_key(batch, *others):
        if isinstance(batch, WireBatch):
            batch.go_by_key()
        return SendBatch(batch, *others)

    if request.param == "by key":
        monkeypatch.setattr(storage, "SendBatch", make_by_key)
    return request.param


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster that the tests of a file share."""
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    running.set_node_timeout(PATIENT)
    yield running
    running.stop()


@pytest.fixture(params=["postgresql", "sqlite"])
def engine(request, tmp_path):
    """An engine with empty tables."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'rows.db'}"
    else:
        url = request.getfixturevalue("database")
    made = sa.create_engine(url)
    Base.metadata.drop_all(made)
    Base.metadata.create_all(made)
    yield made
    made.dispose()


@pytest.fixture
def known():
    return Exact()


@pytest.fixture
def check(engine, known):
    made = PreCheck(known, User.name)
    made.load(engine)
    yield made
    made.close()


@pytest.fixture
def session(engine):
    with orm.Session(engine) as made:
        yield made
