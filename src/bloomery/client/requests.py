"""What is asked of the service, as values; nothing here speaks to anybody."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

from bloomery.errors import BloomeryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Key = str | int | float | bool | tuple[Any, ...]
#: Statuses after which the same request may succeed.
PASSING = frozenset({429, 502, 503, 504})
_BITS = 8
#: Asks for numbers as JSON.
AS_JSON = {"accept": "application/json"}
_LONGEST_PAUSE = 8.0
_FILTERS = "/v1/filters/"


class ServiceError(BloomeryError):
    """The service refused; ``code`` says why in a word, ``status`` as HTTP does."""

    def __init__(self, status: int, problem: Mapping[str, Any], name: str = "") -> None:
        """Take the refusal apart; ``name`` is that of the filter that was asked for."""
        self.status = status
        self.code = str(problem.get("code", "unknown"))
        self.problem = dict(problem)
        detail = str(problem.get("detail", f"the service answered {status}"))
        if self.code == "missing" and name and name not in detail:
            detail = f"{detail}: the service has no filter {name!r} that this token may see"
        super().__init__(detail)


class Ask(NamedTuple):
    """A request."""

    method: str
    path: str
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = {}
    params: Mapping[str, str] = {}


def path(name: str, action: str = "") -> str:
    """Return the path of a filter.

    >>> path("a:b", "add"), path("../x")
    ('/v1/filters/a%3Ab/add', '/v1/filters/..%2Fx')
    """
    return f"{_FILTERS}{quote(name, safe='')}{'/' if action else ''}{action}"


def filter_of(ask: Ask) -> str:
    """Return the name of the filter that a request is about; "" where it is about none.

    >>> filter_of(Ask("GET", path("a:b", "dump"))), filter_of(Ask("GET", "/v1/filters"))
    ('a:b', '')
    """
    return unquote(ask.path.removeprefix(_FILTERS).partition("/")[0]) if ask.path.startswith(_FILTERS) else ""


def many(name: str, action: str, keys: Iterable[Key], headers: Mapping[str, str] = {}) -> tuple[Ask, int]:
    """Return a request about many keys, as lines where all are texts without a line's end; and how many."""
    listed = list(keys)
    if all(type(key) is str and "\n" not in key and not key.endswith("\r") for key in listed):
        body = "".join(f"{key}\n" for key in listed).encode()
        sent = {"content-type": "text/plain", "accept": "application/octet-stream", **headers}
        return Ask("POST", path(name, action), content=body, headers=sent), len(listed)
    sent = {"accept": "application/octet-stream", **headers}
    return Ask("POST", path(name, action), json={"keys": listed}, headers=sent), len(listed)


def pairs(name: str, keys: Iterable[Key], values: Iterable[int], headers: Mapping[str, str]) -> Ask:
    """Return a request that adds keys with a label or value each."""
    body = {"keys": list(keys), "values": list(values)}
    return Ask("POST", path(name, "add"), json=body, headers=headers)


def flags(bits: bytes, count: int) -> list[bool]:
    """Return packed answers one by one.

    >>> flags(bytes([5]), 4)
    [True, False, True, False]
    """
    return [bits[at // _BITS] >> (at % _BITS) & 1 == 1 for at in range(count)]


def pause(attempt: int, said: str | None) -> float:
    """Return how long to wait: what the service said, or longer each time, with jitter."""
    if said is not None and said.isascii() and said.isdigit():
        return min(float(said), _LONGEST_PAUSE) + random.random() * 0.1  # noqa: S311 - no secret
    return random.random() * min(0.1 * 2.0**attempt, _LONGEST_PAUSE)  # noqa: S311 - no secret
