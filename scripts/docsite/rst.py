"""Docstrings and signatures as reStructuredText."""

from __future__ import annotations

import re
import textwrap

#: Inline code in docstrings: two backticks, one, or a role.
CODE = re.compile(r"``(.+?)``|:\w+:`([^`]+)`|`([^`]+)`", re.DOTALL)
#: A parameter at the start of a line, or after a sentence, as "capacity: ..." or "fpr, seed: ...".
PARAMETERS = r"(?:^|(?<=\. )|(?<=\.\n))((?:{names})(?:, (?:{names}))*): "
#: Where a docstring goes on to what it raises, costs and rests on: a paragraph of its own.
SENTENCES = re.compile(r"(?<=[.)])\s+(?=(?:Raises [A-Z`]|Cost: |Source: ))")


def escape(text: str) -> str:
    """Return text in which nothing but inline code is markup."""
    parts, end = [], 0
    for code in CODE.finditer(text):
        parts += [_escape_plain(text[end : code.start()]), f"\\ ``{next(filter(None, code.groups()))}``\\ "]
        end = code.end()
    return "".join([*parts, _escape_plain(text[end:])]).strip()


def _escape_plain(text: str) -> str:
    return re.sub(r"([\\*_|`<>\[\]])", r"\\\1", text)


def format_heading(text: str, underline: str = "=") -> str:
    """Return a heading."""
    return f"{text}\n{underline * len(text)}\n"


def format_docstring(docstring: str, parameters: list[str] | None = None) -> str:
    """Return a docstring: paragraphs, lists, the parameters as a list, and its examples as code."""
    blocks = [block for block in re.split(r"\n\s*\n", docstring.strip()) if block.strip()]
    parts, code = [], list[str]()
    for block in blocks:
        if code and block.startswith(" "):
            code.append(block)
            continue
        parts += [_format_code(code)] if code[1:] else []
        code = ["::"] if block.endswith("::") else []
        text = SENTENCES.sub("\n\n", textwrap.dedent(block.removesuffix("::")))
        parts += [_format_block(part, parameters or []) for part in text.split("\n\n") if part.strip()]
    return "\n\n".join([*parts, *([_format_code(code)] if code[1:] else [])])


def _format_code(blocks: list[str]) -> str:
    text = textwrap.dedent("\n\n".join(blocks[1:]))
    return f".. code-block:: python\n\n{textwrap.indent(text, '   ')}"


def _format_block(block: str, parameters: list[str]) -> str:
    if block.startswith(">>>"):
        return f".. code-block:: pycon\n\n{textwrap.indent(block, '   ')}"
    if block.startswith("==="):
        return f".. code-block:: text\n\n{textwrap.indent(block, '   ')}"
    if re.match(r"[-*] ", block):
        items = re.split(r"^[-*] ", block, flags=re.MULTILINE)[1:]
        return "\n".join(f"* {escape(' '.join(item.split()))}" for item in items)
    if parameters:
        names = "|".join(re.escape(name) for name in parameters)
        before, *rest = re.split(PARAMETERS.format(names=names), block, flags=re.MULTILINE)
        pairs = [
            f"* **{_escape_plain(name)}**: {escape(' '.join(text.split()))}"
            for name, text in zip(rest[::2], rest[1::2], strict=True)
        ]
        start = [escape(" ".join(before.split()))] if before.strip() else []
        return "\n\n".join([*start, "\n".join(pairs)]) if pairs else "\n".join(start)
    return escape(" ".join(block.split()))


def format_directive(kind: str, signatures: list[str], body: str, options: tuple[str, ...] = ()) -> str:
    """Return a directive of Sphinx's Python domain."""
    lines = [f".. py:{kind}:: {signatures[0]}"]
    lines += [f"{' ' * len(f'.. py:{kind}:: ')}{other}" for other in signatures[1:]]
    lines += [f"   :{option}:" for option in options]
    return "\n".join([*lines, "", textwrap.indent(body, "   "), ""])
