"""Guarantee: type checkers infer what ``api.py`` says, accept a user's program and the pages, find mistakes.

mypy and pyright read the same programs; those about all classes are made from the registry.
"""

from __future__ import annotations

import doctest
import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.docs.test_examples import PAGES, blocks

import fullbloom
from fullbloom import registry

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "typing"
STUB = ROOT / "src" / "fullbloom" / "_core.pyi"
ROWS = {row["class"]: row for row in fullbloom.variants()}
# Lines of the file that a checker complains about, with what it says.
Complaints = dict[int, str]


def mypy(folder: Path) -> dict[str, Complaints]:
    """The report of mypy on the programs in ``folder``."""
    pytest.importorskip("mypy", reason="mypy is not installed: pip install -r requirements/dev.txt")
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    found: dict[str, Complaints] = defaultdict(dict)
    for file, line, result in re.findall(r"^([^:\n]+):(\d+): error: (.*)", done.stdout, re.MULTILINE):
        found[Path(file).name][int(line)] = result
    return found


def pyright(folder: Path) -> dict[str, Complaints]:
    """The report of pyright on them."""
    program = shutil.which("pyright", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("pyright is not installed: pip install -r requirements/dev.txt")
    command = [program, "--outputjson", "--pythonpath", sys.executable, "--project", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright does not run here, it needs node: {done.stderr[-200:]}")
    found: dict[str, Complaints] = defaultdict(dict)
    for result in json.loads(done.stdout)["generalDiagnostics"]:
        if result["severity"] == "error":
            found[Path(result["file"]).name][result["range"]["start"]["line"] + 1] = result["message"]
    return found


def page_as_program(page: Path) -> str:
    """The examples of a page except those that show an error."""
    parser, lines = doctest.DocTestParser(), []
    for block in blocks(page):
        if block.kind == "python":
            lines.append(block.text)
        elif block.kind == "pycon":
            lines += [one.source for one in parser.get_examples(block.text) if one.exc_msg is None]
    return "".join(lines)


#: Wrong calls of what was built of a closed world: no key is asked for with `in`.
OF_A_WORLD = (
    'f.includes_many("abc")',
    "f.includes_many(5)",
    "f.includes(None)",
    "f.includes([1, 2])",
    "_ = 1 in f",
    "f.contains_many(words)",
    '{}.build("abc", words)',
    '{}.build(words, "abc")',
    "{}.build(words)",
    "f.verify(words)",
    '{}.open("x", mode="r+")',
    '{}.open("x", verify="all")',
    "{}(100)",
    "f.verify(5, words)",
    "f.includes_many(None)",
)


def mistakes(name: str) -> list[str]:
    """Wrong calls of a class, one per line; ``f`` is an instance."""
    known, row = getattr(fullbloom, name), ROWS[name]
    if registry.is_built(row, "included", "excluded"):
        return [*(line.format(name) for line in OF_A_WORLD), f'{name}.open("x", mode="{name}")']
    extra = ", 1" if registry.is_open(row, "key", "value") else ""
    lines = ['f.contains_many("abc")', "f.contains_many(5)", "f.contains_many(f)", 'f.contains_hashed("abc")']
    lines += [
        "_ = None in f",
        "_ = [1, 2] in f",
        f'{name}.open("x", mode="w")',
        f'fullbloom.open("x", mode="{name}")',
    ]
    lines += [f'{name}.open("x", verify="{name}")']
    if "static" not in row["capabilities"]:
        lines += [
            f"f.add([1, 2]{extra})",
            f"f.add(None{extra})",
            f'f.update("abc"{extra})',
            f"f.update(5{extra})",
        ]
        lines += [f'f.add_many("abc"{extra})', f"f.update(None{extra})"]
    else:
        lines += [f'{name}.build("abc")', f"{name}.build(5)", f"{name}.build(None)"]
    one = (
        "remove",
        "discard",
        "count",
        "positions",
        "get",
        "label",
        "depth",
        "retouch",
        "add_false_positive",
    )
    lines += [
        f"f.{method}({wrong})" for method in one if hasattr(known, method) for wrong in ("None", "[1, 2]")
    ]
    many = (
        "remove_many",
        "discard_many",
        "count_many",
        "get_many",
        "label_many",
        "depth_many",
        "retouch_many",
    )
    lines += [f'f.{method}("abc")' for method in many if hasattr(known, method)]
    named = [parameter for parameter, kind, _ in row["parameters"] if kind.startswith("str")]
    lines += [f'{name}(100, 0.01, {parameter}="fast")' for parameter in named]
    if "write-in-place" not in row["capabilities"]:
        lines.append(f'{name}.open("x", mode="r+")')
    return lines


def promises(name: str) -> list[str]:
    """Right calls of a class, with the types of their answers."""
    known, row = getattr(fullbloom, name), ROWS[name]
    closed = registry.is_built(row, "included", "excluded")
    extra = ", [1, 2]" if registry.is_open(row, "key", "value") else ""
    answering = {"includes_many" if closed else "contains_many": "bool"}
    if "static" not in row["capabilities"]:
        answering["add_many"] = "bool"
    answering |= {m: "bool" for m in ("discard_many", "retouch_many") if hasattr(known, m)}
    answering |= {
        m: "int" for m in ("count_many", "get_many", "label_many", "depth_many") if hasattr(known, m)
    }
    if registry.is_built(row, "key", "value"):
        answering["get_many"] = "int | None"
    kinds = {
        "words": "list[{}]",
        "{1, 2}": "list[{}]",
        "iter(words)": "list[{}]",
        "loose": "list[{}]",
        "array": "NDArray[np.{}]",
        "series": "pl.Series",
        "frame": "pl.Series",
        "arrow": "ArrowArray",
    }
    lines = []
    for method, one in answering.items():
        more = extra if method == "add_many" else ""
        for keys, kind in kinds.items():
            answer = kind.format(
                {"bool": "bool_", "int": "uint64"}[one.split()[0]] if "NDArray" in kind else one
            )
            lines.append(f"assert_type(f.{method}({keys}{more}), {answer})")
    protocols = {"add": "Addable", "remove": "Removable", "count": "Countable", "merge": "Mergeable"}
    fits = [
        p
        for capability, p in protocols.items()
        if hasattr(known, capability) and (p != "Addable" or not extra)
    ]
    lines += [f"{p.lower()}: {p} = f" for p in [*([] if closed else ["Filter"]), *fits]]
    return [*lines, "assert_type(f.num_added, int)", f'assert_type({name}.open("x", mode="r"), {name})']


HEAD = """import fullbloom
import numpy as np
import polars as pl
from typing import assert_type
from numpy.typing import NDArray
from fullbloom import *
from fullbloom.keys import ArrowArray
from fullbloom.protocols import Addable, Countable, Filter, Mergeable, Removable
"""
GIVEN = (
    "f: {}, words: list[str], array: NDArray[np.int64], series: pl.Series, frame: pl.DataFrame, "
    "arrow: ArrowArray, loose: Iterable[int]"
)


def program(lines: Callable[[str], list[str]]) -> str:
    """A function a class; each line is one of ``lines``."""
    bodies = (
        "\n    ".join([f"def {name.lower()}({GIVEN.format(name)}) -> None:", *lines(name)]) for name in ROWS
    )
    return "from collections.abc import Iterable\n" + HEAD + "\n".join(bodies) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """All programs, and how to check them: as strictly as possible, pages as their readers would."""
    at = tmp_path_factory.mktemp("programs")
    for name in ("api.py", "program.py"):
        shutil.copy(HERE / name, at / name)
    (at / "mistakes.py").write_text(program(mistakes))
    (at / "promises.py").write_text(program(promises))
    pages = []
    for page in PAGES:
        if text := page_as_program(page):
            pages.append("page_" + re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix(""))))
            (at / f"{pages[-1]}.py").write_text(text)
    loose = "\n".join(f"[mypy-{page}]\nignore_errors = false\ncheck_untyped_defs = false" for page in pages)
    config = "[mypy]\nallow_redefinition = true\nignore_missing_imports = true\n"
    strict = "disallow_untyped_defs = true\ndisallow_any_generics = true\nwarn_unused_ignores = true"
    config += "\n".join(f"[mypy-{name}]\n{strict}" for name in ("api", "program", "mistakes", "promises"))
    (at / "mypy.ini").write_text(f"{config}\n{loose}\n")
    settings = {"include": ["."], "reportUnusedExpression": "none", "reportMissingModuleSource": "none"}
    (at / "pyrightconfig.json").write_text(json.dumps(settings))
    return at


@pytest.fixture(scope="module", params=[mypy, pyright])
def complaints(request, folder) -> dict[str, Complaints]:
    return request.param(folder)


def test_type_checkers_find_every_mistake_in_every_class(folder, complaints):
    lines = (folder / "mistakes.py").read_text().splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.startswith("    ")}
    assert len(wrong) > 15 * len(ROWS)
    missed = [lines[number - 1] for number in sorted(wrong - complaints["mistakes.py"].keys())]
    assert not missed
    assert not complaints["mistakes.py"].keys() - wrong, "the head is sound"


def test_every_class_returns_the_container_type_of_the_batch(folder, complaints):
    lines = (folder / "promises.py").read_text().splitlines()
    assert [(lines[number - 1], result) for number, result in complaints["promises.py"].items()] == []


@pytest.mark.parametrize("name", ["api.py", "program.py"])
def test_programs_pass_the_type_checkers(name, complaints):
    assert complaints[name] == {}


def test_every_example_on_the_pages_passes_the_type_checkers(folder, complaints):
    pages = {path.name for path in folder.glob("page_*.py")}
    assert len(pages) > len(ROWS)
    # Polars has no way to declare a namespace that a package adds to its expressions.
    found = {
        page: {line: text for line, text in complaints[page].items() if '"bloom"' not in text}
        for page in sorted(pages)
    }
    assert {page: lines for page, lines in found.items() if lines} == {}


def test_the_program_runs():
    done = subprocess.run([sys.executable, HERE / "program.py"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_hand_written_overloads_match_the_accepted_names():
    """The stub takes others from refusals of the constructors; these belong to methods."""
    hand = re.findall(r"scheme: Literal\[([^\]]*)\] = \.\.\.", STUB.read_text(encoding="utf-8"))
    with pytest.raises(fullbloom.ParameterError) as refusal:
        fullbloom.RetouchedBloomFilter(100).retouch("a", "?")
    taken = re.search(r"one of (.*), got", str(refusal.value))[1].split(", ")
    assert len(hand) > 1
    assert {tuple(re.findall(r"[\w-]+", names)) for names in hand} == {tuple(taken)}


def test_the_package_has_a_py_typed_marker():
    assert (ROOT / "src" / "fullbloom" / "py.typed").exists()
