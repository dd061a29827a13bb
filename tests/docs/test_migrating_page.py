"""docs/migrating.md has a section for each package with an adapter, and each reason for a difference."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RIVALS = ROOT / "tests" / "rivals"
PAGE = (ROOT / "docs" / "migrating.md").read_text(encoding="utf-8")
STATED = tomllib.loads((RIVALS / "differences.toml").read_text(encoding="utf-8"))


@pytest.fixture
def suites(monkeypatch):
    monkeypatch.syspath_prepend(str(RIVALS))
    yield importlib.import_module("suites").SUITES
    del sys.modules["suites"]


def test_every_package_has_a_section(suites):
    headings = " ".join(re.findall(r"^## (.*)$", PAGE, re.MULTILINE))
    named = {name for part in headings.split(",") for name in part.split()}
    assert {suite.package for suite in suites} <= named


def test_differences_are_of_packages_that_are_run(suites):
    assert STATED["packages"].keys() <= {suite.package for suite in suites}


@pytest.mark.parametrize("reason", STATED["reasons"].values(), ids=STATED["reasons"])
def test_every_reason_stands_on_the_page(reason):
    assert reason in " ".join(PAGE.split())


def test_every_reason_is_given_and_met():
    used = {reason for package in STATED["packages"].values() for reason in package}
    assert used == STATED["reasons"].keys() | STATED["apart"].keys()
