"""Runs the benchmarks: `python -m benchmarks [--only NAME] [--quick] [--record] [--check]`."""

from __future__ import annotations

import argparse
import datetime as dt
import importlib
import os
import sys
import time

from benchmarks import report
from benchmarks.isolation import ChildFailed
from benchmarks.model import ORDER, Definition, Result


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0, 1 when `--check` finds a missed bar or a measurement failed, 2 for a wrong call."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.record and options.quick:
        parser.error("--record takes a full run; drop --quick")
    try:
        import fullbloom  # noqa: F401
    except ImportError as error:
        print(f"benchmarks: fullbloom is not installed here ({error}); run `make bench`", file=sys.stderr)
        return 2
    from benchmarks import machine

    facts = machine.describe()
    print(report.machine_line(facts), flush=True)
    if facts["load_average_at_start"] > 0.5:
        print(f"note: the machine is busy (load average {facts['load_average_at_start']})", flush=True)
    results, failed = [], False
    for name in options.only or _all(options.quick):
        result = _measure(name, options.quick)
        failed |= result is None
        if result is not None:
            results.append(result)
            print(report.as_text(result), flush=True)
    print(report.summary(results), flush=True)
    if options.record and results:
        date = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
        for path in [report.record(facts, results, date), *report.publish()]:
            print(f"wrote {path}")
    missed = [v for r in results for v in r.verdicts if v.verdict.startswith("missed")]
    return 1 if failed or (options.check and missed) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measures Fullbloom and its rivals."
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=ORDER,
        metavar="NAME",
        help="one alone; again for more: " + ", ".join(ORDER),
    )
    parser.add_argument("--quick", action="store_true", help="fewer keys and rounds, without the long ones")
    parser.add_argument(
        "--record",
        action="store_true",
        help="write a full run to benchmarks/record/ and refresh README.md and docs/benchmarks.md",
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 when a bar is missed")
    return parser


def _all(quick: bool) -> list[str]:
    """What is measured where nothing is named."""
    return [name for name in ORDER if not (quick and Definition.load(name).long)]


def _measure(name: str, quick: bool) -> Result | None:
    definition = Definition.load(name)
    print(f"\n{name}: {definition.title}", file=sys.stderr, flush=True)
    module = importlib.import_module(f"benchmarks.measure.{definition.measure}")
    before, start = os.sched_getaffinity(0), time.perf_counter()
    try:
        result: Result = module.run(definition, quick)
    except ChildFailed as error:
        print(f"{name}: failed: {error}", file=sys.stderr, flush=True)
        return None
    finally:
        os.sched_setaffinity(0, before)
    result.quick, result.seconds = quick, round(time.perf_counter() - start, 1)
    definition.judge(result)
    return result


if __name__ == "__main__":
    sys.exit(main())
