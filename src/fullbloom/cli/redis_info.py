"""``fullbloom redis-info``: what a filter on a Redis or Valkey server holds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fullbloom.cli.options import add_secret
from fullbloom.cli.redis_server import ServerOptions, add_server, found
from fullbloom.cli.report import report, valued

if TYPE_CHECKING:
    import argparse

HELP = "tell what a filter on a Redis or Valkey server holds"
DETAIL = "The rate is that of the bits as they are, which the server counts."
EXAMPLE = "fullbloom redis-info redis://localhost:6379/0 words"
QUIET = "print nothing: the exit code says whether the filter is whole"

OPTIONS = ServerOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_server(parser)
    add_secret(parser)


def run(options: ServerOptions) -> int:
    """Ask the server and print what it says."""
    there = found(options)
    whole = there.verify()
    stats: dict[str, Any] = {**there.info(), "whole": whole.ok}
    width = max(map(len, stats))
    lines = [f"{name:<{width}}  {_shown(name, value)}" for name, value in stats.items()]
    report(options, stats, lines, stdout_is_free=True)
    return 0 if whole else 1


def _shown(name: str, value: Any) -> str:
    if name == "expires":
        return datetime.fromtimestamp(value, UTC).isoformat(" ", "seconds")
    return valued(value)
