"""The table in docs/explanation/rates.md: the rate by bits per key and number of hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.pages.blocks import BLOCK, DOCS, END, START

from fullbloom import theory

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DOCS / "explanation" / "rates.md"
ITEMS = 1_000_000
BITS_PER_KEY = (2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 32)
HASHES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16)


def format_rates() -> str:
    """Return the table, with the lowest rate of each row in bold."""
    head = ["m/n", *(f"k = {hashes}" for hashes in HASHES)]
    rows = [head, ["---"] * len(head)]
    for bits in BITS_PER_KEY:
        found = [theory.classic_fpr(ITEMS, bits * ITEMS, hashes) for hashes in HASHES]
        cells = [f"**{rate:.2g}**" if rate == min(found) else f"{rate:.2g}" for rate in found]
        rows.append([str(bits), *cells])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def render_pages() -> dict[Path, str]:
    """Return the current text of the page."""
    text = PAGE.read_text(encoding="utf-8")
    return {PAGE: BLOCK.sub(f"{START}\n\n{format_rates()}\n\n{END}", text)}
