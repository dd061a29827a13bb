"""What the page of the package names is there after ``import fullbloom``, and costs nothing before."""

from __future__ import annotations

import subprocess
import sys

import pytest

import fullbloom


@pytest.mark.parametrize("name", ["theory", "plan", "errors"])
def test_modules_of_the_page_are_attributes(name: str) -> None:
    assert f"``fullbloom.{name}``" in (fullbloom.__doc__ or "")
    program = f"import fullbloom, sys; sys.exit(fullbloom.{name}.__name__ != 'fullbloom.{name}')"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_importing_the_package_loads_neither() -> None:
    late = {"fullbloom.theory", "fullbloom.plan", "dataclasses"}
    program = f"import fullbloom, sys; sys.exit(len({late} & {{*sys.modules}}))"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'plans'"):
        getattr(fullbloom, "plans")  # noqa: B009 - mypy knows that there is none
