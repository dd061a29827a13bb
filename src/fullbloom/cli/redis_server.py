"""The server of ``redis-load``, ``redis-save`` and ``redis-info``: its address, and its password."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fullbloom.cli.failures import Refusal
from fullbloom.cli.options import Options

if TYPE_CHECKING:
    import argparse


@dataclass(frozen=True, kw_only=True)
class ServerOptions(Options):
    """Options of commands about a filter on a server."""

    url: str
    name: str
    secret_file: str | None


PASSWORD = "REDISCLI_AUTH"  # noqa: S105 - redis-cli's name of the variable; no list of processes shows it
_FROM_ENVIRONMENT = "env:"


def add_server(parser: argparse.ArgumentParser) -> None:
    """Declare the server's address and the name of the filter there."""
    parser.add_argument(
        "url",
        metavar="URL",
        help="redis://, rediss:// or unix:// address, or env:VARIABLE for an address in the environment; the "
        f"password there, or in {PASSWORD}",
    )
    parser.add_argument("name", metavar="NAME", help="name of the filter on the server")


def create_client(options: ServerOptions) -> Any:
    """Return a client for the address: one for a cluster if a node of a cluster responds."""
    url, hidden = options.url, options.url.startswith(_FROM_ENVIRONMENT)
    if hidden:
        variable = url.removeprefix(_FROM_ENVIRONMENT)
        if variable not in os.environ:
            raise Refusal(f"there is no {variable} in the environment; put the server's address there")
        url = os.environ[variable]
    shown = options.url if hidden else "the server's address"
    try:
        parts = urlsplit(url)
        if parts.scheme not in {"redis", "rediss", "unix"}:
            raise Refusal(f"{shown} begins with redis://, rediss:// or unix://")
        if parts.password and not hidden:
            raise Refusal(
                f"a password in an argument is visible to everybody on this machine; put it into {PASSWORD}, "
                "or the address into a variable and give env:VARIABLE"
            )
        from fullbloom.engines.redis.transport import connect
    except ValueError:
        raise Refusal(f"{shown} is not an address, such as redis://localhost:6379/0") from None
    except ImportError:
        raise Refusal("this needs the Redis client: pip install 'fullbloom[redis]'") from None
    try:
        password = os.environ.get(PASSWORD)
        named: dict[str, Any] = {} if parts.password or password is None else {"password": password}
        return connect(url, options.name, **named)
    except ValueError:  # its text repeats the address
        raise Refusal(f"{shown} is not an address, such as redis://localhost:6379/0") from None


def find_filter(options: ServerOptions) -> Any:
    """Return the filter on the server."""
    from fullbloom.cli.secret import read_secret

    client = create_client(options)
    from fullbloom.engines.redis import RedisBloomFilter

    remote = RedisBloomFilter.find(client, options.name, secret=read_secret(options.secret_file))
    if remote is None:
        raise Refusal(f"the server has no filter {options.name!r}; redis-load creates one")
    return remote
