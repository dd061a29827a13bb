"""Sessions of Spark for tests: small, quiet, bounded, and skipped with a reason where Spark cannot run."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

#: Seconds of the start, of each test and of the end; a test takes 10 at most on a quiet machine.
SECONDS = 240


@contextlib.contextmanager
def run(master="local[2]", **settings):
    """A session in a JVM of its own, which has ended after the block, with all of its processes.

    Skips the test where pyspark or Java is missing.
    """
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install -r requirements/engines.txt")
    pytest.importorskip("psutil", reason="psutil is not installed: pip install -r requirements/engines.txt")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not on PATH")
    with tempfile.TemporaryDirectory(prefix="fullbloom-spark-", ignore_cleanup_errors=True) as folder:
        try:
            with bound():
                session = start(master, folder, **settings)
            yield session
            with bound():
                session.stop()
        finally:
            end()


def start(master, folder, **settings):
    """A session whose files are in a folder."""
    import pyspark
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(master).appName("fullbloom tests")
    shown = {
        "spark.driver.memory": "2g",
        # Queries are many and short: the time goes into compiling them and starting the JVM.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.liveUpdate.period": "0",  # read_shuffle_bytes counts every task
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.shuffle.partitions": "2",
        # A task that was killed and does not end would occupy its core for good.
        "spark.task.reaper.enabled": "true",
        "spark.task.reaper.killTimeout": "60s",
        "spark.network.timeout": "120s",
        **settings,
    }
    for name, value in shown.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def bound():
    """Fail the test, and end Spark, if the block takes longer than a test may."""
    from engines import bounds

    return bounds.bound(SECONDS, lambda: end(0))


def end(seconds=20):
    """End the JVM of this process, executors and their workers; kill them after ``seconds``."""
    from engines import bounds
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway = SparkContext._gateway
    if gateway is None:
        return
    # The next session starts a JVM, also where this one could not be stopped.
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    processes = bounds.list_tree(gateway.proc)
    gateway.proc.stdin.close()  # the JVM ends when nobody can write to it
    bounds.kill(processes, seconds)
    gateway.proc.wait(10)
    with contextlib.suppress(Exception):
        gateway.shutdown()


def read_shuffle_bytes(session):
    """The bytes that all tasks so far have written for shuffles."""
    context = session.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    executors = context.statusStore().executorList(False)
    return sum(executors.apply(number).totalShuffleWrite() for number in range(executors.size()))
