"""Mend the markup of built pages where Sphinx and its theme break a rule of accessibility.

``docs/conf.py`` calls it after each build; every change leaves a page that was mended before as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: What is replaced by what. Landmarks of one kind need names. What scrolls must take the focus, so that keys
#: scroll it. The empty cell above row headers is a data cell. Every page has a heading.
REPLACED = [
    (re.compile(r'<aside class="sidebar-drawer">'), '<aside class="sidebar-drawer" aria-label="All pages">'),
    (re.compile(r'<aside class="(toc-drawer[^"]*)">'), r'<aside class="\1" aria-label="This page">'),
    (re.compile(r'(<div class="highlight[^"]*">)<pre>'), r'\1<pre tabindex="0">'),
    (re.compile(r'<div class="(table-wrapper[^"]*)">'), r'<div class="\1" tabindex="0">'),
    (re.compile(r'<th class="(head[^"]*)"><p></p></th>'), r'<td class="\1"><p></p></td>'),
    (re.compile(r'(?<!</h1>)<div id="search-results">'), '<h1>Search</h1><div id="search-results">'),
]
SIGNATURE = re.compile(r'<dt class="sig [^>]*>.*?</dt>', re.DOTALL)
IN_SIGNATURE = {
    "<dl>": '<div class="sig-params">',
    "</dl>": "</div>",
    "<dd>": '<div class="sig-line">',
    "</dd>": "</div>",
}


def mend(page: str) -> str:
    """Return the text of a page, mended.

    >>> mend('<div class="highlight"><pre>1</pre></div>')
    '<div class="highlight"><pre tabindex="0">1</pre></div>'
    """
    for pattern, text in REPLACED:
        page = pattern.sub(text, page)
    return SIGNATURE.sub(_mend_signature, page)


def _mend_signature(found: re.Match[str]) -> str:
    """Return the signature with lines instead of definitions without terms."""
    text = found[0]
    for tag, other in IN_SIGNATURE.items():
        text = text.replace(tag, other)
    return text


def mend_folder(folder: Path) -> None:
    """Mend every page of a built site; the explorer is built elsewhere."""
    for path in folder.rglob("*.html"):
        if path.relative_to(folder).parts[0] in {"explorer", "_static"}:
            continue
        before = path.read_text(encoding="utf-8")
        after = mend(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
