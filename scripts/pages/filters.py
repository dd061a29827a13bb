"""The pages under docs/filters: every row of the registry has one.

A page without handwritten text also gets the class's docstring and example.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from scripts.pages.blocks import BLOCK, DOCS, END, START, format_table, replace_block, wrap

import fullbloom

if TYPE_CHECKING:
    from pathlib import Path

PAGES = DOCS / "filters"
KEYS = 1_000_000
RATES = ((0.01, "1 %"), (0.001, "0.1 %"))
GUARANTEES = {
    "never": "never; a key that was added is found",
    "only on misuse": "only on misuse, such as removing a key that was never added",
    "by design": "by design; the structure forgets, by itself or on request",
}
#: Descriptions of the registry's words for operations.
OPERATIONS = {
    "add": "add",
    "remove": "remove",
    "delete": "remove some keys",
    "count": "count",
    "merge": "merge",
    "union": "union",
    "intersect": "intersect",
    "overlap": "intersect, count common keys",
    "estimate": "estimate the number of keys",
    "expire": "forget old keys",
    "label": "look up a key's label",
    "value": "look up a key's value",
    "positions": "list a key's cells",
    "bits": "return the values of all cells",
    "grow": "grow",
    "static": "built from all its keys at once",
    "map": "open a file in constant time",
    "write-in-place": "write a file in place",
}


def format_bits(cls: Any, fpr: float) -> str:
    """Return the bits per key for a million keys, or a dash if the class has no filter of this rate."""
    if not hasattr(cls, "nbytes_for"):  # its size depends on more than a number of keys
        return "-"
    try:
        return f"{8 * cls.nbytes_for(KEYS, fpr) / KEYS:.1f}"
    except fullbloom.FullbloomError:
        return "-"


def list_methods(cls: Any) -> str:
    """Return the public methods and attributes of a class."""
    names = [name for name in dir(cls) if not name.startswith("_") and hasattr(cls, name)]
    return ", ".join(f"`{name}`" for name in sorted(names))


def format_signature(row: dict[str, Any], cls: Any) -> str:
    """Return the call that creates a filter: the class itself, or `build` with all keys."""
    build = "static" in row["capabilities"]
    name = f"{cls.__name__}.build" if build else cls.__name__
    signature = str(inspect.signature(cls.build if build else cls))
    # A default that is a name in Rust shows as an ellipsis.
    signature = signature.replace(", **unknown", "")
    return f"`{name}{signature}`"


def format_row(row: dict[str, Any], cls: Any) -> str:
    """Return the registry row and the cost of its class as a list, and its law."""
    bits = ", ".join(f"{format_bits(cls, rate)} at {name}" for rate, name in RATES)
    add, lookup = row["ns"]
    entries = {
        "Class": format_signature(row, cls),
        "False negatives": GUARANTEES[row["false_negatives"]],
        "Operations": ", ".join(OPERATIONS.get(word, word) for word in row["capabilities"]),
        "Layouts": ", ".join(f"`{layout}`" for layout in row["layouts"]),
        "Merging": row["merging"],
        "Cost": f"bits per key for a million keys: {bits}; a batch of ten million keys takes about {add:g} ns"
        f" per key to {'build' if 'static' in row['capabilities'] else 'add'} and {lookup:g} to look up",
        "Source": row["paper"],
        "Methods and attributes": list_methods(cls),
    }
    items = [wrap(f"* {name}: {text}", "  ") for name, text in entries.items() if text]
    return "\n".join([*items, "", "```text", row["formula"], "```"])


def format_docstring(cls: Any) -> str:
    """Return the class's docstring: prose, then its example."""
    prose, _, example = (inspect.getdoc(cls) or "").partition(">>>")
    paragraphs = [wrap(" ".join(part.split())) for part in prose.strip().split("\n\n") if part.strip()]
    if example:
        paragraphs.append(f"```pycon\n>>>{example.rstrip()}\n```")
    return "\n\n".join(paragraphs)


def render_page(row: dict[str, Any], text: str) -> str:
    """Return the page of a row: ``text``, with a new part between the marks."""
    cls = getattr(fullbloom, row["class"])
    text = text or f"# {row['name']}\n"
    own = BLOCK.sub("", text).split("\n", 1)[1].strip()
    content = format_row(row, cls) if own else f"{format_docstring(cls)}\n\n{format_row(row, cls)}"
    page = replace_block(text, content)
    if page is not None:
        return page
    head, heading, rest = text.partition("\n## ")
    return f"{head.rstrip()}\n\n{START}\n\n{content}\n\n{END}\n" + (f"{heading}{rest}" if heading else "")


def render_index(rows: list[dict[str, Any]], text: str) -> str:
    """Return the page with the table of all rows."""
    head = [
        "filter",
        "class",
        "false negatives",
        "further operations",
        "bits per key at 1 %, 0.1 %",
        "ns per key",
    ]
    lines = []
    for row in rows:
        cls = getattr(fullbloom, row["class"])
        bits = ", ".join(format_bits(cls, rate) for rate, _ in RATES)
        more = ", ".join(word for word in row["capabilities"] if word not in {"add", "map"})
        add, lookup = row["ns"]
        name = f"[{row['name']}]({row['name']}.md)"
        lines.append([name, f"`{row['class']}`", row["false_negatives"], more, bits, f"{add:g}, {lookup:g}"])
    note = (
        "Bits per key are those of a filter for a million keys with default parameters; a dash means that no "
        "filter has that rate. The times are those of a batch of ten million integers, to add and to look up,"
        " on one core: use them for planning."
    )
    return replace_block(text, f"{format_table(head, lines)}\n\n{wrap(note)}") or text


def render_pages() -> dict[Path, str]:
    """Return the current text of every filter's page and of their index."""
    rows = fullbloom.variants()
    pages = {}
    for name, row in [("index", None), *((row["name"], row) for row in rows)]:
        path = PAGES / f"{name}.md"
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        pages[path] = render_index(rows, before) if row is None else render_page(row, before)
    return pages
