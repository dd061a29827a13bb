"""Write the generated parts of the pages; ``--check`` only lists those out of date.

python -m scripts.pages [--check]
"""

from __future__ import annotations

import sys

from scripts.pages import coverage, filters, foreign, formats, formulas, rates
from scripts.pages.blocks import DOCS


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` fail when one is out of date."""
    fresh = filters.render_pages() | formats.render_pages() | formulas.render_pages()
    stale = []
    fresh |= rates.render_pages() | foreign.render_pages() | coverage.render_pages()
    for path, after in fresh.items():
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        if after != before:
            stale.append(str(path.relative_to(DOCS)))
            if "--check" not in arguments:
                path.write_text(after, encoding="utf-8")
    if "--check" in arguments and stale:
        print(f"out of date: {', '.join(stale)}; run python -m scripts.pages", file=sys.stderr)
        return 1
    print(f"{len(stale)} written" if stale else f"{len(fresh)} pages are current")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
