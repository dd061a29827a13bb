"""Guarantee: the examples in the docstrings of the engines of columns and tables run."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = ["arrow", "duckdb", "hash_sets", "kinds", "polars", "sqlalchemy", "sqlalchemy.pending"]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_an_engine_run(name):
    results = doctest.testmod(importlib.import_module(f"fullbloom.engines.{name}"))
    assert results.attempted > 0
    assert results.failed == 0
