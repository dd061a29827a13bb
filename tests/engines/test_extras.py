"""Guarantee: a module whose optional package is missing names the extra that installs it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fullbloom.errors import FullbloomError, MissingExtra

ROOT = Path(__file__).resolve().parents[2]
#: Extra -> module that needs it, packages that are taken away one by one.
MODULES = {
    "arrow": ("fullbloom.engines.arrow", ["pyarrow"]),
    "client": ("fullbloom.client", ["httpx"]),
    "dask": ("fullbloom.engines.dask", ["dask", "pyarrow"]),
    "duckdb": ("fullbloom.engines.duckdb", ["duckdb", "pyarrow"]),
    "polars": ("fullbloom.engines.polars", ["polars"]),
    "redis": ("fullbloom.engines.redis", ["redis"]),
    "spark": ("fullbloom.engines.spark", ["pyspark", "pyarrow"]),
    "sqlalchemy": ("fullbloom.engines.sqlalchemy", ["sqlalchemy"]),
}
#: These are reported by the command or function that needs them, in their own tests.
ELSEWHERE = {"postgresql", "server", "viz", "zstd"}

IMPORT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
try:
    import {module}
except ModuleNotFoundError as error:
    print(type(error).__name__, error.name.partition(".")[0], error, sep="|")
"""


def test_every_extra_is_covered():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["optional-dependencies"].keys() == MODULES.keys() | ELSEWHERE


@pytest.mark.parametrize(
    ("extra", "package"), [(extra, one) for extra, (_, packages) in MODULES.items() for one in packages]
)
def test_a_missing_package_names_the_command_that_installs_it(extra, package):
    module, packages = MODULES[extra]
    if package != packages[0]:
        pytest.importorskip(packages[0], reason=f"{packages[0]} is not installed")
    program = IMPORT.format(package=package, module=module)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    kind, name, message = done.stdout.strip().split("|")
    assert (kind, name) == ("MissingExtra", package)
    assert message.endswith(f"is not installed: pip install 'fullbloom[{extra}]'")


def test_the_error_is_one_of_python_and_of_ours():
    assert issubclass(MissingExtra, FullbloomError)
    assert issubclass(MissingExtra, ModuleNotFoundError)


def test_a_missing_module_of_this_package_is_not_an_extra():
    from fullbloom.extras import require_extra

    with pytest.raises(ModuleNotFoundError) as caught, require_extra("redis"):
        import fullbloom.engines.no_such_engine  # noqa: F401
    assert not isinstance(caught.value, MissingExtra)
