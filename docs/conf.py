"""Sphinx's configuration of the documentation site, which `make docs` builds from these pages."""

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from scripts.docsite.accessibility import mend_folder
from scripts.docsite.navigation import shorten_menus

project = "Fullbloom"
author = "The Fullbloom authors"
copyright = author  # noqa: A001 - the name that Sphinx reads
release = re.search(  # type: ignore[union-attr]
    r'^version = "(.+)"$',
    (Path(__file__).parents[1] / "Cargo.toml").read_text(encoding="utf-8"),
    re.MULTILINE,
)[1]

extensions = ["myst_parser"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 6  # by the rule of GitHub, so that one link works on both
maximum_signature_line_length = 80
python_display_short_literal_types = True
add_module_names = False
toc_object_entries_show_parents = "hide"
smartquotes = False  # quotes in text are quotes of Python
show_warning_types = True

html_theme = "furo"
html_title = f"{project} {release}"
html_static_path = ["_static"]
# Built pages that belong to the site as they are: scripts/docsite puts the explorer there.
html_extra_path = ["../build/docs/extra"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "sidebar_hide_name": False,
    "light_css_variables": {
        "color-code-background": "#f6f8fa",
        "color-brand-primary": "#047857",
        "color-brand-content": "#047857",
    },
    "dark_css_variables": {"color-brand-primary": "#34d399", "color-brand-content": "#34d399"},
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"


def setup(app: Any) -> None:
    """Shorten the way to each page's menu, and mend the pages after each build."""
    shorten_menus(app)

    def finish(app: Any, error: Exception | None) -> None:
        if error is None:
            mend_folder(Path(app.outdir))

    app.connect("build-finished", finish)
