"""Guarantee: every link within the documentation leads to a file and a heading, and every page is linked."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from cases import for_each

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
#: What is not read for links or headings: fenced blocks.
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
#: Code in a line, whose brackets are no link; left in headings, of whose anchors it is a part.
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(\s*([^)\s]+)[^)]*\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
ANCHOR = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page by GitHub's rule: lower case, no punctuation, hyphens for spaces."""
    text, found = prose(page), set[str]()
    for heading in HEADING.findall(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number = 0
        while (name := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(name)
    return frozenset(found | set(ANCHOR.findall(text)))


def links(page: Path) -> list[str]:
    found = LINK.findall(CODE.sub("", prose(page)))
    return [link for link in found if not re.match(r"[a-z][a-z0-9+.-]*:", link)]


def fault(page: Path, link: str) -> str | None:
    """Return what is wrong with a link; None for a good one."""
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return f"{link}: no such file"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return f"{link}: no such heading"
    return None


@for_each("name", NAMES)
def test_every_link_points_to_a_file_and_a_heading(name: str) -> None:
    page = ROOT / name
    assert [why for link in links(page) if (why := fault(page, link))] == []


def test_every_page_is_reached_from_the_index() -> None:
    reached, waiting = set[Path](), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        targets = [(page.parent / link.partition("#")[0]).resolve() for link in links(page)]
        waiting.extend(target for target in targets if target.suffix == ".md" and target.is_relative_to(DOCS))
    assert sorted(str(page.relative_to(DOCS)) for page in set(DOCS.rglob("*.md")) - reached) == []


def test_broken_links_are_detected(tmp_path: Path) -> None:
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    page.write_text(
        "# A `code`, and more\n\n[a](other.md#two) [b](other.md#none) [c](away.md) [d](#a-code-and-more)\n"
    )
    other.write_text("## Two\n## Two\n\n```sh\n# None\n```\n")
    assert anchors(other) == {"two", "two-1"}
    assert [fault(page, link) for link in links(page)] == [
        None,
        "other.md#none: no such heading",
        "away.md: no such file",
        None,
    ]
