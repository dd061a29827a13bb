"""Guarantee: scripts/check_words.py finds banned phrases in sentences, and over a line end, nowhere else."""

from __future__ import annotations

from scripts.check_words import check_page

PAGE = """A token is told
once. See [the page](told.md).

* clients ask
  of `who stands`

```text
anew
```
"""


def test_phrases_in_sentences_are_found_by_line() -> None:
    assert [message.partition("; ")[0] for message in check_page("page.md", PAGE)] == [
        "page.md:1: 'told'",
        "page.md:4: 'ask of'",
    ]
