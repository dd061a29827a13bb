"""Make the sources ready for a release: `python scripts/release.py --address https://HOST/OWNER/NAME`.

Writes the address of the repository into the project's metadata, and makes README's links absolute, so that
they lead somewhere on the package index's page. The address is known where the release is made, not before.
A tag, if one is built, must be the version of the workspace. With `--check` nothing is written: `make check`
tries a release so.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?://|#)([^)#\s]+)([^)\s]*)\)")


def resolve_links(text: str, address: str, version: str) -> str:
    """`text` with links that do not depend on where it is read."""

    def link(found: re.Match[str]) -> str:
        image, label, path, rest = found.groups()
        return f"{image}{label}({address}/{'raw' if image else 'blob'}/v{version}/{path}{rest})"

    return LINK.sub(link, text)


def add_addresses(project: str, address: str) -> str:
    """pyproject.toml with the table of addresses before its optional dependencies."""
    table = "\n".join(
        [
            "[project.urls]",
            f'Repository = "{address}"',
            f'Documentation = "{address}/blob/main/docs/index.md"',
            f'Changelog = "{address}/blob/main/CHANGELOG.md"',
            f'Issues = "{address}/issues"',
            f'Security = "{address}/security/policy"',
        ]
    )
    return project.replace(
        "[project.optional-dependencies]", f"{table}\n\n[project.optional-dependencies]", 1
    )


def main() -> int:
    """See the top of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", default="https://example.org/owner/name")
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args()
    if not args.check and args.address == parser.get_default("address"):
        parser.error("--address is required")
    address = args.address.rstrip("/")
    version = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]["version"]
    tag = os.environ.get("GITHUB_REF_NAME", "")
    if os.environ.get("GITHUB_REF_TYPE") == "tag" and tag != f"v{version}":
        print(f"the tag is {tag}, the version of the workspace {version}", file=sys.stderr)
        return 1
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    if not re.search(rf"^## \[{re.escape(version)}\]", changes, re.MULTILINE):
        print(f"CHANGELOG.md has no entry for {version}", file=sys.stderr)
        return 1
    project, readme = ROOT / "pyproject.toml", ROOT / "README.md"
    addressed = add_addresses(project.read_text("utf-8"), address)
    linked = resolve_links(readme.read_text("utf-8"), address, version)
    if tomllib.loads(addressed)["project"]["urls"]["Repository"] != address:
        print("pyproject.toml does not take the addresses", file=sys.stderr)
        return 1
    if LINK.search(linked):
        print(f"README.md keeps a relative link: {LINK.search(linked)}", file=sys.stderr)
        return 1
    if not args.check:
        project.write_text(addressed, "utf-8")
        readme.write_text(linked, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
