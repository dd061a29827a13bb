"""Guarantee: a task of `once` runs once per key; failures and retries behave as documented."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fullbloom import BloomFilter, CuckooFilter
from fullbloom.errors import KeyTypeError, ParameterError, ParameterTypeError

celery = pytest.importorskip(
    "celery", reason="celery is not installed: pip install -r requirements/recipes.txt"
)

from celery.contrib.testing.worker import start_worker  # noqa: E402 - after the look for it
from engines.servers import REDIS, Server  # noqa: E402
from support import eventually  # noqa: E402

from fullbloom.recipes.celery import once  # noqa: E402

PATIENCE = 60


@pytest.fixture(scope="module")
def app():
    """An application with a worker of eight threads; stopping one takes four seconds."""
    instance = celery.Celery("once", broker="memory://", backend="cache+memory://", set_as_current=False)
    instance.conf.broker_transport_options = {"polling_interval": 0.01}
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    with start_worker(instance, perform_ping_check=False, pool="threads", concurrency=8) as worker:
        instance.worker = worker
        yield instance
    # A worker takes the process's logging over, and other files of tests go on in this process.
    root.setLevel(level)
    root.handlers[:] = handlers


def work_on(app):
    """Register tasks with the worker that were created after it started."""
    app.worker.consumer.update_strategies()


def wait_until(check, seconds=PATIENCE):
    """Results of a task id that comes again are those of its first run, so the runs are waited for."""
    deadline = time.monotonic() + seconds
    while not check() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)


def make_filter():
    return BloomFilter(10_000, fpr=1e-9)


def outcome(result):
    """Return the result of a task, or the class of its error."""
    try:
        return result.get(timeout=PATIENCE, interval=0.01)
    except Exception as error:  # noqa: BLE001 - whatever the task raised
        return type(error)


def test_a_task_sent_three_times_runs_once(app):
    runs = []

    @app.task(name="thrice")
    @once(make_filter(), key="order", skipped="again")
    def work(order, note=""):
        runs.append(order)
        return note

    work_on(app)
    sent = [work.delay(order, note=f"{n}") for n in range(3) for order in (1, 2)]
    outcomes = [outcome(result) for result in sent]
    for same in (outcomes[0::2], outcomes[1::2]):  # the worker's threads decide which of the three is first
        assert sorted(found == "again" for found in same) == [False, True, True]
    assert sorted(runs) == [1, 2]


@pytest.mark.parametrize("make", [BloomFilter, CuckooFilter])
def test_only_one_of_many_concurrent_runs_executes(app, make):
    runs, together = [], threading.Barrier(8)

    @app.task(name=f"together-{make.__name__}")
    @once(make(1000, fpr=1e-4))
    def work(order):
        runs.append(order)

    @app.task(name=f"met-{make.__name__}")
    def met(order):
        together.wait(PATIENCE)
        work(order)

    work_on(app)
    for order in range(10):
        for result in [met.delay(order) for _ in range(8)]:
            result.get(timeout=PATIENCE, interval=0.01)
    # Distinct orders: a false positive of 1e-4 would be a run less, never one more.
    assert sorted(runs) == list(range(10))


@pytest.mark.parametrize(("mark", "runs_wanted"), [("before", 1), ("after", 2)])
def test_a_failed_body_is_retried_as_documented(app, mark, runs_wanted):
    """With "before" it never runs again; with "after" it runs when it is sent again."""
    runs = []

    @app.task(name=f"fails-{mark}")
    @once(make_filter(), mark=mark)
    def work(order):
        runs.append(order)
        if len(runs) == 1:
            raise ZeroDivisionError
        return "done"

    work_on(app)
    assert outcome(work.delay(1)) is ZeroDivisionError
    assert outcome(work.delay(1)) == (None if mark == "before" else "done")
    assert outcome(work.delay(1)) is None
    assert len(runs) == runs_wanted


@pytest.mark.parametrize("mark", ["before", "after"])
@pytest.mark.parametrize("how", ["retry", "autoretry_for"])
def test_retries_are_parts_of_one_run(app, mark, how):
    tries = []

    def body(self, order):
        tries.append(order)
        if len(tries) < 3:
            if how == "retry":
                raise self.retry(countdown=0)
            raise ZeroDivisionError
        return "done"

    options = {"autoretry_for": (ZeroDivisionError,), "retry_kwargs": {"countdown": 0}}
    chosen = options if how == "autoretry_for" else {}
    work = app.task(bind=True, name=f"{how}-{mark}", **chosen)(once(make_filter(), mark=mark)(body))
    work_on(app)
    assert outcome(work.delay(5)) == "done"
    assert tries == [5, 5, 5]
    assert outcome(work.delay(5)) is None
    assert tries == [5, 5, 5]


def test_with_mark_after_two_concurrent_runs_both_execute(app):
    """As documented: the key is recorded when a body has returned."""
    together, runs = threading.Barrier(2), []

    @app.task(name="both")
    @once(make_filter(), mark="after")
    def work(order):
        together.wait(PATIENCE)
        runs.append(order)

    work_on(app)
    for result in [work.delay(1) for _ in range(2)]:
        result.get(timeout=PATIENCE, interval=0.01)
    assert runs == [1, 1]
    assert outcome(work.delay(1)) is None
    assert runs == [1, 1]


@pytest.mark.parametrize(("mark", "runs_wanted"), [("before", 1), ("after", 2)])
def test_a_message_delivered_again_is_no_retry(app, mark, runs_wanted):
    """As after the death of a worker: the same task id, and no header of a run that began."""
    runs, filter_ = [], make_filter()

    @app.task(name=f"delivered-{mark}")
    @once(filter_, mark=mark)
    def work(order):
        runs.append(order)
        if len(runs) == 1:
            raise ZeroDivisionError

    work_on(app)
    for wanted in (1, runs_wanted):
        outcome(work.apply_async((1,), task_id=f"same-{mark}"))
        wait_until(lambda wanted=wanted: len(runs) >= wanted)
    wait_until(lambda: filter_.num_added == 1)  # with "after", the second run has ended
    outcome(work.apply_async((1,), task_id=f"same-{mark}"))
    wait_until(lambda: len(runs) > runs_wanted, seconds=0.2)
    assert len(runs) == runs_wanted


class Away(ConnectionError):
    """The error of a filter whose server is unreachable."""


class Flaky:
    """A shared filter whose server is unreachable for the first requests."""

    def __init__(self, away):
        self.away, self.keys = away, set()

    def add(self, key):
        if self.away:
            self.away -= 1
            raise Away("filter 'jobs': the server cannot be reached")
        new = key not in self.keys
        self.keys.add(key)
        return new

    def __contains__(self, key):
        return key in self.keys


def test_a_retry_after_an_error_of_the_filter_checks_it_again(app):
    """The body did not begin, so the retry does not continue a run."""
    runs, filter_ = [], Flaky(0)

    @app.task(name="away", autoretry_for=(Away,), retry_kwargs={"countdown": 0})
    @once(filter_)
    def work(order):
        runs.append(order)
        return "done"

    work_on(app)
    assert outcome(work.delay(1)) == "done"
    filter_.away = 2
    assert outcome(work.delay(1)) is None
    filter_.away = 2
    assert outcome(work.delay(2)) == "done"
    assert runs == [1, 2]


def test_a_task_sent_by_another_is_not_mistaken_for_its_retry(app):
    runs, filter_ = [], make_filter()

    @app.task(name="sent")
    @once(filter_)
    def sent(order):
        runs.append(order)

    @app.task(name="sends", bind=True)
    @once(filter_)
    def sends(self, order):
        return self.replace(sent.si(order))

    work_on(app)
    sent.delay(1).get(timeout=PATIENCE, interval=0.01)
    sends.delay(1).get(timeout=PATIENCE, interval=0.01)
    assert runs == [1]


def test_tasks_may_share_a_filter(app):
    def body(order):
        return order

    filter_ = make_filter()
    one = app.task(name="one")(once(filter_)(body))
    two = app.task(name="two")(once(filter_)(body))
    work_on(app)
    assert [outcome(task.delay(1)) for task in (one, two, one, two)] == [1, 1, None, None]


@pytest.mark.parametrize(
    ("key", "first", "same", "other"),
    [
        (None, ((1, "a"), {}), ((1,), {"shop": "a"}), ((1, "b"), {})),
        ("order", ((1, "a"), {}), ((1, "b"), {"tags": [1]}), ((2, "a"), {})),
        (("order", "shop"), ((1, "a"), {}), ((1, "a"), {"tags": [1]}), ((1, "b"), {})),
        (lambda order: order % 2, ((1,), {}), ((3,), {}), ((2,), {})),
        (
            "tags",
            ((1,), {"tags": {"b": [1], "a": 2}}),
            ((2,), {"tags": {"a": 2, "b": [1]}}),
            ((1,), {"tags": [1]}),
        ),
    ],
)
def test_the_key_is_made_from_the_arguments(key, first, same, other):
    @once(make_filter(), key=key)
    def work(order, shop="a", tags=()):  # noqa: ARG001 - the test is about the key
        return "run"

    assert [work(*args, **kwargs) for args, kwargs in (first, same, other)] == ["run", None, "run"]


def test_arguments_are_checked_when_a_task_is_sent(app):
    @app.task(name="checked")
    @once(make_filter())
    def work(order):
        return order

    with pytest.raises(TypeError, match="order"):
        work.delay()


@pytest.mark.parametrize(
    ("filter_", "chosen", "error", "said"),
    [
        (make_filter, {"mark": "during"}, ParameterError, "mark must be"),
        (lambda: 7, {}, None, ""),
        (
            make_filter,
            {"key": "ordre"},
            ParameterError,
            r"key must name parameters of the task \(order\), got 'ordre'",
        ),
    ],
)
def test_invalid_arguments_are_refused_at_once(filter_, chosen, error, said):
    def decorate():
        return once(filter_, **chosen)(lambda order: order)

    if error is None:
        with pytest.raises(AttributeError):
            decorate()(1)
        return
    with pytest.raises(error, match=said):
        decorate()


def test_objects_that_are_not_filters_or_keys_are_refused():
    with pytest.raises(ParameterTypeError, match="seen must be a filter"):
        once(7)
    work = once(make_filter())(lambda order: order)
    with pytest.raises(KeyTypeError):
        work(None)


@pytest.fixture(scope="module")
def prefork(tmp_path_factory):
    """A worker of two processes, and a function that runs a program with its tasks as ``jobs``."""
    if REDIS is None:
        pytest.skip("needs redis-server or valkey-server on PATH")
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "results").mkdir()
    server = Server(folder / "redis")
    here = str(Path(__file__).parent)
    environment = {**os.environ, "JOBS": str(folder), "JOBS_REDIS": str(server.port), "PYTHONPATH": here}
    words = ["-A", "jobs", "worker", "--pool", "prefork", "--concurrency", "2", "--loglevel", "error"]
    with (folder / "log").open("wb") as out:
        worker = subprocess.Popen(
            [sys.executable, "-m", "celery", *words], env=environment, cwd=here, stdout=out, stderr=out
        )

    def run(program):
        words = [sys.executable, "-c", f"import jobs\n{program}"]
        done = subprocess.run(words, env=environment, cwd=here, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    run.folder = folder
    yield run
    worker.send_signal(signal.SIGQUIT)
    worker.wait(PATIENCE)
    server.stop()


def test_a_filter_in_memory_is_refused_if_processes_have_copies(prefork):
    """Each of the two processes would run the task once."""
    output = prefork("print(type(jobs.in_memory.delay(1).get(timeout=60, propagate=False)).__name__)")
    assert output == "ParameterError"
    # A worker stores the result of a task first, and logs the error then.
    eventually(lambda: "has its own copy of a filter in memory" in (prefork.folder / "log").read_text())


def test_processes_that_share_a_filter_run_a_task_once(prefork):
    """Ten keys, each sent eight times to two processes: a run a key."""
    output = prefork(
        "sent = [jobs.in_redis.delay(n, attempt) for attempt in range(8) for n in range(10)]\n"
        "print(sum(one.get(timeout=60, interval=0.01) is not None for one in sent))"
    )
    runs = [line.split() for line in (prefork.folder / "runs").read_text().splitlines()]
    assert output == "10"
    assert sorted(int(number) for number, *_ in runs) == list(range(10))
