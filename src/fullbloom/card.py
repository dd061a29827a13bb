"""The card of a filter in a notebook: what ``_repr_html_`` of every class returns.

It may import: the standard library.

>>> from fullbloom import BloomFilter
>>> f = BloomFilter(1000, fpr=0.01)
>>> f.update(["ada", "grace"])
>>> describe(f).num_added, format_rate(describe(f).target_fpr)
(2, '1 %')
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from html import escape
from typing import Any

__all__ = [
    "COUNTED_BYTES",
    "Facts",
    "describe",
    "describe_rate",
    "format_bytes",
    "format_rate",
    "render_card",
]

#: A larger filter is not read for a card: two passes over these cells take 20 ms.
COUNTED_BYTES = 32 << 20
_KIB = 1024
#: Lower rates are shown as powers of ten.
_LEAST_PERCENT = 1e-5
#: Characters of a path on a card, from its end.
_LONGEST_PATH = 60
_BOX = "display:inline-block;min-width:20em;padding:.6em .9em;border:1px solid;border-radius:.4em"
_FRAME = "height:.6em;margin:.4em 0;border:1px solid;border-radius:.3em;overflow:hidden"
_CELL = "padding:.1em 1.2em .1em 0;text-align:left;vertical-align:top"
#: Notebooks and pages without a document type have colours and fonts of their own for tables.
_TABLE = "border:0;border-collapse:collapse;margin:0;color:inherit;font:inherit"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a card shows; ``fill`` and ``fpr`` are None for a filter too large to be read for it."""

    name: str
    num_added: int
    capacity: int
    nbytes: int
    target_fpr: float
    fill: float | None
    fpr: float | None
    path: str | None


def describe(f: Any) -> Facts:
    """Return what a card shows of a filter: numbers that it keeps and, up to 32 MiB, numbers to count."""
    small = f.nbytes <= COUNTED_BYTES
    return Facts(
        name=type(f).__name__,
        num_added=f.num_added,
        capacity=f.capacity,
        nbytes=f.nbytes,
        target_fpr=f.target_fpr,
        fill=f.fill if small else None,
        fpr=f.fpr() if small else None,
        path=None if f.path is None else os.fsdecode(f.path),
    )


def format_bytes(number: float) -> str:
    """Return a number of bytes with a unit.

    >>> format_bytes(1280), format_bytes(3 << 30)
    ('1.2 KiB', '3.0 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < _KIB:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= _KIB
    return f"{number:.1f} TiB"


def format_rate(rate: float) -> str:
    """Return a rate in percent, or as a power of ten if it is very low.

    >>> format_rate(0.0123), format_rate(1e-9), format_rate(0.0)
    ('1.23 %', '1e-09', '0 %')
    """
    return f"{100 * rate:.3g} %" if rate >= _LEAST_PERCENT or not rate else f"{rate:.2g}"


def render_card(f: Any) -> str:
    """Return the card as HTML: no script, no style sheet, in the colours of the page."""
    facts = describe(f)
    share, label = facts.fill, "full"
    if share is None:
        share, label = facts.num_added / max(facts.capacity, 1), "of the capacity"
    width = 100 * min(max(share, 0.0), 1.0)
    rows = {
        "rate now": describe_rate(facts),
        "keys added": f"{facts.num_added:,} of {facts.capacity:,}",
        "bytes": format_bytes(facts.nbytes),
    }
    if facts.path is not None:
        rows["file"] = facts.path if len(facts.path) <= _LONGEST_PATH else f"...{facts.path[-_LONGEST_PATH:]}"
    bar = (
        f'<div role="img" aria-label="{width:.1f} % {label}" style="{_FRAME}">'
        f'<div style="width:{width:.1f}%;height:100%;background:currentColor;opacity:.55"></div></div>'
    )
    name_style = f"{_CELL};font-weight:normal;opacity:.75;white-space:nowrap"
    body = "".join(
        f'<tr style="background:none"><th scope="row" style="{name_style}">{name}</th>'
        f'<td style="{_CELL}">{_escape(text)}</td></tr>'
        for name, text in rows.items()
    )
    head = f"<div><strong>{escape(facts.name)}</strong> {width:.1f} % {label}</div>"
    table = f'<table style="{_TABLE}"><tbody>{body}</tbody></table>'
    return f'<div style="{_BOX}">{head}{bar}{table}</div>'


def describe_rate(facts: Facts) -> str:
    """Return the rate now beside the rate that was requested."""
    target = format_rate(facts.target_fpr)
    if facts.fpr is None:
        return f"not computed for a filter of this size; the target is {target}"
    if facts.fpr > facts.target_fpr:
        return f"{format_rate(facts.fpr)}, above the target of {target}"
    return f"{format_rate(facts.fpr)}, the target is {target}"


def _escape(text: str) -> str:
    """Return ``text`` for HTML, with control characters and bytes that are not UTF-8 made visible."""
    return escape("".join(char if char.isprintable() else repr(char)[1:-1] for char in text))
