"""Checks the arrows between the crates and between the modules of each crate.

The modules and what each may use stand in the table of each crate's ``src/lib.rs``; this script reads
that table, so the documentation is the rule. Prints each breach as ``file:line: message``; exit code 1
if there are any.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "crates" / "fullbloom-core"
SERVER = ROOT / "crates" / "fullbloom-server"
PY = ROOT / "crates" / "fullbloom-py"
ROW = re.compile(r"^//! \| \[?`(\w+)`\]? \|.*\| ([\w, ]+) \|$", re.MULTILINE)
USE = re.compile(r"\bcrate::(\w+)|\bcrate::\{([^}]*)\}")
# The kernels: nothing else in the core may contain `unsafe`, and nothing in the server. PY may.
KERNELS = {
    "cells/memory.rs",
    "container/file.rs",
    "foreign/bits/integers.rs",
    "hash/murmur3_spark.rs",
    "hash/xxh3.rs",
    "isa.rs",
    "parallel/compact.rs",
    "parallel/lines.rs",
    "scheme/ahead.rs",
    "scheme/block.rs",
    "scheme/columns.rs",
    "scheme/lines.rs",
    "scheme/parquet.rs",
    "scheme/pattern.rs",
    "scheme/placed.rs",
    "scheme/planes.rs",
}


def read_order(crate: Path) -> dict[str, set[str]]:
    """Return the modules that each module may use: those in the table, and those that these may use."""
    allowed: dict[str, set[str]] = {}
    for module, uses in ROW.findall((crate / "src" / "lib.rs").read_text(encoding="utf-8")):
        if uses == "nothing":
            below = set()
        elif uses == "all of the above":
            below = set(allowed)
        else:
            below = {name.strip() for name in uses.split(",")}
        allowed[module] = below.union(*(allowed[name] for name in below if name in allowed))
    if not allowed:
        sys.exit(f"{crate / 'src' / 'lib.rs'}: the table of modules is missing")
    return allowed


def read_code(path: Path) -> list[tuple[int, str]]:
    """Numbered lines without comments, up to the module's own tests."""
    lines = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith(("#[cfg(test)]", "#![cfg(test)]")):
            break
        lines.append((number, line.split("//")[0]))
    return lines


def check_file(crate: Path, path: Path, allowed: dict[str, set[str]]) -> list[str]:
    """Breaches of one file: modules it may not use, and ``unsafe`` outside of the kernels."""
    inside = path.relative_to(crate / "src")
    module = inside.parts[0].removesuffix(".rs")
    if module == "lib":
        return []
    if module not in allowed:
        return [f"{path.relative_to(ROOT)}:1: module {module!r} has no row in the table of lib.rs"]
    breaches = []
    for number, line in read_code(path):
        where = f"{path.relative_to(ROOT)}:{number}"
        for single, several in USE.findall(line):
            for name in [single] if single else [part.split("::")[0].strip() for part in several.split(",")]:
                # Error and Result are re-exported at the root of the crate.
                used = "error" if name in {"Error", "Result"} else name
                if used in allowed and used != module and used not in allowed[module] | {"error"}:
                    breaches.append(
                        f"{where}: module {module!r} may not use {used!r} (see the table in lib.rs)"
                    )
        is_kernel = crate == PY or (crate == CORE and inside.as_posix() in KERNELS)
        if re.search(r"\bunsafe\b", line) and not is_kernel:
            breaches.append(f"{where}: unsafe belongs in the kernel files only: {', '.join(sorted(KERNELS))}")
    return breaches


def check_manifest() -> list[str]:
    """The core depends neither on Python nor on the crate above it."""
    manifest = tomllib.loads((CORE / "Cargo.toml").read_text(encoding="utf-8"))
    names = set(manifest.get("dependencies", {})) | set(manifest.get("dev-dependencies", {}))
    forbidden = sorted(name for name in names if name.startswith(("pyo3", "fullbloom")))
    return [f"crates/fullbloom-core/Cargo.toml:1: the core may not depend on {name}" for name in forbidden]


def main() -> int:
    """Runs the checks; 0 if all hold."""
    breaches, modules = check_manifest(), 0
    for crate in (CORE, SERVER, PY):
        allowed = read_order(crate)
        modules += len(allowed)
        for path in sorted((crate / "src").rglob("*.rs")):
            breaches += check_file(crate, path, allowed)
    print("\n".join(breaches) or f"{modules} modules, arrows run one way")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
