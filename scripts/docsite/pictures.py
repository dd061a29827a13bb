"""Draw the pictures of the site's pages into docs/images: positions and rates are the library's own.

python -m scripts.docsite.pictures
"""

from __future__ import annotations

import math
import sys

from scripts.pages.blocks import DOCS

import fullbloom

IMAGES = DOCS / "images"
INK, GREY, LINE, GREEN, RED, BLUE = "#1f2937", "#6b7280", "#9ca3af", "#059669", "#dc2626", "#4f46e5"
FONT = "ui-sans-serif, system-ui, sans-serif"


def render_svg(width: int, height: int, title: str, parts: list[str]) -> str:
    """Return a picture on a white ground, which is readable in both themes."""
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONT}" font-size="15">',
            f"<title>{title}</title>",
            f'<rect width="{width}" height="{height}" rx="10" fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        ]
    )


def draw_text(x: float, y: float, words: str, fill: str = INK, anchor: str = "middle", size: int = 15) -> str:
    """Return a text."""
    return f'<text x="{x:g}" y="{y:g}" fill="{fill}" text-anchor="{anchor}" font-size="{size}">{words}</text>'


def draw_box(x: float, y: float, width: float, height: float, words: str, fill: str, stroke: str) -> str:
    """Return a box with a text in its middle."""
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8"'
    frame = f'<rect {place} fill="{fill}" stroke="{stroke}"/>'
    return frame + draw_text(x + width / 2, y + height / 2 + 5, words)


def draw_arrow(x1: float, y1: float, x2: float, y2: float, stroke: str = GREY) -> str:
    """Return an arrow."""
    angle = math.atan2(y2 - y1, x2 - x1)
    wings = " ".join(
        f"{x2 - 9 * math.cos(angle + turn):.1f},{y2 - 9 * math.sin(angle + turn):.1f}"
        for turn in (-0.45, 0.45)
    )
    line = f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="{stroke}" stroke-width="1.6"/>'
    return f'{line}<polygon points="{x2:g},{y2:g} {wings}" fill="{stroke}"/>'


def draw_bits() -> str:
    """Draw the bits of two keys, and an absent key whose bits they set by chance."""
    shape = fullbloom.BloomFilter.with_shape(32, 3, layout="classic", seed=2)  # a seed with a picture to show
    size, cell, wrong = shape.num_bits, 20, "cod"
    shape.update(["cat", "dog"])
    assert wrong in shape
    owners = {name: shape.positions(name) for name in ("cat", "dog", wrong)}
    taken = {position: name for name in ("dog", "cat") for position in owners[name]}
    parts, left = [], 40
    colours = {"cat": GREEN, "dog": BLUE, wrong: RED}
    for bit in range(size):
        fill = {"cat": "#d1fae5", "dog": "#e0e7ff"}.get(taken.get(bit, ""), "#f3f4f6")
        x = left + bit * cell
        parts.append(f'<rect x="{x}" y="130" width="{cell}" height="26" fill="{fill}" stroke="{LINE}"/>')
        parts.append(
            draw_text(x + cell / 2, 148, "1" if bit in taken else "0", INK if bit in taken else LINE, size=13)
        )
    places = {"cat": (200, 40, 130), "dog": (500, 40, 130), wrong: (350, 250, 156)}
    for name, (x, y, edge) in places.items():
        fill = {"cat": "#ecfdf5", "dog": "#eef2ff", wrong: "#fef2f2"}[name]
        parts.append(draw_box(x - 45, y - 18, 90, 32, name, fill, colours[name]))
        for position in owners[name]:
            target = left + position * cell + cell / 2
            start = y + 14 if y < edge else y - 18
            parts.append(draw_arrow(x, start, target, edge - 3 if y < edge else edge + 3, colours[name]))
    parts.append(
        draw_text(
            350, 290, f"{wrong} was never added, but its three bits are set: a false positive", RED, size=14
        )
    )
    return render_svg(
        left * 2 + size * cell, 310, f"cat and dog set three bits each; {wrong} finds its bits set", parts
    )


def draw_precheck() -> str:
    """Draw the way of a lookup past the filter."""
    parts = [
        draw_box(30, 70, 150, 50, "is ada a user?", "#f9fafb", LINE),
        draw_box(270, 70, 150, 50, "filter", "#ecfdf5", GREEN),
        draw_box(530, 70, 150, 50, "database", "#eef2ff", BLUE),
        draw_arrow(180, 95, 264, 95),
        draw_arrow(420, 95, 524, 95, GREEN),
        draw_text(472, 84, "maybe", GREEN, size=14),
        draw_arrow(345, 120, 345, 172, RED),
        draw_box(245, 178, 200, 40, "no: no query", "#fef2f2", RED),
        draw_text(345, 40, "a little over a byte per key, in memory", GREY, size=13),
        draw_text(605, 40, "answers for certain", GREY, size=13),
        draw_text(605, 150, "a false positive costs one query", GREY, size=13),
    ]
    return render_svg(
        730, 240, "A filter in front of a database: a no saves the query, a maybe asks the database", parts
    )


def draw_load() -> str:
    """Draw the rate of a filter of 1 % by its load."""
    capacity = 1_000_000
    shape = fullbloom.BloomFilter(capacity, 0.01)
    left, right, top, bottom, lowest = 80, 680, 30, 260, -6.0

    def place(share: float, rate: float) -> tuple[float, float]:
        level = max(math.log10(rate), lowest)
        return left + (right - left) * share / 3, top + (bottom - top) * level / lowest

    parts = []
    for power in range(0, -7, -1):
        y = place(0, 10.0**power)[1]
        parts.append(f'<path d="M{left} {y:.1f}H{right}" stroke="#e5e7eb"/>')
        label = {0: "100 %", -1: "10 %", -2: "1 %", -3: "0.1 %", -4: "0.01 %", -5: "1e-5", -6: "1e-6"}[power]
        parts.append(draw_text(left - 8, y + 5, label, GREY, "end", 13))
    shares = (0, 0.5, 1, 1.5, 2, 2.5, 3)
    parts += [draw_text(place(share, 1)[0], bottom + 22, f"{share:g} x", GREY, size=13) for share in shares]
    steps = [share / 50 for share in range(5, 151)]
    rates = [(share, shape.fpr(items=share * capacity)) for share in steps]
    curve = [place(share, rate) for share, rate in rates if rate >= 10**lowest]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in curve)
    parts.append(f'<path d="M{path}" fill="none" stroke="{GREEN}" stroke-width="2.5"/>')
    x, y = place(1, shape.fpr(items=capacity))
    parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{RED}"/>')
    parts.append(draw_text(x + 12, y + 22, "at capacity: the rate you chose", RED, "start", 14))
    parts.append(
        draw_text((left + right) / 2, bottom + 46, "keys added, as a multiple of the capacity", GREY, size=13)
    )
    return render_svg(
        710, 320, "The false-positive rate of a 1 % filter rises with its load and is 1 % at capacity", parts
    )


PICTURES = {"two-keys": draw_bits, "pre-check": draw_precheck, "rate-by-load": draw_load}


def main() -> int:
    """Write the pictures."""
    for name, draw in PICTURES.items():
        (IMAGES / f"{name}.svg").write_text(draw(), encoding="utf-8")
        print(f"docs/images/{name}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
