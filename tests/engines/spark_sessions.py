"""Sessions of Spark for tests: small, quiet, and skipped with a reason where Spark cannot run."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import urllib.request
from pathlib import Path

import pytest

MASTERS = {"local": "local[2]", "cluster": "local-cluster[2,1,768]"}


def start(master="local[2]", **settings):
    """A session; skips the test where pyspark or Java is missing."""
    pyspark = pytest.importorskip(
        "pyspark", reason="pyspark is not installed: pip install -r requirements/engines.txt"
    )
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not on PATH")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("fullbloom tests")
    shown = {
        "spark.driver.memory": "2g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": tempfile.gettempdir() + "/fullbloom-warehouse",
        **settings,
    }
    for name, value in shown.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def read_shuffle_bytes(session):
    """The bytes that all stages so far have written for shuffles."""
    context = session.sparkContext
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    with urllib.request.urlopen(url, timeout=30) as response:
        return sum(stage["shuffleWriteBytes"] for stage in json.load(response))
