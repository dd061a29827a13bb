"""A pytest plugin: puts an adapter in the place of a package, under every name that its suite imports."""

import importlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType


def put(names: dict[str, list[str]]) -> None:
    """Makes each name a module that holds what the named adapters define."""
    for name, sources in names.items():
        module = ModuleType(name)
        for source in sources:
            module.__dict__.update(
                (key, value)
                for key, value in vars(importlib.import_module(source)).items()
                if not key.startswith("__")
            )
        module.__path__ = []
        adapters[name] = module


adapters: dict[str, ModuleType] = {}
put({pair.split("=")[0]: pair.split("=")[1].split("+") for pair in os.environ["RIVAL_NAMES"].split()})
sys.modules.update(adapters)
for _name, _module in adapters.items():  # `import package.part as part` reads the attribute
    _parent, _, _part = _name.rpartition(".")
    if _parent:
        setattr(adapters[_parent], _part, _module)


def _write(name: str, outcome: str, reason: str) -> None:
    line = {"id": name, "outcome": outcome, "reason": reason}
    with Path(os.environ["RIVAL_REPORT"]).open("a", encoding="utf-8") as report:
        report.write(json.dumps(line) + "\n")


def _last_line(report) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash else str(report.longrepr)).strip().splitlines()[0][:200]


def pytest_runtest_logreport(report) -> None:
    """One line of JSON a test; what fails before or after its call fails."""
    if report.failed:
        _write(report.nodeid, "failed", _last_line(report))
    elif report.skipped:
        _write(report.nodeid, "skipped", str(report.longrepr[-1]))
    elif report.when == "call":
        _write(report.nodeid, "passed", "")


def pytest_collectreport(report) -> None:
    """A file that cannot be imported is one failure."""
    if report.failed:
        _write(report.nodeid, "failed", str(report.longrepr).strip().splitlines()[-1])
