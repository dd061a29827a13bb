"""Checks that third-party packages stay at the edge.

``import fullbloom`` (and its command line) must load no third-party package, and each third-party package is
imported by at most one file of ``src/fullbloom``, and by the blocking module generated from that file. All
files of the package ``service``, which only ``fullbloom serve`` and related commands load, may import
packages of the extra ``server``, and all files of an engine its client; others are imported in one file
there, too.
Prints each breach; exit code 1 if any.
"""

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "fullbloom"
#: Packages that all files of a subpackage may import.
SHARED = {
    "engines": {"py4j", "pyarrow", "pyspark", "redis", "sqlalchemy"},
    "service": {
        "alembic",
        "fullbloom_server",
        "fastapi",
        "pydantic",
        "pydantic_settings",
        "sqlalchemy",
        "starlette",
        "uvicorn",
    },
}
LOADED = """
import sys
before = set(sys.modules)
import {module}
names = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(names - set(sys.stdlib_module_names) - {{"fullbloom"}}))
"""


def list_loaded(module: str) -> list[str]:
    """Return the third-party packages that a fresh interpreter loads with ``module``."""
    command = [sys.executable, "-c", LOADED.format(module=module)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def list_imported(path: Path) -> set[str]:
    """Return the third-party packages that a file imports, at any place."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").partition(".")[0])
    # The interpreter may be older than a module that is tried first, as compression.zstd of 3.14.
    return names - set(sys.stdlib_module_names) - {"fullbloom", "compression"}


def main() -> int:
    """Run both checks; return 0 if they pass."""
    breaches = [
        f"import {module} loads {', '.join(names)}"
        for module in ("fullbloom", "fullbloom.theory", "fullbloom.cli")
        if (names := list_loaded(module))
    ]
    users = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name.startswith("sync_") and path.with_name(f"a{path.name}").exists():
            continue  # generated from async_*.py by generate_sync.py
        for name in list_imported(path):
            users[name].append(path.relative_to(ROOT).as_posix())
    for name, files in users.items():
        owners = defaultdict(list)
        for file in files:
            package = Path(file).parts[2]
            if name not in SHARED.get(package, ()):
                owners[package if package in SHARED else ""].append(file)
        breaches += [
            f"{name} is imported in {', '.join(found)}: keep it in one file"
            for found in owners.values()
            if len(found) > 1
        ]
    print("\n".join(breaches) or "import fullbloom loads the standard library only")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
