"""Guarantee: where engines must be there, as in `make test-engines`, a test that cannot run fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MISSING = {
    "Java": ("test_spark_plans.py", "Spark needs Java, which is not on PATH"),
    "psutil": ("test_spark_plans.py", "psutil is not installed"),
    "distributed": ("test_dask.py", "Dask is not installed"),
}


@pytest.mark.parametrize(
    ("missing", "is_required"), [*((missing, True) for missing in MISSING), ("psutil", False)]
)
def test_a_test_without_its_engine_fails_if_it_must_be_there(tmp_path, missing, is_required):
    file, reason = MISSING[missing]
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install -r requirements/spark.txt")
    if missing != "psutil":
        pytest.importorskip(
            "psutil", reason="psutil is not installed: pip install -r requirements/engines.txt"
        )
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment["FULLBLOOM_REQUIRE_ENGINES"] = "1" if is_required else ""
    if missing == "Java":
        environment["PATH"] = str(Path(sys.executable).parent)
    else:
        (tmp_path / f"{missing}.py").write_text("raise ModuleNotFoundError('not here', name=__name__)")
        environment["PYTHONPATH"] = str(tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-rs"]
    done = subprocess.run(
        [*command, f"tests/engines/{file}", "-k", "in_text or limit_of_bytes or many_repeats"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert reason in done.stdout, done.stdout + done.stderr
    assert bool(re.search(r"\d+ (failed|error)", done.stdout)) == is_required, done.stdout
    assert bool(re.search(r"\d+ skipped", done.stdout)) != is_required, done.stdout


def test_the_target_requires_the_engines():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    target = text.partition("\ntest-engines:")[2].partition("\n\n")[0]
    assert "FULLBLOOM_REQUIRE_ENGINES=1" in target
    assert "tests/engines" in target
