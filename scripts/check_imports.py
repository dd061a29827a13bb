"""Checks that third-party packages stay at the edge.

``import fullbloom`` (and its command line) must load no third-party package, and each third-party package is
imported by one file of ``src/fullbloom`` at most, besides a blocking twin generated from it. Packages of the
extra ``server`` may be used all over the room ``service``, which only ``fullbloom serve`` and its kin load,
and a client all over its engine's; others stand in one file there, too.
Prints each breach; exit code 1 if any.
"""

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "fullbloom"
#: What the room of an extra is made of.
ROOMS = {
    "engines": {"redis"},
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


def loaded_by(module: str) -> list[str]:
    """Third-party packages that a fresh interpreter loads with ``module``."""
    command = [sys.executable, "-c", LOADED.format(module=module)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def imported_in(path: Path) -> set[str]:
    """Third-party packages that a file names in an import, wherever it stands."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").partition(".")[0])
    # The interpreter may be older than a module that is tried first, as compression.zstd of 3.14.
    return names - set(sys.stdlib_module_names) - {"fullbloom", "compression"}


def main() -> int:
    """Runs both checks; 0 if they hold."""
    breaches = [
        f"import {module} loads {', '.join(names)}"
        for module in ("fullbloom", "fullbloom.theory", "fullbloom.cli")
        if (names := loaded_by(module))
    ]
    users = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name.startswith("sync_") and path.with_name(f"a{path.name}").exists():
            continue  # generated from async_*.py, see colours.py
        for name in imported_in(path):
            users[name].append(path.relative_to(ROOT).as_posix())
    for name, files in users.items():
        rooms = defaultdict(list)
        for file in files:
            room = Path(file).parts[2]
            if name not in ROOMS.get(room, ()):
                rooms[room if room in ROOMS else ""].append(file)
        breaches += [
            f"{name} is imported in {', '.join(found)}: keep it in one file"
            for found in rooms.values()
            if len(found) > 1
        ]
    print("\n".join(breaches) or "import fullbloom loads the standard library only")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
