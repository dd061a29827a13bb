"""Descriptors: as many as the system gives, some of them kept for the service's own files."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fullbloom.service.settings import Settings

_LOG = logging.getLogger("fullbloom.service")
#: Descriptors of the service's own: log, checkpoints, registry, backups, sockets to databases.
RESERVED = 256
#: What no process needs more than, where the system says that there is no limit.
_MOST = 1 << 20


def raise_limit() -> int | None:
    """Raise the limit of open descriptors to the highest allowed and return it; None: unknown."""
    try:
        import resource
    except ImportError:  # pragma: no cover - a system without such limits
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft if soft != resource.RLIM_INFINITY else _MOST
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft
    return wanted


def clamp(settings: Settings) -> Settings:
    """Return the settings with no more connections to each port than there are descriptors for.

    A connection takes one descriptor, and each port may have its share: what is left belongs to the
    service's files, so that no number of clients keeps a checkpoint from being written.
    """
    limit = raise_limit()
    if limit is None:
        return settings
    ports = 1 if settings.resp == "none" else 2
    most = max((limit - min(RESERVED, limit // 2)) // ports, 1)
    if settings.limits.connections <= most:
        return settings
    return settings.model_copy(update={"limits": settings.limits.model_copy(update={"connections": most})})


def warn_if_clamped(requested: int, connections: int) -> None:
    """Log a warning if a port takes fewer connections than the settings requested."""
    if connections < requested:
        _LOG.warning(
            "connections are clamped: the system gives this process too few descriptors; raise `ulimit -n`",
            extra={"connections": connections, "asked": requested, "descriptors": raise_limit()},
        )
