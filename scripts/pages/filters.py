"""The pages under docs/filters: every row of the registry has one.

A page with nothing that people wrote also gets the class's docstring and example.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from scripts.pages.blocks import BLOCK, DOCS, END, START, replaced, table, wrapped

import fullbloom

if TYPE_CHECKING:
    from pathlib import Path

PAGES = DOCS / "filters"
KEYS = 1_000_000
RATES = ((0.01, "1 %"), (0.001, "0.1 %"))
GUARANTEES = {
    "never": "never; a key that was added is found",
    "only on misuse": "only on misuse, such as removing a key that was never added",
    "by design": "by design; the structure forgets or is told to",
}
#: Operations that the registry's words stand for, as a reader would say them.
OPERATIONS = {
    "add": "add",
    "remove": "remove",
    "delete": "remove where it can",
    "count": "count",
    "merge": "merge",
    "union": "union",
    "intersect": "intersect",
    "overlap": "intersect, count what is in both",
    "estimate": "estimate the number of keys",
    "expire": "forget old keys",
    "label": "tell a key's label",
    "value": "tell a key's value",
    "positions": "tell a key's cells",
    "grow": "grow",
    "static": "made of all its keys at once",
    "map": "open a file in constant time",
    "write-in-place": "write a file in place",
}


def bits_a_key(cls: Any, fpr: float) -> str:
    """Bits for each of a million keys, or a dash where the class has no filter of this rate."""
    if not hasattr(cls, "nbytes_for"):  # that depends on more than a number of keys
        return "-"
    try:
        return f"{8 * cls.nbytes_for(KEYS, fpr) / KEYS:.1f}"
    except fullbloom.FullbloomError:
        return "-"


def methods(cls: Any) -> str:
    """The public methods and attributes of a class."""
    names = [name for name in dir(cls) if not name.startswith("_") and hasattr(cls, name)]
    return ", ".join(f"`{name}`" for name in sorted(names))


def made(row: dict[str, Any], cls: Any) -> str:
    """How one is made: by the class itself, or, of all its keys, by its `build`."""
    build = "static" in row["capabilities"]
    name = f"{cls.__name__}.build" if build else cls.__name__
    signature = str(inspect.signature(cls.build if build else cls))
    # A default that is a name in Rust shows as an ellipsis.
    signature = signature.replace(", **unknown", "")
    return f"`{name}{signature}`"


def listed(row: dict[str, Any], cls: Any) -> str:
    """The registry row and the cost of its class, as a list and its law."""
    bits = ", ".join(f"{bits_a_key(cls, rate)} at {name}" for rate, name in RATES)
    add, ask = row["ns"]
    entries = {
        "Class": made(row, cls),
        "False negatives": GUARANTEES[row["false_negatives"]],
        "Operations": ", ".join(OPERATIONS.get(word, word) for word in row["capabilities"]),
        "Layouts": ", ".join(f"`{layout}`" for layout in row["layouts"]),
        "Merging": row["merging"],
        "Cost": f"bits a key for a million keys: {bits}; a batch of ten million keys takes about {add:g} ns"
        f" a key to {'build' if 'static' in row['capabilities'] else 'add'} and {ask:g} to look up",
        "Source": row["paper"],
        "Methods and attributes": methods(cls),
    }
    items = [wrapped(f"* {name}: {text}", "  ") for name, text in entries.items() if text]
    return "\n".join([*items, "", "```text", row["formula"], "```"])


def docstring(cls: Any) -> str:
    """What the class says of itself: prose, then its example."""
    prose, _, example = (inspect.getdoc(cls) or "").partition(">>>")
    paragraphs = [wrapped(" ".join(part.split())) for part in prose.strip().split("\n\n") if part.strip()]
    if example:
        paragraphs.append(f"```pycon\n>>>{example.rstrip()}\n```")
    return "\n\n".join(paragraphs)


def page(row: dict[str, Any], text: str) -> str:
    """The page of a row: ``text``, with what is between the marks made anew."""
    cls = getattr(fullbloom, row["class"])
    text = text or f"# {row['name']}\n"
    own = BLOCK.sub("", text).split("\n", 1)[1].strip()
    content = listed(row, cls) if own else f"{docstring(cls)}\n\n{listed(row, cls)}"
    made = replaced(text, content)
    if made is not None:
        return made
    head, heading, rest = text.partition("\n## ")
    return f"{head.rstrip()}\n\n{START}\n\n{content}\n\n{END}\n" + (f"{heading}{rest}" if heading else "")


def index(rows: list[dict[str, Any]], text: str) -> str:
    """The table of all rows."""
    head = [
        "filter",
        "class",
        "false negatives",
        "further operations",
        "bits a key at 1 %, 0.1 %",
        "ns a key",
    ]
    lines = []
    for row in rows:
        cls = getattr(fullbloom, row["class"])
        bits = ", ".join(bits_a_key(cls, rate) for rate, _ in RATES)
        more = ", ".join(word for word in row["capabilities"] if word not in {"add", "map"})
        add, ask = row["ns"]
        name = f"[{row['name']}]({row['name']}.md)"
        lines.append([name, f"`{row['class']}`", row["false_negatives"], more, bits, f"{add:g}, {ask:g}"])
    note = (
        "Bits a key are those of a filter made for a million keys with default parameters; a dash means that "
        "there is none of that rate. The times are those of a batch of ten million integers, to add and to "
        "look up, on one core: for planning, not a promise."
    )
    return replaced(text, f"{table(head, lines)}\n\n{wrapped(note)}") or text


def pages() -> dict[Path, str]:
    """Every page of a filter and their index, as they ought to be."""
    rows = fullbloom.variants()
    made = {}
    for name, row in [("index", None), *((row["name"], row) for row in rows)]:
        path = PAGES / f"{name}.md"
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        made[path] = index(rows, before) if row is None else page(row, before)
    return made
