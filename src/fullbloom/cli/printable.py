"""Text of strangers on a terminal: nothing in it moves the cursor, and none goes on without end."""

from __future__ import annotations

#: A message is longer only by mistake, or because a name or value in it was made to be.
_MOST = 400
#: Its end has the remedy, its begin the file.
_END = 150
_CUT = " ... "
_VALUE = 40
#: Python's stand-ins for the bytes of a name that is not UTF-8: 0xDC00 and the byte.
_BYTES = range(0xDC80, 0xDD00)


def printable(text: str) -> str:
    r"""Return ``text`` with all that is not printable escaped: controls, marks of direction, loose bytes.

    >>> printable("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code - 0xDC00:02x}" if code in _BYTES else char.encode("unicode_escape").decode("ascii")


def shortened(value: str) -> str:
    """Return a value for a message, which its first characters tell.

    >>> shortened("9" * 5000)
    '9999999999999999999999999999999999999999...'
    """
    return value if len(value) <= _VALUE else f"{value[:_VALUE]}..."


def one_line(text: str) -> str:
    """Return ``text`` as one printable line of a few hundred characters, cut in its middle.

    >>> len(one_line("x" * 10_000))
    400
    """
    line = printable(text)
    if len(line) <= _MOST:
        return line
    return line[: _MOST - _END - len(_CUT)] + _CUT + line[-_END:]
