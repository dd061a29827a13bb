"""The requests of the service's clients, and what their responses mean; nothing here sends."""

from __future__ import annotations

import random
import secrets
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar
from urllib.parse import quote, unquote, urlsplit

from fullbloom.errors import FullbloomError, KeyDomainWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Key = str | int | float | bool | tuple[Any, ...]
#: Statuses after which the same request may succeed.
RETRIED = frozenset({429, 502, 503, 504})
#: Requests numbers as JSON.
AS_JSON = {"accept": "application/json"}
_BITS = 8
_LONGEST_DELAY = 8.0
_FILTERS = "/v1/filters/"


class ServiceError(FullbloomError):
    """The service refused a request; ``code`` says why in a word, ``status`` as HTTP does."""

    def __init__(self, status: int, problem: Mapping[str, Any], name: str = "") -> None:
        """Take the problem that the service reported; ``name`` is that of the filter, if any."""
        self.status = status
        self.code = str(problem.get("code", "unknown"))
        self.problem = dict(problem)
        detail = str(problem.get("detail", f"the service answered {status}"))
        if self.code == "missing" and name and name not in detail:
            detail = f"{detail}: the service has no filter {name!r} that this token may see"
        super().__init__(detail)


class Request(NamedTuple):
    """A request to the service."""

    method: str
    path: str
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = {}
    params: Mapping[str, str] = {}

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of httpx's ``request``."""
        return {
            "method": self.method,
            "url": self.path,
            "json": self.json,
            "content": self.content,
            "headers": dict(self.headers),
            "params": dict(self.params),
        }


def authorization(token: str | None) -> dict[str, str]:
    """Return the header with a token, if one is given."""
    return {} if token is None else {"authorization": f"Bearer {token}"}


def idempotency() -> dict[str, str]:
    """Return the header that makes a change once even if it is sent twice."""
    return {"idempotency-key": secrets.token_hex(16)}


def filter_path(name: str, action: str = "") -> str:
    """Return the path of a filter.

    >>> filter_path("a:b", "add"), filter_path("../x")
    ('/v1/filters/a%3Ab/add', '/v1/filters/..%2Fx')
    """
    return f"{_FILTERS}{quote(name, safe='')}{'/' if action else ''}{action}"


def filter_name(path: str) -> str:
    """Return the name of the filter that a path is about; "" if it is about none.

    >>> filter_name(filter_path("a:b", "dump")), filter_name("/v1/filters")
    ('a:b', '')
    """
    return unquote(path.removeprefix(_FILTERS).partition("/")[0]) if path.startswith(_FILTERS) else ""


def creation_request(name: str, capacity: int | None, settings: Mapping[str, Any]) -> Request:
    """Return a request that creates a filter."""
    body = {"name": name, **settings}
    if capacity is not None:
        body["capacity"] = capacity
    return change_request("POST", "/v1/filters", json=body)


def change_request(method: str, path: str, **parts: Any) -> Request:
    """Return a request for a change, which is made once even if the request arrives twice."""
    return Request(method, path, headers=idempotency(), **parts)


def batch_request(
    name: str, action: str, keys: Iterable[Key], headers: Mapping[str, str] = {}
) -> tuple[Request, int]:
    """Return a request about many keys, and their number; as lines if all keys are texts of a single line."""
    listed = list(keys)
    if all(type(key) is str and "\n" not in key and not key.endswith("\r") for key in listed):
        body = "".join(f"{key}\n" for key in listed).encode()
        sent = {"content-type": "text/plain", "accept": "application/octet-stream", **headers}
        return Request("POST", filter_path(name, action), content=body, headers=sent), len(listed)
    sent = {"accept": "application/octet-stream", **headers}
    return Request("POST", filter_path(name, action), json={"keys": listed}, headers=sent), len(listed)


def pairs_request(
    name: str, keys: Iterable[Key], values: Iterable[int], headers: Mapping[str, str]
) -> Request:
    """Return a request that adds keys with a label or value each."""
    body = {"keys": list(keys), "values": list(values)}
    return Request("POST", filter_path(name, "add"), json=body, headers=headers)


class Response(Protocol):
    """A response of httpx."""

    status_code: int

    @property
    def content(self) -> bytes:
        """The body."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the response."""

    @property
    def is_success(self) -> bool:
        """True for a status of 200 to 299."""

    def json(self) -> Any:
        """Return the body, parsed."""


_T = TypeVar("_T")
_Response = TypeVar("_Response", bound=Response)
_Error = TypeVar("_Error", bound=Exception)


def check_response(response: _Response, request: Request) -> _Response:
    """Return the response if it is a success; raise ServiceError if not."""
    if response.is_success:
        if (warning := response.headers.get("x-fullbloom-key-domain-warning")) is not None:
            warnings.warn(warning, KeyDomainWarning, stacklevel=5)  # at the call of the filter's method
        return response
    try:
        problem = response.json()
    except (ValueError, RecursionError):
        problem = {}
    name = filter_name(request.path)
    raise ServiceError(response.status_code, problem if isinstance(problem, dict) else {}, name)


def _invalid_response(response: Response, why: str) -> ServiceError:
    """Return the error for a success that no service sends, but a proxy or another server may."""
    detail = f"the response is not that of a Fullbloom service: {why}; check the address"
    return ServiceError(response.status_code, {"code": "response", "detail": detail})


def unreachable_error(error: _Error, url: str, attempts: int) -> _Error:
    """Return the same error of httpx with the service's address in its text."""
    tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    why = str(error) or type(error).__name__
    text = f"the service at {redact_url(url)} cannot be reached after {tries}: {why}"
    # Each of httpx's transport errors takes the text and the request.
    kind: Callable[..., _Error] = type(error)
    return kind(text, request=getattr(error, "_request", None))


def redact_url(url: str) -> str:
    """Return an address without user name and password.

    >>> redact_url("http://me:secret@localhost:8080/")
    'http://localhost:8080'
    """
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")


def read_object(response: Response) -> dict[str, Any]:
    """Return the JSON object in a response; ServiceError if it holds none."""
    try:
        found = response.json()
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _invalid_response(response, "it is not a JSON object")
    return found


def read_member(response: Response, name: str, kind: type[_T]) -> _T:
    """Return a member of the JSON object in a response; ServiceError if it lacks one of this type."""
    found = read_object(response).get(name)
    if not isinstance(found, kind):
        raise _invalid_response(response, f"it has no member {name!r} of type {kind.__name__}")
    return found


def read_page(response: Response, members: str, fields: Mapping[str, type]) -> tuple[list[Any], Any]:
    """Return one page of a list, each member with these fields, and where the next page begins, or None."""
    page = read_object(response)
    found, following = page.get(members), page.get("next")
    if not isinstance(found, list) or not all(
        isinstance(one, dict) and all(isinstance(one.get(name), kind) for name, kind in fields.items())
        for one in found
    ):
        raise _invalid_response(response, f"it has no list {members!r}")
    if following is not None and not found:
        raise _invalid_response(response, "its page is empty, and is not the last")
    return found, following


def read_value(response: Response) -> int | None:
    """Return the number in a response about one key."""
    found = read_object(response).get("value", "")
    if found is not None and not isinstance(found, int):
        raise _invalid_response(response, "it has no value")
    return found


def read_values(response: Response, count: int) -> list[int | None]:
    """Return the numbers in a response about ``count`` keys."""
    found = read_member(response, "values", list)
    if len(found) != count or not all(one is None or isinstance(one, int) for one in found):
        raise _invalid_response(response, f"it does not have a value for each of {count} keys")
    return found


def read_flags(response: Response, count: int) -> list[bool]:
    """Return the flags in a response about ``count`` keys: a bit for each, the lowest of a byte first."""
    bits = response.content
    if len(bits) != -(-count // _BITS):
        raise _invalid_response(response, f"it has {len(bits)} bytes for {count} keys")
    return [bits[at // _BITS] >> (at % _BITS) & 1 == 1 for at in range(count)]


def retry_delay(attempt: int, retry_after: str | None) -> float:
    """Return the seconds to wait: those that the service states, or exponential backoff; with jitter."""
    if retry_after is not None and retry_after.isascii() and retry_after.isdigit():
        return min(float(retry_after), _LONGEST_DELAY) + random.random() * 0.1  # noqa: S311 - no secret
    return random.random() * min(0.1 * 2.0**attempt, _LONGEST_DELAY)  # noqa: S311 - no secret
