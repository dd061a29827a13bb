"""Guarantee: with workers in processes of their own, killed and repeated tasks change no filter."""

from __future__ import annotations

import os

import pytest
from engines import spark_sessions

from fullbloom import BloomFilter

ROWS = 40_000


@pytest.fixture(scope="module")
def session():
    with spark_sessions.run(
        "local-cluster[2,1,768]",
        **{
            "spark.executor.memory": "768m",
            "spark.speculation": "true",
            "spark.speculation.multiplier": "1.1",
            "spark.speculation.quantile": "0.1",
            "spark.speculation.minTaskRuntime": "100ms",
            "spark.speculation.interval": "50ms",
        },
    ) as running:
        yield running


@pytest.fixture(autouse=True)
def bound(session):  # noqa: ARG001 - the session has a bound of its own
    with spark_sessions.bound():
        yield


@pytest.fixture(scope="module")
def engine(session):  # noqa: ARG001 - the engine needs one
    from fullbloom.engines import spark

    return spark


def kill_once(flag):
    """A function of batches that kills its executor, the first time that it runs anywhere."""

    def run(batches):
        import os
        import signal
        from pathlib import Path

        for number, batch in enumerate(batches):
            if number == 1:
                try:
                    os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    pass
                else:
                    daemon = os.getppid()
                    executor = int(Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()[1])
                    os.kill(executor, signal.SIGKILL)
            yield batch

    return run


def test_an_executor_that_is_killed_mid_build_changes_nothing(session, engine, tmp_path):
    flag = str(tmp_path / "killed")
    frame = session.range(ROWS, numPartitions=2).mapInArrow(kill_once(flag), "id long")
    built = engine.build(frame, "id", capacity=ROWS)
    assert os.path.exists(flag)  # noqa: PTH110 - a name that the executor created
    local = BloomFilter(ROWS)
    local.update(range(ROWS))
    assert built == local


QUERIES = {
    "contains": lambda engine, frame, known: frame.where(engine.contains("id", known)).count(),
    "join": lambda engine, frame, known: (  # noqa: ARG005
        engine.bloom_join(
            frame,
            frame.sparkSession.range(1000),
            on="id",
            use_filter=True,
            sample=False,
        ).count()
    ),
    "duplicates": lambda engine, frame, known: (  # noqa: ARG005
        engine.find_duplicates(frame.union(frame.sparkSession.range(500)), "id", is_repeatable=True).count()
    ),
    "deduplicate": lambda engine, frame, known: (  # noqa: ARG005
        engine.deduplicate(
            frame.union(frame.sparkSession.range(ROWS - 1000, ROWS)), "id", is_repeatable=True
        ).count()
        - ROWS
        + 1000
    ),
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_an_executor_that_is_killed_in_a_query_changes_no_result(session, engine, tmp_path, query):
    flag = str(tmp_path / "killed")
    known = BloomFilter(1000, fpr=1e-9)
    known.update(range(1000))
    frame = session.range(ROWS, numPartitions=2).mapInArrow(kill_once(flag), "id long")
    assert query(engine, frame, known) == 1000
    assert os.path.exists(flag)  # noqa: PTH110 - a name that the executor created


def test_tasks_that_run_twice_change_nothing(session, engine):
    def wait(batches):
        import time

        from pyspark import TaskContext

        context = TaskContext.get()
        if context.partitionId() == 0 and context.attemptNumber() == 0:
            time.sleep(2)
        yield from batches

    frame = session.range(4000, numPartitions=20).mapInArrow(wait, "id long")
    built = engine.build(frame, "id", capacity=4000, fpr=1e-9, kind="counting")
    assert set(built.count_many(list(range(4000)))) == {1}


def test_executors_share_a_filter_and_find_duplicates(session, engine):
    known = BloomFilter(1000, fpr=1e-9)
    known.update(range(1000))
    assert session.range(ROWS, numPartitions=4).where(engine.contains("id", known)).count() == 1000
    twice = session.range(3000, numPartitions=2).union(session.range(2990, 4000))
    assert engine.find_duplicates(twice, "id").count() == 20
    assert engine.deduplicate(twice, "id").count() == 4000
