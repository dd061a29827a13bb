"""The examples print what they promise."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "recipes"


@pytest.mark.parametrize(
    ("program", "needs", "said"),
    [
        ("crawl.py", "scrapy", "200 pages in two runs, 0 of them twice\n"),
        ("once.py", "celery", "300 delivered, 100 sent, 200 skipped\n"),
    ],
)
def test_example_programs_print_what_they_state(program, needs, said):
    pytest.importorskip(needs, reason=f"{needs} is not installed: pip install -r requirements/recipes.txt")
    words = [sys.executable, str(EXAMPLES / program)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == said


@pytest.mark.parametrize("needs", ["celery", "scrapy"])
def test_the_examples_of_the_module_run(needs):
    pytest.importorskip(needs, reason=f"{needs} is not installed: pip install -r requirements/recipes.txt")
    assert not doctest.testmod(importlib.import_module(f"fullbloom.recipes.{needs}")).failed
