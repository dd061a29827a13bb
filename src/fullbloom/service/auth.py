"""Authentication and grants: a token grants scopes on filters whose names match its patterns."""

from __future__ import annotations

from typing import Any, NamedTuple

from fullbloom.service.engine import Service
from fullbloom.service.failures import Refused

READ, WRITE, ADMIN = 1, 2, 4
_NAMES = {READ: "read", WRITE: "write", ADMIN: "admin"}


class Grant(NamedTuple):
    """The permissions of a token; token 0 means that no token was needed."""

    token: int
    scopes: int
    patterns: tuple[str, ...] = ()

    def check(self, scope: int, name: str | None) -> None:
        """Raise ``Refused`` unless the grant has the scope and covers the filter's name."""
        if not self.scopes & scope:
            raise Refused("denied", f"the token has no scope {_NAMES[scope]}")
        if name is not None and not self.covers(name):
            raise Refused(
                "denied", f"the token is not for filters of this name; it is for {', '.join(self.patterns)}"
            )

    def covers(self, name: str) -> bool:
        """Return whether the grant covers filters of this name."""
        return not self.patterns or bool(Service.covers(list(self.patterns), name))


#: The grant of every local client while there is no token.
FULL_ACCESS = Grant(0, READ | WRITE | ADMIN)


def authenticate(service: Any, authorization: bytes | None) -> Grant:
    """Return the grant of an ``Authorization`` header; full access while the service needs no token."""
    if not service.needs_token():
        return FULL_ACCESS
    word, _, token = (authorization or b"").partition(b" ")
    found = service.find_token(token.strip()) if word.lower() == b"bearer" else None
    if found is None:
        raise Refused("unauthenticated", "send a token: Authorization: Bearer TOKEN")
    return Grant(found[0], found[1], tuple(found[2]))
