"""Tokens: only digests are stored."""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select
from sqlalchemy.exc import IntegrityError

from fullbloom.service.registry.models import TOKENS, Rows

if TYPE_CHECKING:
    from collections.abc import Sequence


#: Bits of scopes, as the native module numbers them.
SCOPES = {"read": 1, "write": 2, "admin": 4}
#: The warning after the last token is revoked.
LAST_REVOKED = (
    "that was the last token: a running service rejects all requests until there is another one; "
    "make one with: fullbloom token create NAME --scope admin"
)


def scope_names(bits: int) -> list[str]:
    """Return the names of scopes.

    >>> scope_names(3)
    ['read', 'write']
    """
    return [name for name, bit in SCOPES.items() if bits & bit]


class Tokens(Rows):
    """Rows of tokens."""

    def create(self, name: str, scopes: Sequence[str], patterns: Sequence[str]) -> str | None:
        """Draw a token and store its digest only; return the token, or None if the name is taken."""
        token = f"fullbloom_{secrets.token_urlsafe(32)}"
        row = {
            "name": name,
            "digest": hashlib.sha256(token.encode()).digest(),
            "scopes": sum(SCOPES[scope] for scope in set(scopes)),
            "patterns": list(patterns),
            "created": time.time_ns() // 1_000_000,
        }
        try:
            with self._engine.begin() as connection:
                connection.execute(insert(TOKENS).values(row))
        except IntegrityError:
            return None
        return token

    def revoke(self, name: str) -> bool:
        """Delete a token; return False if it does not exist."""
        with self._engine.begin() as connection:
            return bool(connection.execute(delete(TOKENS).where(TOKENS.c.name == name)).rowcount)

    def list_all(self) -> list[dict[str, object]]:
        """Return the tokens without their digests."""
        with self._engine.connect() as connection:
            return [
                {
                    "name": row.name,
                    "scopes": scope_names(row.scopes),
                    "patterns": row.patterns,
                    "created": row.created,
                }
                for row in connection.execute(select(TOKENS).order_by(TOKENS.c.id))
            ]

    def load(self) -> list[tuple[bytes, int, int, list[str]]]:
        """Return digest, id, bits of scopes and patterns of each, as the native module takes them."""
        with self._engine.connect() as connection:
            rows = connection.execute(select(TOKENS).order_by(TOKENS.c.id))
            return [(row.digest, row.id, row.scopes, row.patterns) for row in rows]
