"""Which requests are answered: checks of their origin, their token and its scopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fullbloom.service.auth import ADMIN, READ, WRITE, authenticate
from fullbloom.service.failures import Refused

if TYPE_CHECKING:
    from fullbloom.service.http.request import Request

#: Paths that need no token: health checks and the description.
_OPEN_PATHS = frozenset({"/healthz", "/readyz", "/docs", "/openapi.json", "/"})
#: Paths and actions that need the scope admin.
_ADMIN_PATHS = ("/v1/tokens", "/v1/backup", "/v1/checkpoint", "/v1/nodes")
_ADMIN_ACTIONS = frozenset({"secret"})
#: Values of ``Sec-Fetch-Site`` that a browser sends for requests that no other site caused.
_OWN_SITE = frozenset({b"same-origin", b"none"})
_LOCAL_HOSTS = frozenset({b"localhost", b"127.0.0.1", b"[::1]"})


def authorize(service: Any, request: Request, *, is_open: bool = False) -> None:
    """Set the request's grant; raise ``Refused`` if its origin or its token does not allow it.

    ``is_open``: the path is that of a page or of one of its files, which need no token.
    """
    is_open = is_open or request.path in _OPEN_PATHS
    _check_origin(service, request, is_open=is_open)
    if not is_open:
        scope = _required_scope(request)
        request.grant = authenticate(service, request.headers.get(b"authorization"))
        request.grant.check(scope, request.name)


def _check_origin(service: Any, request: Request, *, is_open: bool) -> None:
    """Reject requests that pages of other sites cause: a browser lets them reach any port of its machine.

    Browsers send ``Origin`` where a page changes something or reads the response, and ``Sec-Fetch-Site`` also
    where it only loads something, such as a picture or a download.
    """
    headers = request.headers
    origin, host = headers.get(b"origin"), headers.get(b"host")
    if origin is not None and origin.partition(b"://")[2] != host:
        raise Refused("denied", "pages of other origins are not answered")
    site = headers.get(b"sec-fetch-site")
    if site is not None and site not in _OWN_SITE and not is_open:
        raise Refused("denied", "requests that pages of other sites cause are not answered")
    if not service.needs_token() and not _is_local(host):
        raise Refused("denied", "without tokens only requests to localhost are answered")


def _is_local(host: bytes | None) -> bool:
    """Return whether a ``Host`` names this machine; a request without one does."""
    if host is None:
        return True
    bare = host.lower().rpartition(b":")[0] if host[-1:] != b"]" and b":" in host else host.lower()
    return bare in _LOCAL_HOSTS


def _required_scope(request: Request) -> int:
    if request.path.startswith(_ADMIN_PATHS) or request.action in _ADMIN_ACTIONS:
        return ADMIN
    return WRITE if request.is_change else READ
