"""Runs the test suites of other packages with adapters in their place; a list states what may fail.

    python tests/rivals/run.py --from FOLDER [PACKAGE...]     # a folder of source copies, one a package
    python tests/rivals/run.py [PACKAGE...]                   # what the packages' own sdists have

Nothing of another package is kept here: copies are read, and tests run in a folder that goes away. A failure
that differences.toml does not state, and a stated one that passes, end with exit code 1.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

from suites import SUITES, Suite

HERE = Path(__file__).resolve().parent
OPTIONS = (
    "-q", "-p", "plugin", "-p", "no:cacheprovider", "-c", os.devnull, "--import-mode", "importlib",
    "-W", "ignore", "--continue-on-collection-errors",
)  # fmt: skip
ROOT = HERE.parents[1]
HEADS = ("package", "applicable", "passed", "differences", "unstated", "stale", "not applicable")
COLUMNS = "{:26} {:>10} {:>7} {:>12} {:>8} {:>6} {:>14}"


def main() -> int:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE")
    parser.add_argument("--from", dest="folder", type=Path, help="folder of source copies, one a package")
    parser.add_argument("--why", action="store_true", help="show the first line of every failure")
    options = parser.parse_args()
    stated = tomllib.loads((HERE / "differences.toml").read_text(encoding="utf-8"))
    print(COLUMNS.format(*HEADS))
    failed = False
    totals = [0] * 6
    for suite in SUITES:
        if options.packages and suite.package not in options.packages:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            sources = find(suite, options.folder or download(suite, Path(scratch)))
            if sources is None:
                print(f"{suite.package:26} no copy with tests: --from FOLDER gives one")
                continue
            results = run(suite, sources, Path(scratch))
        row, lines = judge(results, *list_exceptions(stated, suite.package), why=options.why)
        totals = [total + number for total, number in zip(totals, row, strict=True)]
        print(COLUMNS.format(suite.package, *row), *lines, sep="\n  ", flush=True)
        failed |= bool(row[3] or row[4])
    print(COLUMNS.format("all", *totals))
    return int(failed)


def find(suite: Suite, folder: Path) -> Path | None:
    """The copy in `folder`, or up to two levels below, that has the marker, tests and what these import."""
    for candidate in [folder, *sorted(folder.glob("*/")), *sorted(folder.glob("*/*/"))]:
        needed = [candidate / name for name in (suite.marker, *suite.beside)]
        if all(path.exists() for path in needed) and any(candidate.glob(suite.tests[0])):
            return candidate
    return None


def download(suite: Suite, scratch: Path) -> Path:
    """The package's sdist, unpacked, if pip finds one."""
    folder = scratch / "sdist"
    folder.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    command += ["--dest", folder, suite.package]
    with contextlib.suppress(subprocess.TimeoutExpired):  # some build themselves before they are downloaded
        subprocess.run(command, stderr=subprocess.DEVNULL, timeout=120)
    for archive in folder.glob("*.tar.gz"):
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
    return folder


def run(suite: Suite, sources: Path, scratch: Path) -> list[dict[str, str]]:
    """Every test's outcome: {"id", "outcome", "reason"}."""
    place = scratch / "run" / "tests"
    place.mkdir(parents=True)
    tests = [path for pattern in suite.tests for path in sorted(sources.glob(pattern))]
    for path in [*tests, *(sources / name for name in suite.beside)]:
        shutil.copy(path, place / path.name)
    if suite.package == "rbloom":
        tests = [HERE / "rbloom_parts.py"]
        shutil.copy(tests[0], place)
    report = scratch / "report"
    report.touch()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (HERE, HERE / "adapters", place, ROOT / "src"))),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "RIVAL_NAMES": " ".join(f"{name}={sources}" for name, sources in suite.names.items()),
        "RIVAL_REPORT": str(report),
    }
    command = [sys.executable, "-m", "pytest", *OPTIONS, "--rootdir", place.parent]
    files = [f"tests/{path.name}" for path in tests]
    subprocess.run([*command, *files], cwd=place.parent, env=environment, capture_output=True, timeout=1800)
    outcomes = {line["id"]: line for line in map(json.loads, report.read_text().splitlines())}
    return [part for line in outcomes.values() for part in each_test(line, place)]


def each_test(line: dict[str, str], place: Path) -> list[dict[str, str]]:
    """A file that cannot be imported as a failure of each test in it; the folder of the tests is left out."""
    name = line["id"].removeprefix("tests/")
    if "::" in name:
        return [{**line, "id": name}]
    functions = re.findall(r"^ *def (test\w*)", (place / name).read_text(encoding="utf-8"), re.MULTILINE)
    return [{**line, "id": f"{name}::{function}"} for function in functions]


def list_exceptions(stated: dict[str, dict], package: str) -> tuple[list[str], list[str]]:
    """The tests of a package that are set apart, and its differences."""
    by_reason = stated["packages"].get(package, {})
    unknown = by_reason.keys() - stated["apart"].keys() - stated["reasons"].keys()
    if unknown:
        raise SystemExit(f"differences.toml: {package} names reasons that are not given: {sorted(unknown)}")
    return tuple(
        [name for reason, names in by_reason.items() if reason in stated[kind] for name in names]
        for kind in ("apart", "reasons")
    )


def judge(
    results: list[dict[str, str]], apart: list[str], differences: list[str], *, why: bool
) -> tuple[list[int], list[str]]:
    """The row of the table; a line for each failure that is not stated and each statement that is stale."""
    counted = [line for line in results if line["outcome"] != "skipped"]
    applicable = [line for line in counted if not matching(apart, line["id"])]
    failures = [line for line in applicable if line["outcome"] == "failed"]
    unstated = [line for line in failures if not matching(differences, line["id"])]
    lines = [f"UNSTATED {line['id']}: {line['reason']}" for line in unstated]
    if why:
        lines += [f"stated   {line['id']}: {line['reason']}" for line in failures if line not in unstated]
    stale = [
        pattern
        for pattern in differences
        if not any(matching([pattern], line["id"]) for line in failures)
        and any(matching([pattern], line["id"]) for line in applicable)
    ]
    lines += [f"STALE    {pattern}: passes" for pattern in stale]
    passed, differences_met = len(applicable) - len(failures), len(failures) - len(unstated)
    others = len(results) - len(applicable)
    return [len(applicable), passed, differences_met, len(unstated), len(stale), others], lines


def matching(patterns, name: str) -> bool:
    """Whether a test is meant by any pattern; brackets are taken as they stand."""
    return any(fnmatch.fnmatchcase(name, pattern.replace("[", "[[]")) for pattern in patterns)


if __name__ == "__main__":
    sys.exit(main())
