"""Tokens: only digests are kept."""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import TYPE_CHECKING

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError

from bloomery.service.registry.models import TokenRow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy.orm import Session

#: Bits of scopes, as the native half knows them.
SCOPES = {"read": 1, "write": 2, "admin": 4}


def scope_names(bits: int) -> list[str]:
    """Return the names of scopes.

    >>> scope_names(3)
    ['read', 'write']
    """
    return [name for name, bit in SCOPES.items() if bits & bit]


class Tokens:
    """Rows of tokens."""

    def __init__(self, session: Callable[[], Session]) -> None:
        """Take the maker of sessions."""
        self._session = session

    def create(self, name: str, scopes: Sequence[str], patterns: Sequence[str]) -> str | None:
        """Draw a token and keep its digest; nobody can ask for it again. None for a name that is taken."""
        token = f"bloomery_{secrets.token_urlsafe(32)}"
        row = TokenRow(
            name=name,
            digest=hashlib.sha256(token.encode()).digest(),
            scopes=sum(SCOPES[scope] for scope in set(scopes)),
            patterns=list(patterns),
            created=time.time_ns() // 1_000_000,
        )
        try:
            with self._session() as session, session.begin():
                session.add(row)
        except IntegrityError:
            return None
        return token

    def revoke(self, name: str) -> bool:
        """Forget a token; False where there is none of this name."""
        with self._session() as session, session.begin():
            done = session.execute(delete(TokenRow).where(TokenRow.name == name))
            return bool(getattr(done, "rowcount", 0))

    def listed(self) -> list[dict[str, object]]:
        """Return the tokens without what opens anything."""
        with self._session() as session:
            return [
                {
                    "name": row.name,
                    "scopes": scope_names(row.scopes),
                    "patterns": row.patterns,
                    "created": row.created,
                }
                for row in session.scalars(select(TokenRow).order_by(TokenRow.id))
            ]

    def known(self) -> list[tuple[bytes, int, int, list[str]]]:
        """Return digest, number, bits of scopes and patterns of each, as the native half takes them."""
        with self._session() as session:
            rows = session.scalars(select(TokenRow).order_by(TokenRow.id))
            return [(row.digest, row.id, row.scopes, row.patterns) for row in rows]
