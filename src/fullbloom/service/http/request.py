"""One request to the HTTP port: its head, parsed once, its sender's grant, and the memory it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fullbloom.service.auth import FULL_ACCESS

if TYPE_CHECKING:
    from fullbloom.service.auth import Grant
    from fullbloom.service.http.asgi import Receive, Scope

#: Methods that change nothing.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
#: Actions that only read, although their method is POST.
_READ_ACTIONS = frozenset({"check", "count", "values", "owners/info", "owners/export"})
_FILTERS = "/v1/filters/"


class Request:
    """A request; the gateway creates it, handlers of FastAPI find it in the ASGI scope under "fullbloom"."""

    __slots__ = ("action", "budget", "grant", "headers", "id", "method", "name", "path", "receive", "scope")

    #: Bytes of the service's memory that the request and its response hold; the gateway releases them.
    budget: Any

    def __init__(self, scope: Scope, receive: Receive, id: str) -> None:  # noqa: A002 - the field's name
        """Parse the head; of a header that is repeated the first value counts."""
        self.scope, self.receive, self.id = scope, receive, id
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        #: Name of the filter, and the word after it; None and "" for paths of no filter.
        self.name, self.action = split_path(self.path)
        #: Header values by name in lower case.
        self.headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))
        self.grant: Grant = FULL_ACCESS

    @property
    def is_safe(self) -> bool:
        """Whether the request changes nothing."""
        return self.method in SAFE_METHODS

    @property
    def is_change(self) -> bool:
        """Whether the request may change a filter or a name."""
        return not self.is_safe and self.action not in _READ_ACTIONS

    def admit_connection(self, *, needs_token: bool) -> None:
        """Tell the connection that this request is authorized, so that strangers are closed before it.

        Paths that need no token say nothing about a client.
        """
        connection = self.scope.get("state", {}).get("connection")
        if connection is not None and (self.grant.token or not needs_token):
            connection.admit(has_token=self.grant.token != 0)

    @property
    def media_type(self) -> str:
        """The type of the body without its parameters; "" if the client named none."""
        value = self.headers.get(b"content-type", b"")
        return value.partition(b";")[0].strip().lower().decode("latin-1")


def split_path(path: str) -> tuple[str | None, str]:
    """Return the filter's name and the word after it.

    >>> split_path("/v1/filters/a:b/add"), split_path("/v1/filters"), split_path("/v1/filters/a/b/c")
    (('a:b', 'add'), (None, ''), ('a', 'b/c'))
    """
    if not path.startswith(_FILTERS):
        return None, ""
    name, _, action = path[len(_FILTERS) :].partition("/")
    return name or None, action
