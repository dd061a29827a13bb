"""Untrusted text on a terminal: without control characters, and of limited length."""

from __future__ import annotations

#: A message is longer only by mistake, or because of a hostile name or value in it.
_MOST = 400
#: Its end has the remedy, its beginning the file.
_END = 150
_CUT = " ... "
_VALUE = 40
#: Python's stand-ins for the bytes of a name that is not UTF-8: 0xDC00 and the byte.
_BYTES = range(0xDC80, 0xDD00)


def printable(text: str) -> str:
    r"""Return ``text`` with unprintable characters escaped: controls, direction marks, undecoded bytes.

    >>> printable("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code - 0xDC00:02x}" if code in _BYTES else char.encode("unicode_escape").decode("ascii")


def shorten(value: str) -> str:
    """Return the first characters of a value, for a message.

    >>> shorten("9" * 5000)
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
