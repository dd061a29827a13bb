"""``fullbloom redis-info``: describe a filter on a Redis or Valkey server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fullbloom.cli.options import add_secret
from fullbloom.cli.redis_server import ServerOptions, add_server, find_filter
from fullbloom.cli.report import format_value, report

if TYPE_CHECKING:
    import argparse

HELP = "describe a filter on a Redis or Valkey server"
DETAIL = "The rate is computed from the present bits, which the server counts."
EXAMPLE = "fullbloom redis-info redis://localhost:6379/0 words"
QUIET = "print nothing: the exit code says whether the filter is whole"

OPTIONS = ServerOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_server(parser)
    add_secret(parser)


def run(options: ServerOptions) -> int:
    """Query the server and print its response."""
    remote = find_filter(options)
    whole = remote.verify()
    stats: dict[str, Any] = {**remote.info(), "whole": whole.ok}
    width = max(map(len, stats))
    lines = [f"{name:<{width}}  {_format(name, value)}" for name, value in stats.items()]
    report(options, stats, lines, stdout_is_free=True)
    return 0 if whole else 1


def _format(name: str, value: Any) -> str:
    if name == "expires":
        return datetime.fromtimestamp(value, UTC).isoformat(" ", "seconds")
    return format_value(value)
