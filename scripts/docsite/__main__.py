"""Write the source of the documentation site to build/docs/source.

python -m scripts.docsite

The pages of docs/ are copied. On the way, a comment ``<!-- toctree: ... -->`` becomes a table of contents,
and ``<!-- generate: NAME -->`` becomes what the code says. On GitHub such comments are not visible.
"""

from __future__ import annotations

import re
import shutil
import sys
from typing import TYPE_CHECKING

from scripts.docsite import api, explorer, npm, service
from scripts.pages.blocks import DOCS

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = DOCS.parent / "build" / "docs" / "source"
TREE = re.compile(r"<!-- toctree: ([^>]+?) -->")
GENERATED = re.compile(r"<!-- generate: (\w+) -->")


def _format_tree(found: re.Match[str]) -> str:
    """Return a hidden table of contents; its pages are listed in the text as well."""
    return "\n".join(["```{toctree}", ":hidden:", ":glob:", "", *found[1].split(), "```"])


def _write(path: Path, text: str) -> None:
    """Write a file if it changed, so that Sphinx reads changed pages only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main() -> int:
    """Write all pages, and remove those that are no longer there."""
    sections = {
        "api": api.render_index(),
        "npm": npm.render_section(),
        "explorer": explorer.render_section(is_built=explorer.copy()),
        **service.render_sections(),
    }
    written = set()
    for path in sorted(DOCS.rglob("*.md")):
        text = TREE.sub(_format_tree, path.read_text(encoding="utf-8"))
        text = GENERATED.sub(lambda found: sections[found[1]], text)
        written.add(SOURCE / path.relative_to(DOCS))
        _write(SOURCE / path.relative_to(DOCS), text)
    for name, text in api.render_pages().items():
        written.add(SOURCE / name)
        _write(SOURCE / name, text)
    for old in [*SOURCE.rglob("*.md"), *SOURCE.rglob("*.rst")]:
        if old not in written:
            old.unlink()
    shutil.copytree(DOCS / "images", SOURCE / "images", dirs_exist_ok=True)
    print(f"{len(written)} pages in {SOURCE.relative_to(DOCS.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
