"""Guarantee: a type checker infers the types that ``api.py`` writes down, and finds the mistakes it marks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_public_types_are_as_written():
    pytest.importorskip("mypy", reason="mypy is not installed: pip install -r requirements/dev.txt")
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "tests/typing/api.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "src" / "bloomery" / "py.typed").exists()
