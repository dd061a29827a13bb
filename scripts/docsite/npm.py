"""The page of the npm package: its README, and a reference read from its TypeScript sources."""

from __future__ import annotations

import re
from typing import NamedTuple

from scripts.pages.blocks import DOCS

SOURCES = DOCS.parent / "web" / "fullbloom" / "src"
#: A comment and the declaration behind it, up to its body or its end.
COMMENT = r"/\*\*(?P<text>(?:(?!\*/).)*)\*/\n"
KINDS = "function|class|interface|type"
EXPORT = re.compile(
    rf"^{COMMENT}export (?P<code>(?:async )?(?:{KINDS}) (?P<name>\w+).*?)(?= \{{\}}?$|;$)",
    re.MULTILINE | re.DOTALL,
)
MEMBER = re.compile(
    rf"^  (?P<doc>{COMMENT})?"
    r"  (?!#|constructor\b|return\b)(?P<code>(?:get |readonly )?(?P<name>\w+)\??[(:].*?)(?= \{$|;$)",
    re.MULTILINE | re.DOTALL,
)


class Entry(NamedTuple):
    """A name that the package exports, or a member of one."""

    name: str
    code: str
    text: str
    members: tuple[Entry, ...] = ()


def _clean(comment: str) -> str:
    """Return a comment as Markdown, without the stars before its lines."""
    lines = [re.sub(r"^\s*\*? ?", "", line) for line in comment.strip().splitlines()]
    return re.sub(r"@param (\w+) ", r"`\1`: ", "\n".join(lines).strip())


def _read_members(body: str) -> tuple[Entry, ...]:
    found = [
        Entry(one["name"], " ".join(one["code"].split()), _clean(one["text"] or ""))
        for one in MEMBER.finditer(body)
    ]
    return tuple(entry for entry in found if entry.text)


def list_exports() -> list[str]:
    """Return the names that the package exports, in the order of its index."""
    index = (SOURCES / "index.ts").read_text(encoding="utf-8")
    names = re.findall(r"^export \{(.*?)\}", index, re.MULTILINE | re.DOTALL)
    return [
        name.strip().removeprefix("type ") for group in names for name in group.split(",") if name.strip()
    ]


def read_entries() -> dict[str, Entry]:
    """Return the exports with their signatures and comments, by name."""
    wanted, found = set(list_exports()), {}
    for path in sorted(SOURCES.glob("*.ts")):
        text = path.read_text(encoding="utf-8")
        for one in EXPORT.finditer(text):
            if one["name"] not in wanted:
                continue
            body = text[one.end() :].partition("\n}\n")[0] if text[one.end() :].startswith(" {\n") else ""
            is_open = re.search(r"\b(?:class|interface) ", one["code"]) is not None
            members = _read_members(body) if is_open else ()
            found[one["name"]] = Entry(one["name"], _shorten(one["code"]), _clean(one["text"]), members)
    return found


def _shorten(code: str) -> str:
    """Return a declaration in one line."""
    code = " ".join(code.split()).removeprefix("async ").removeprefix("function ")
    return code.replace("( ", "(").replace(", )", ")")


def render_section() -> str:
    """Return the package's README, and its reference: functions, classes, errors and types."""
    return f"{_read_guide()}\n\n{_render_reference(read_entries())}"


def _read_guide() -> str:
    """Return the README without its title and its licence."""
    text = (SOURCES.parent / "README.md").read_text(encoding="utf-8")
    return text.partition("\n\n")[2].partition("\n## License")[0].rstrip()


def _render_reference(entries: dict[str, Entry]) -> str:
    groups: dict[str, list[Entry]] = {"Functions": [], "Classes": [], "Errors": [], "Types": []}
    for name in list_exports():
        groups[_group_of(entries[name])].append(entries[name])
    parts = []
    for heading, members in groups.items():
        parts.append(f"## {heading}")
        for entry in members:
            parts += [f"### {entry.name}", f"```ts\n{entry.code}\n```", entry.text]
            lines = [f"* `{member.code}`: {' '.join(member.text.split())}" for member in entry.members]
            parts += ["\n".join(lines)] if lines else []
    return "\n\n".join(parts)


def _group_of(entry: Entry) -> str:
    if entry.code.startswith("class"):
        return (
            "Errors"
            if entry.name == "FullbloomError" or "extends FullbloomError" in entry.code
            else "Classes"
        )
    return "Types" if entry.code.startswith(("interface", "type")) else "Functions"
