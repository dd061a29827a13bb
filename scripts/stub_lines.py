"""Fills the lines of the stub: paragraphs of docstrings, base classes, and the list of public names.

In the extension the sentences are wrapped for the indentation of Rust: their lines end at various columns.
"""

import re
import textwrap

#: Columns of a line of a docstring.
_WIDTH = 120
_DOCSTRING = re.compile(r'^( *)(""")(?!")((?:(?!""").)*?)\n *"""$', flags=re.MULTILINE | re.DOTALL)
#: What begins a line of its own: a parameter, an item of a list.
_ITEM = re.compile(r"[a-z_]+: |[*-] ")
#: Examples, tables, formulas, and text set in columns or indented.
_VERBATIM = re.compile(r"^(?:>>>|\||\$\$|```)|^ |\S  +\S", flags=re.MULTILINE)


def fill_names(text: str) -> str:
    """Return the stub with several names in each line of ``__all__`` and of bases; ruff would write one."""

    def fill(match: re.Match[str]) -> str:
        names = " ".join(match[2].split())
        names = textwrap.fill(names, _WIDTH, initial_indent="    ", subsequent_indent="    ")
        return f"{match[1]}\n{names}\n{match[3]}\n"

    lists = r"^(__all__ = \[|class \w+\()\n(.*?)(\]|\):)\n"
    return re.sub(lists, fill, text, flags=re.MULTILINE | re.DOTALL)


def refill_docstrings(text: str) -> str:
    """Return the stub with its docstrings refilled; examples, lists and tables keep their lines."""
    return _DOCSTRING.sub(_refill, text)


def _refill(match: re.Match[str]) -> str:
    """Refill one docstring."""
    indent, quotes, body = match.groups()
    paragraphs = re.split(r"\n(?: *\n)+", textwrap.dedent(indent + body))
    paragraphs = [_refill_paragraph(p, _WIDTH - len(indent), 0 if i else 3) for i, p in enumerate(paragraphs)]
    filled = indent + quotes + textwrap.indent("\n\n".join(paragraphs), indent).lstrip()
    # The quotes follow a single paragraph where they fit.
    last = filled.rpartition("\n")[2]
    fit = len(paragraphs) == 1 and len(last) + len(quotes) <= _WIDTH and not last.endswith(('"', "\\"))
    return filled + (quotes if fit else f"\n{indent}{quotes}")


def _refill_paragraph(paragraph: str, width: int, taken: int) -> str:
    """Refill a paragraph whose first line has ``taken`` columns less."""
    if _VERBATIM.search(paragraph):
        return paragraph
    blocks: list[list[str]] = []
    for line in paragraph.split("\n"):
        if blocks and not _ITEM.match(line):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    lines = []
    for i, block in enumerate(blocks):
        first = " " * (0 if i else taken)
        hang = "  " if block[0].startswith(("* ", "- ")) else ""
        wrapper = textwrap.TextWrapper(width, initial_indent=first, subsequent_indent=hang)
        wrapper.break_long_words = wrapper.break_on_hyphens = False
        filled = wrapper.wrap(" ".join(block))
        lines += [filled[0].lstrip(), *filled[1:]]
    return "\n".join(lines)
