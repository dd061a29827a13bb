"""The check of words finds banned phrases in pages, in Rust and in Python, by line, and skips code."""

from __future__ import annotations

import pytest
from scripts.check_words import check_file

PAGE = """A token is told
once. See [the page](told.md).

* clients ask
  of `who stands`

```text
anew
```
"""
RUST = """//! A module of 8 bits a
//! key.

/// Returns what `told` holds: None is None.
fn told() -> &'static str {
    let quote = '"'; // stands
    "one line \\
     is none"
}
"""
PYTHON = '''"""Ask whether it is None."""

def made(name: str) -> str:
    return f"{name} told" + "stands"
'''


@pytest.mark.parametrize(
    ("name", "text", "breaches"),
    [
        ("page.md", PAGE, ["1: 'told'", "4: 'ask of'"]),
        ("CHANGELOG.md", "New.\n## [0.1.0]\nTold.\n", []),
        ("a.rs", RUST, ["5: 'told'", "1: 'bits a key'", "6: 'stands'", "8: 'is none'"]),
        ("a.py", PYTHON, ["3: 'made'", "4: 'told'"]),
        ("benchmarks/a.toml", 'how = "by who"', ["1: 'by who'"]),
        ("a.toml", "told = 1", []),
    ],
)
def test_phrases_are_found_by_line(name: str, text: str, breaches: list[str]) -> None:
    found = [message.partition(";")[0].removeprefix(f"{name}:") for message in check_file(name, text)]
    assert found == breaches
