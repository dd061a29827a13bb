"""Generates the blocking module of each asyncio module: ``sync_NAME.py`` from ``async_NAME.py`` beside it.

With ``--check``, writes nothing and compares: exit code 1 and a diff if a committed file is stale.

The generator removes ``async`` and ``await``, and renames ``AsyncName`` to ``Name`` and ``async_name`` to
``sync_name``. A comment behind a ``def`` says what the method becomes if the blocking class has an operator,
a property or a constructor instead: ``# blocking: __contains__``, ``# blocking: property``, ``# blocking:
__init__`` (of a class method that creates an object), ``# blocking: __ior__`` (which returns the object). It
omits paragraphs of docstrings that begin with "In asyncio".
"""

from __future__ import annotations

import argparse
import ast
import difflib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
SOURCES = ("src/fullbloom/client/async_*.py", "src/fullbloom/engines/redis/*/async_*.py")
NOTICE = "# Generated from {} by scripts/generate_sync.py (`make stubs`); do not edit.\n\n"
DIRECTIVE = re.compile(r"  # blocking: (\w+)$")
#: Replacements, in the order in which they are made.
REPLACEMENTS = (
    (re.compile(r"\basync (?=def|with|for)"), ""),
    (re.compile(r"\bawait "), ""),
    (re.compile(r"\bredis\.asyncio\b"), "redis"),
    (re.compile(r"\basyncio\.sleep\b"), "time.sleep"),
    (re.compile(r"^import asyncio$", re.MULTILINE), "import time"),
    (re.compile(r"\bAsync(?=[A-Z])"), ""),
    (re.compile(r"\basync_(?=[a-z])"), "sync_"),
    (re.compile(r"\b__a(?=enter__|exit__)"), "__"),
    (re.compile(r"\baclose\b"), "close"),
    (re.compile(r"\bdisconnect\(nowait=True\)"), "disconnect()"),
    (
        re.compile(r"\((self\.[\w.]+\((?:[^()]|\([^()]*\))*\))\)(?=[.\[])"),
        r"\1",
    ),  # parentheses that only await needs
    (re.compile(r"(``[a-z]+ = \w+)\.open\("), r"\1("),
)
ASYNC_ONLY = re.compile(r"^ *In asyncio\b.*\n(?:(?! *\"\"\").+\n)*\n?", re.MULTILINE)

Edits = dict[int, str | None]


def apply_directives(lines: list[str]) -> Edits:
    """Return the lines that a directive changes, by index; None for those that it removes."""
    edits: Edits = {}
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.lineno - 1
            if found := DIRECTIVE.search(lines[first]):
                edits[first] = DIRECTIVE.sub("", lines[first]).replace("async def", "def", 1)
                convert_method(found[1], node, lines, edits)
    return edits


def convert_method(
    name: str, node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str], edits: Edits
) -> None:
    """Convert a method to ``name``."""
    first, last, body = node.lineno - 1, (node.end_lineno or 0) - 1, node.body[0].lineno - 1
    indent = " " * node.col_offset
    if name == "property":
        edits[first] = f"{indent}@property\n{edits[first]}"
        return
    edits[first] = (edits[first] or "").replace(f"def {node.name}(", f"def {name}(", 1)
    if name == "__ior__":
        for at in range(first, body):
            edits[at] = (edits.get(at) or lines[at]).replace("-> None:", "-> Self:")
        edits[last] = f"{edits.get(last) or lines[last]}\n{indent}    return self"
    elif name == "__init__":
        edits |= {decorator.lineno - 1: None for decorator in node.decorator_list}
        for at in range(first, body):
            text = edits.get(at) or lines[at]
            edits[at] = re.sub(r"\bcls,", "self,", text).replace("-> Self:", "-> None:")
        for at in range(body, last + 1):
            if lines[at].strip() in {"self = cls.__new__(cls)", "return self"}:
                edits[at] = None


def generate_module(text: str, origin: str) -> str:
    """Return the blocking module for the text of an asyncio module."""
    lines = text.splitlines()
    edits = apply_directives(lines)
    edited = (edits.get(at, line) for at, line in enumerate(lines))
    text = "\n".join(line for line in edited if line is not None) + "\n"
    text = ASYNC_ONLY.sub("", text)
    for pattern, replacement in REPLACEMENTS:
        text = pattern.sub(replacement, text)
    return format_module(NOTICE.format(origin) + text)


def format_module(text: str) -> str:
    """Return the text with its imports sorted, and formatted."""
    name = ["--stdin-filename", "src/fullbloom/generated.py", "-"]
    for command in (["check", "--fix", "--quiet", "--select", "I,F401"], ["format", "--quiet"]):
        run = subprocess.run(
            [str(BIN / "ruff"), *command, *name],
            cwd=ROOT,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            sys.exit(f"generate_sync: ruff {command[0]} failed\n{run.stdout}{run.stderr}")
        text = run.stdout
    return text


def main() -> int:
    """Write the blocking modules, or compare them; return 0 if all are current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is stale")
    check, stale = parser.parse_args().check, 0
    sources = sorted(path for pattern in SOURCES for path in ROOT.glob(pattern))
    for source in sources:
        target = source.with_name(source.name.replace("async_", "sync_", 1))
        new = generate_module(source.read_text(encoding="utf-8"), source.name)
        old = target.read_text(encoding="utf-8") if target.exists() else ""
        if new == old:
            continue
        stale += 1
        if check:
            name = target.relative_to(ROOT).as_posix()
            sys.stdout.writelines(
                difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, f"{name} (generated)")
            )
        else:
            target.write_text(new, encoding="utf-8")
    print(f"{len(sources)} generated modules, {stale} {'stale (make stubs)' if check else 'written'}")
    return int(check and stale > 0)


if __name__ == "__main__":
    sys.exit(main())
