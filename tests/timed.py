"""Tests marked ``timed`` assert on a duration of real time; one that fails is measured again, up to twice.

Other work on the machine makes durations longer and never shorter: the least of several measurements is that
of the code. A fault of the code fails every time. Each further attempt has fixtures of its own, except those
of the session, so that it finds no names of the one before. Every attempt that failed is reported.
"""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

ATTEMPTS = 3
#: What a test raises that is late. Other errors fail it at once, as do those of its fixtures.
_LATE = (AssertionError, TimeoutError, subprocess.TimeoutExpired, pytest.fail.Exception)


def _is_late(error: BaseException) -> bool:
    """Return whether an error says that something took too long; each library has a timeout of its own."""
    return isinstance(error, _LATE) or "Timeout" in type(error).__name__


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    """Note in a report whether the test may be measured again."""
    report = yield
    report.may_repeat = call.excinfo is None or (call.when == "call" and _is_late(call.excinfo.value))
    return report


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test that is marked ``timed`` until it passes, at most so many times."""
    if item.get_closest_marker("timed") is None or item.config.option.usepdb:
        return None
    for left in reversed(range(ATTEMPTS)):
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        failed = any(report.failed for report in reports)
        again = left > 0 and failed and all(report.may_repeat for report in reports)
        for report in reports:
            if again and report.failed:
                report.outcome = "rerun"
            item.ihook.pytest_runtest_logreport(report=report)
        if again:
            _end_fixtures(item)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if not again:
            break
    return True


def _end_fixtures(item: pytest.Item) -> None:
    """End the fixtures of the test's module and class; an error of theirs is reported."""
    stack = item.session._setupstate
    call = pytest.CallInfo.from_call(lambda: stack.teardown_exact(item.session), "teardown")
    if call.excinfo is not None:
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        item.ihook.pytest_runtest_logreport(report=report)


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, Any] | None:
    """Show an attempt that is repeated as R."""
    return ("rerun", "R", ("RERUN", {"yellow": True})) if report.outcome == "rerun" else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name each test that was measured again, and what its failed attempts measured."""
    reports = terminalreporter.stats.get("rerun", [])
    if reports:
        terminalreporter.section("timed tests that were measured again", yellow=True)
    for report in reports:
        crash = getattr(report.longrepr, "reprcrash", None)
        found = (crash.message if crash else str(report.longrepr)).partition("\n")[0]
        terminalreporter.write_line(f"RERUN {report.nodeid} after {report.duration:.1f} s: {found}")
