"""Guarantee: every example in README and docs runs and prints what the page says it prints.

A ``python`` block is executed, a ``pycon`` block is a doctest; the blocks of one page share their names.
In a ``console`` block each line after ``$`` runs in a shell, in one scratch directory a page; what follows is
its standard output. Other blocks (``text``, ``sh``) are for reading.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from cases import for_each

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
RUN = {"python", "pycon", "console"}
READ = {"text", "sh"}


class Block(NamedTuple):
    """A fenced block and the line its content starts at."""

    kind: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(m[1], m[2], text.count("\n", 0, m.start(2)) + 1) for m in FENCE.finditer(text)]


def run_doctest(block: Block, page: Path, names: dict[str, object]) -> None:
    case = doctest.DocTestParser().get_doctest(block.text, {}, page.name, str(page), block.line - 1)
    case.globs = names
    report: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(case, out=report.append, clear_globs=False)
    assert not report, "".join(report)


def run_console(block: Block, page: Path, scratch: Path) -> None:
    commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not commands[0].strip(), f"{page.name}:{block.line}: a console block starts with a command"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for command in commands[1:]:
        line, _, expected = command.partition("\n")
        while line.endswith("\\"):
            more, _, expected = expected.partition("\n")
            line = f"{line}\n{more}"
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=scratch,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
        )
        same = doctest.OutputChecker().check_output(
            expected.strip() + "\n", done.stdout.strip() + "\n", OPTIONS
        )
        where = f"{page.name}:{block.line}: {line}"
        assert same, f"{where}\nexpected:\n{expected}\ngot:\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    names: dict[str, object] = {}
    with contextlib.chdir(tmp_path):
        for block in blocks(page):
            if block.kind == "python":
                # The line numbers of a traceback are those of the page.
                exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
            elif block.kind == "pycon":
                run_doctest(block, page, names)
            elif block.kind == "console":
                run_console(block, page, tmp_path)


@for_each("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_code_block_has_a_known_label(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    fences = re.findall(r"^```(\w*)", text, flags=re.MULTILINE)
    assert len(fences) % 2 == 0, "a fence is left open"
    assert set(fences[::2]) <= RUN | READ, f"label each block with one of {sorted(RUN | READ)}"
