"""Every filter has a card for notebooks: well-formed, escaped, without scripts, cheap if it is huge."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

from cases import for_each
from support import SECRET

import fullbloom
from fullbloom.card import COUNTED_BYTES, format_bytes, format_rate, render_card

GOLDEN = sorted((Path(__file__).resolve().parents[1] / "golden").glob("*.bloom"))


class Reader(HTMLParser):
    """Collects the text; every element must be closed in its turn."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert tag in {"div", "strong", "table", "tbody", "tr", "th", "td"}
        self.open.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@for_each("path", GOLDEN, ids=lambda path: path.stem)
def test_every_class_has_a_card_with_its_numbers(path):
    made = fullbloom.loads(path.read_bytes(), secret=SECRET if path.stem.endswith("keyed") else None)
    html = made._repr_html_()
    card = Reader(html)
    text = " ".join(card.texts)
    assert type(made).__name__ in text
    assert f"{100 * made.fill:.1f} % full" in text
    assert f"{made.num_added:,} of {made.capacity:,}" in text
    assert format_rate(made.fpr()) in text
    assert format_rate(made.target_fpr) in text
    assert format_bytes(made.nbytes) in text
    assert {name for name, _ in card.attributes} <= {"style", "role", "aria-label", "scope"}
    assert not re.search(r"#[0-9a-f]{3,6}\b|rgb|url\(|color:(?!currentColor|inherit)", html), (
        "colours of the page only"
    )
    assert len(html) < 3000


def test_a_rate_above_the_target_is_reported():
    made = fullbloom.BloomFilter(100, 0.01)
    made.update(range(1000))
    assert "above the target of 1 %" in made._repr_html_()


def test_the_name_of_a_file_is_escaped(tmp_path):
    path = tmp_path / "<img src=x onerror=alert(1)>&\x1b\u202e.bloom"
    fullbloom.BloomFilter(100).save(path)
    html = fullbloom.open(path)._repr_html_()
    text = " ".join(Reader(html).texts)
    assert "<img src=x" in text, "as text"
    assert "\x1b" not in html
    assert "\u202e" not in html
    long = tmp_path / ("x" * 200)
    fullbloom.BloomFilter(100).save(long)
    assert "x" * 100 not in fullbloom.open(long)._repr_html_()


class Untouched:
    """A filter of a size that must not be read for a card."""

    nbytes, num_added, capacity, target_fpr, path = COUNTED_BYTES + 1, 300, 1000, 0.01, None

    @property
    def fill(self):
        raise AssertionError("a pass over all cells")

    def fpr(self):
        raise AssertionError("a pass over all cells")


def test_a_huge_filter_is_not_read():
    text = " ".join(Reader(render_card(Untouched())).texts)
    assert "30.0 % of the capacity" in text
    assert "not computed" in text


def test_the_bar_stays_in_its_frame():
    full = Untouched()
    full.num_added, full.capacity = 5000, 10
    assert "width:100.0%" in render_card(full)
    full.num_added, full.capacity = 0, 0
    assert "width:0.0%" in render_card(full)
