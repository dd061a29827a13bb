"""The rules of axe-core on pages that share their style sheets: each style and each structure is tested once.

Two things take nearly all the time of axe-core on a long page: colour rules, which it applies to each of
thousands of elements of a few styles, and the second run on a phone, where the text is the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from web.browser import AXE, find_axe_violations

#: Rules about colours. What they say of an element depends on styles alone.
COLOURS = ("color-contrast", "link-in-text-block")
#: All other rules that axe-core applies by default.
STRUCTURE = {"rules": {rule: {"enabled": False} for rule in COLOURS}}
#: The script that applies the rules about colours to one element of each style.
_FIND_COLOURS = (Path(__file__).parent / "colours.js").read_text("utf-8")
#: Returns which elements of the text can be seen.
_LIST_SEEN = """
() => [...document.querySelectorAll("article *")].map((one) =>
  one.checkVisibility({ visibilityProperty: true, opacityProperty: true }) ? "1" : "0").join("")
"""
#: Removes the text, but for its heading and what scrolls, since that must take the focus.
_REMOVE_TEXT = """
() => {
  const all = [...document.querySelectorAll("article *")];
  const doesScroll = (one) => (one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight) &&
    /auto|scroll/.test(getComputedStyle(one).overflow);
  const kept = all.filter((one) => one.localName === "h1" || doesScroll(one));
  const near = new Set(kept.flatMap((one) => [one, ...one.querySelectorAll("*")]));
  for (let one of kept)
    while ((one = one.parentElement) !== null) {
      near.add(one);
      if (one.localName === "dl") for (const term of one.querySelectorAll(":scope > dt")) near.add(term);
    }
  for (const one of all) if (!near.has(one)) one.remove();
}
"""


#: Waits until all transitions have ended, such as those to the colours of another theme.
_SETTLE = """
async () => {
  await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
  const isFinite = (one) => one.effect.getComputedTiming().endTime !== Infinity;
  const running = document.getAnimations().filter(isFinite);
  await Promise.allSettled(running.map((one) => one.finished));
}
"""


class Axe:
    """Tests pages one after the other; a style that passed on one page is not tested on the next."""

    def __init__(self) -> None:
        """No style has passed yet."""
        self.passed: list[str] = []

    def find_colours(self, page: Any) -> list[str]:
        """Return the elements whose colours break a rule: of each style one, or more."""
        if not page.evaluate("'axe' in window"):
            page.evaluate(AXE.read_text("utf-8"))
        violations, passed = page.evaluate(_FIND_COLOURS, self.passed)
        self.passed += passed
        return violations

    def find_violations_in_themes(self, page: Any) -> list[str]:
        """Return the rules that an open page breaks at its width, in both themes."""
        violations = []
        for theme in ("dark", "light"):
            page.emulate_media(color_scheme=theme)
            page.evaluate(_SETTLE)
            violations += [f"{theme}: {line}" for line in self.find_colours(page)]
        return violations + find_axe_violations(page, STRUCTURE)

    def find_violations(self, page: Any) -> list[str]:
        """Return the rules that an open page breaks: on a screen in both themes, and on a phone.

        The page is left on the phone, in part without its text.
        """
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1440, "height": 900})
        seen = page.evaluate(_LIST_SEEN)
        violations = self.find_colours(page) + find_axe_violations(page, STRUCTURE)
        page.emulate_media(color_scheme="dark")
        violations += self.find_colours(page)
        page.set_viewport_size({"width": 360, "height": 900})
        if page.evaluate(_LIST_SEEN) == seen:
            page.evaluate(_REMOVE_TEXT)
        return violations + find_axe_violations(page, STRUCTURE)
