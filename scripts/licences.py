"""Writes THIRD-PARTY-LICENSES: the licences of the crates that are linked into the extension.

`python scripts/licences.py` writes the file, `--check` exits with 1 when it is not current. Of a crate under
several licences the text of the MIT licence is preferred. Crates that only run while building
(procedural macros and what they need) are not in the extension and not in the file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "THIRD-PARTY-LICENSES"
HEAD = """The native modules of Fullbloom and its module for browsers contain code of the following Rust
crates and of Rust's standard library (MIT OR Apache-2.0, https://github.com/rust-lang/rust). Their
licences are below. `python scripts/licences.py` writes this file.
"""
# The first that a crate has is taken.
TEXTS = ("LICENSE-MIT", "LICENSE-MIT.txt", "license-mit", "LICENSE", "LICENSE.txt", "COPYING")


def read_metadata() -> dict[str, Any]:
    """Return cargo's metadata of the workspace and its dependencies."""
    command = ["cargo", "metadata", "--format-version=1", "--locked"]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    )
    return found


def list_linked(known: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the packages linked into the extension, by name."""
    packages = {package["id"]: package for package in known["packages"]}
    nodes = {node["id"]: node for node in known["resolve"]["nodes"]}
    ours = set(known["workspace_members"])
    seen, ahead = set(), list(ours)
    while ahead:
        at = ahead.pop()
        if at in seen or any("proc-macro" in target["kind"] for target in packages[at]["targets"]):
            continue
        seen.add(at)
        ahead += [
            dep["pkg"] for dep in nodes[at]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])
        ]
    found = (packages[at] for at in seen - ours)
    return sorted(found, key=lambda package: (str(package["name"]), str(package["version"])))


def render_page() -> str:
    """Return the whole file."""
    parts = [HEAD]
    for package in list_linked(read_metadata()):
        folder = Path(package["manifest_path"]).parent
        texts = [folder / name for name in TEXTS if (folder / name).is_file()]
        if not texts:
            sys.exit(f"{package['name']} {package['version']}: no licence text in {TEXTS}")
        title = f"{package['name']} {package['version']} ({package['license']})"
        text = "\n".join(line.rstrip() for line in texts[0].read_text("utf-8").strip().splitlines())
        parts.append(f"{'=' * 100}\n{title}\n{package['repository'] or ''}\n\n{text}\n")
    return "\n".join(parts)


def main() -> int:
    """See the top of this file."""
    wanted = render_page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(wanted, "utf-8")
    elif not PAGE.is_file() or PAGE.read_text("utf-8") != wanted:
        print("THIRD-PARTY-LICENSES is not current; run python scripts/licences.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
