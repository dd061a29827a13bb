"""A missing or repeated part of a declaration is a compile error that names it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = "crates/fullbloom-core/src"
STRUCTURE, REGISTRY, TAGS = f"{CORE}/exact/bit_set.rs", f"{CORE}/registry.rs", f"{CORE}/container/mod.rs"

# (file, what stands there, what stands there instead, what the error names)
FAULTS = {
    "a parameter without documentation": (
        STRUCTURE,
        "        /// N, the size of the universe: keys are the ints from 0 to capacity - 1.\n",
        "",
        'BitSet: parameters, .* before: parameters \\{ capacity: "int"',
    ),
    "a field without documentation": (
        STRUCTURE,
        "        /// Number of members.\n",
        "",
        "BitSet: a field is .* before: members: u64",
    ),
    "a tag used twice in a structure": (STRUCTURE, "f.members, COUNT;", "f.members, CAPACITY;", "`CAPACITY`"),
    "a tag's number used twice": (TAGS, "STRICT = 9,", "STRICT = 8,", "value `8` assigned more than once"),
    "a structure's number used twice": (REGISTRY, "BIT_SET = 19", "BIT_SET = 18", "`18` assigned"),
    "a row without its law": (REGISTRY, "formula: ", "formulas: ", "no rules expected `formulas`"),
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A copy of the sources, checked once so that each fault costs a check of one crate."""
    if shutil.which("cargo") is None:
        pytest.skip("needs cargo, which is not on PATH")
    copy = tmp_path_factory.mktemp("workspace")
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "crates", copy / "crates")
    done = check(copy)
    assert done.returncode == 0, done.stderr
    return copy


def check(workspace):
    command = ["cargo", "check", "--locked", "--quiet", "--package", "fullbloom-core"]
    return subprocess.run(command, cwd=workspace, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_declaration_is_a_compile_error_that_names_it(workspace, fault):
    name, before, after, named = FAULTS[fault]
    path = workspace / name
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), encoding="utf-8")
    try:
        done = check(workspace)
    finally:
        path.write_text(text, encoding="utf-8")
    assert done.returncode != 0
    assert re.search(named, " ".join(done.stderr.split())), done.stderr
