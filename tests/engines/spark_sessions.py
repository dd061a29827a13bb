"""Sessions of Spark for tests: small, quiet, bounded, and skipped with a reason where Spark cannot run."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

#: Seconds of the start, of each test and of the end; a test takes 10 at most on a quiet machine.
SECONDS = 240


@contextlib.contextmanager
def run(master="local[2]", **settings):
    """A session in a JVM of its own, which has ended after the block, with all of its processes.

    Skips the test where pyspark or Java is missing.
    """
    require("pyspark", "psutil")
    with tempfile.TemporaryDirectory(prefix="fullbloom-spark-", ignore_cleanup_errors=True) as folder:
        try:
            with bound():
                session = start(master, folder, **settings)
            yield session
            with bound():
                session.stop()
        finally:
            end()


def require(*packages):
    """Skip the test where a package or Java is missing."""
    for package in packages:
        reason = f"{package} is not installed: pip install -r requirements/engines.txt"
        pytest.importorskip(package, reason=reason)
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not on PATH")


@contextlib.contextmanager
def run_connect():
    """A session of Spark Connect; its server is a JVM that ends with the block, with all of its processes."""
    require("pyspark", "psutil", "grpc", "grpc_status", "zstandard")
    from engines import bounds
    from pyspark.sql import SparkSession

    before = {name for name in os.environ if name.startswith("SPARK_")}
    with tempfile.TemporaryDirectory(prefix="fullbloom-spark-", ignore_cleanup_errors=True) as folder:
        server, port = start_server(folder)
        try:
            with bounds.bound(SECONDS):
                wait_for(server, port, Path(folder, "log"))
                session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
            yield session
            with bounds.bound(SECONDS):
                session.stop()
        finally:
            processes = bounds.list_tree(server)
            server.terminate()
            bounds.kill(processes, 20)
            server.wait(10)
            # Functions of pyspark.sql look here for the kind of session that they are used with.
            for name in {name for name in os.environ if name.startswith("SPARK_")} - before:
                del os.environ[name]


def start_server(folder):
    """A server of Spark Connect with two cores, and its port."""
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = Path(pyspark.__file__).parent
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.local.dir": folder,
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.ui.enabled": "false",
    }
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["PYSPARK_PYTHON"] = sys.executable
    with Path(folder, "log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "spark-internal"], env=environment, cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )
    return server, port


def wait_for(server, port, log):
    """Return when a server accepts connections; fail if it ends instead."""
    while server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    pytest.fail(f"the server of Spark Connect ended: {log.read_text(errors='replace')[-2000:]}")


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
