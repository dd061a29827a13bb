"""The programs themselves: Spark's and Guava's classes, from the jars inside the package pyspark."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WANTED = ("spark-sketch_*.jar", "guava-*.jar", "failureaccess-*.jar")


@cache
def list_jars() -> list[str]:
    """The jars, from FULLBLOOM_SPARK_JARS or an installed pyspark; empty without them."""
    folder = os.environ.get("FULLBLOOM_SPARK_JARS")
    if folder is None:
        spec = importlib.util.find_spec("pyspark")
        if spec is None or spec.origin is None:
            return []
        folder = str(Path(spec.origin).parent / "jars")
    return [str(jar) for pattern in WANTED for jar in sorted(Path(folder).glob(pattern))]


class Judge:
    """One Java process that answers commands, see Judge.java."""

    def __init__(self, folder: Path) -> None:
        path = os.pathsep.join(list_jars())
        subprocess.run(["javac", "-d", folder, "-cp", path, HERE / "Judge.java"], check=True)
        self._process = subprocess.Popen(
            ["java", "-Xmx512m", "-cp", os.pathsep.join([path, str(folder)]), "Judge"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, *words: object) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline().strip()
        assert reply, "the judge ended"
        return reply

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def start(folder: Path) -> Judge:
    """The judge; skips where it cannot run."""
    if shutil.which("javac") is None or shutil.which("java") is None:
        pytest.skip("needs a Java development kit (javac and java)")
    if len(list_jars()) < 2:
        pytest.skip("needs pyspark, for its jars: pip install -r requirements/spark.txt")
    return Judge(folder)


def word(key: object) -> str:
    """A key as the judge reads it."""
    if isinstance(key, int):
        return f"L{key}"
    return f"S{key.encode().hex()}" if isinstance(key, str) else f"B{bytes(key).hex()}"  # type: ignore[call-overload]
