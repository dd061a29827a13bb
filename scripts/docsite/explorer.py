"""The explorer as a part of the site: its built files, and the link to them on its page."""

from __future__ import annotations

import shutil

from scripts.pages.blocks import DOCS

ROOT = DOCS.parent
BUILT = ROOT / "web" / "explorer" / "dist"
#: What Sphinx copies to the root of the site.
EXTRA = ROOT / "build" / "docs" / "extra"

LINK = """```{raw} html
<p><a class="reference external" href="explorer/index.html">Open the explorer</a></p>
```"""


def copy() -> bool:
    """Copy the built explorer to the site's folder ``explorer``; print a line if it is not built."""
    shutil.rmtree(EXTRA, ignore_errors=True)
    EXTRA.mkdir(parents=True)
    if not (BUILT / "index.html").exists():
        print("the site is built without the explorer: web/explorer/dist is missing; run make web")
        return False
    shutil.copytree(BUILT, EXTRA / "explorer")
    return True


def render_section(*, is_built: bool) -> str:
    """Return the link to the explorer where the site contains it."""
    return LINK if is_built else ""
