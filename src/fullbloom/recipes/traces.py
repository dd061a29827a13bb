"""Traces of requests: drawn from Zipf's law, or read from the access log of a web server.

>>> from itertools import islice
>>> list(islice(draw_zipf(1000, 1.0, seed=1), 5))
[2, 319, 171, 4, 23]
>>> log = AccessLog(['::1 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 12', "broken"])
>>> [request.target for request in log], log.lines, log.skipped
(['/a'], 2, 1)
"""

from __future__ import annotations

import random
import re
from collections import Counter
from datetime import datetime, timedelta, timezone
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from fullbloom.errors import ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["AccessLog", "Request", "draw_zipf", "measure_one_hit_share", "parse_request"]

#: Numbers that are drawn at once.
_DRAWN = 1024
#: Characters of a line; a longer one is skipped. Web servers accept requests of 8 kB by default.
_LINE_LENGTH = 65_536
#: Text in quotes, in which the server escapes quotes by a backslash.
_QUOTED = r'"((?:[^"\\]|\\.)*)"'
#: The common log format; what follows the size, such as the two texts of the combined format, is ignored.
_LINE = re.compile(rf"(\S+) \S+ .*?\[([^\]]{{20,32}})\] {_QUOTED} (\d{{3}}) (\d{{1,18}}|-)(?: .*)?", re.ASCII)
_TIME = re.compile(r"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)", re.ASCII)
_NAMES = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"
_MONTHS = {name: 1 + i for i, name in enumerate(_NAMES.split())}
#: Status codes whose responses a cache may store without further instructions (RFC 9110, 15.1), and 304.
_CACHEABLE = {200, 203, 204, 206, 300, 301, 304, 308, 404, 405, 410, 414, 501}


def draw_zipf(objects: int, exponent: float = 1.0, *, seed: int | None = None) -> Iterator[int]:
    """Yield numbers up to ``objects`` without end, ``r`` with a chance proportional to ``1 / r**exponent``.

    Raises ``ParameterError`` unless there is an object and the exponent is at least 0. Takes 32 bytes per
    object, and about 1 us per number.

    >>> from itertools import islice
    >>> Counter(islice(draw_zipf(10, 2.0, seed=1), 1000)).most_common(2)
    [(1, 626), (2, 160)]
    """
    if objects < 1 or not exponent >= 0:
        raise ParameterError(f"objects must be at least 1 and exponent at least 0, got {objects}, {exponent}")
    return _draw(list(accumulate(r**-exponent for r in range(1, objects + 1))), random.Random(seed))  # noqa: S311 - no secret


def _draw(weights: list[float], draw: random.Random) -> Iterator[int]:
    numbers = range(1, len(weights) + 1)
    while True:
        yield from draw.choices(numbers, cum_weights=weights, k=_DRAWN)


def measure_one_hit_share(trace: Iterable[object]) -> float:
    """Return the share of the distinct objects of ``trace`` that occur only once; 0.0 for an empty trace.

    >>> measure_one_hit_share("abac")
    0.6666666666666666
    """
    counts = Counter(trace).values()
    return sum(count == 1 for count in counts) / len(counts) if counts else 0.0


class Request(NamedTuple):
    """A line of an access log; ``target`` is the path with its query, ``size`` the bytes of the body."""

    client: str
    time: datetime
    method: str
    target: str
    status: int
    size: int

    @property
    def is_cacheable(self) -> bool:
        """Whether a cache may store the response by default: a GET with such a status."""
        return self.method == "GET" and self.status in _CACHEABLE


def parse_request(line: str) -> Request | None:
    """Return the request of a line in the common or combined log format; None for any other line.

    >>> parse_request('::1 - - [17/May/2015:10:05:03 +0200] "GET /a?b HTTP/1.1" 304 - "-" "curl"').target
    '/a?b'
    >>> parse_request("::1 - - [17/May/2015:10:05:03 +0200] ") is None
    True
    """
    found = _LINE.fullmatch(line) if len(line) <= _LINE_LENGTH else None
    if found is None:
        return None
    client, stamp, asked, status, size = found.groups()
    words = asked.split(" ")
    time = _parse_time(stamp)
    if time is None or len(words) not in (2, 3) or not all(words):
        return None
    return Request(client, time, words[0], words[1], int(status), 0 if size == "-" else int(size))


def _parse_time(stamp: str) -> datetime | None:
    """Return the time of a line; month names are English whatever the locale."""
    found = _TIME.fullmatch(stamp)
    if found is None:
        return None
    day, month, year, hour, minute, second, sign, hours, minutes = found.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    try:
        zone = timezone(offset if sign == "+" else -offset)
        return datetime(
            int(year), _MONTHS.get(month, 0), int(day), int(hour), int(minute), int(second), tzinfo=zone
        )
    except ValueError:
        return None


class AccessLog:
    r"""Iterates over the requests of an access log, and counts the lines that hold none.

    lines: an open file, text or binary, or any iterable of lines. A line that is broken, or longer than
    65,536 characters, is skipped and counted; a file is read in pieces of at most that length. Bytes that are
    not UTF-8 become escapes such as ``\xff``.
    """

    def __init__(self, lines: Iterable[str] | Iterable[bytes]) -> None:
        if isinstance(lines, (str, bytes)):
            raise ParameterTypeError(
                f"lines must be an open file or an iterable of lines, got one {type(lines).__name__}"
            )
        self._lines = lines
        #: Lines read so far, and those skipped; an empty line is neither.
        self.lines = self.skipped = 0

    def __iter__(self) -> Iterator[Request]:
        for line in _split_lines(self._lines):
            text = line.rstrip("\r\n")
            if text:
                self.lines += 1
                request = parse_request(text)
                if request is None:
                    self.skipped += 1
                else:
                    yield request


def _split_lines(lines: Iterable[str] | Iterable[bytes]) -> Iterator[str]:
    readline = getattr(lines, "readline", None)
    pieces: Iterable[str | bytes] = lines if readline is None else _read_pieces(readline)
    for piece in pieces:
        yield piece if isinstance(piece, str) else piece.decode("utf-8", "backslashreplace")


def _read_pieces(readline: Callable[[int], str | bytes]) -> Iterator[str | bytes]:
    """Yield the lines of a file; of one that is too long, only a piece that is too long as well."""
    while piece := readline(_LINE_LENGTH + 3):  # with its end
        rest = piece
        while len(rest) == _LINE_LENGTH + 3 and rest[-1:] not in ("\n", b"\n"):
            rest = readline(_LINE_LENGTH + 3)
        yield piece
