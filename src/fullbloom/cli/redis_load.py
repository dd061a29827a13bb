"""``fullbloom redis-load``: copy a filter's file to a Redis or Valkey server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fullbloom.cli import units
from fullbloom.cli.failures import Refusal
from fullbloom.cli.options import add_secret
from fullbloom.cli.redis_server import ServerOptions, add_server, create_client
from fullbloom.cli.report import report

if TYPE_CHECKING:
    import argparse

HELP = "copy a filter's file to a Redis or Valkey server"
DETAIL = """The filter there has the same bits and parameters. It gets its name once it is complete."""
EXAMPLE = "fullbloom redis-load words.bloom redis://localhost:6379/0 words"
QUIET = "print nothing"


@dataclass(frozen=True, kw_only=True)
class LoadOptions(ServerOptions):
    """Options of ``fullbloom redis-load``."""

    file: str
    shards: int | None
    ttl: float | None
    merge: bool
    replace: bool
    allow_eviction: bool


OPTIONS = LoadOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", metavar="FILE", help="a plain filter that fullbloom wrote")
    add_server(parser)
    parser.add_argument(
        "--shards", type=units.count, metavar="N", help="number of strings (default: as few as hold it)"
    )
    parser.add_argument(
        "--ttl", type=units.seconds, metavar="SECONDS", help="expire it this long after its creation"
    )
    existing = parser.add_mutually_exclusive_group()
    existing.add_argument("--merge", action="store_true", help="add the keys to the existing filter")
    existing.add_argument("--replace", action="store_true", help="replace the content of the existing filter")
    parser.add_argument(
        "--allow-eviction", action="store_true", help="even if the server may evict it (maxmemory-policy)"
    )
    add_secret(parser)


def run(options: LoadOptions) -> int:
    """Open the file and send its cells."""
    import fullbloom
    from fullbloom.cli.secret import read_secret

    client, secret = create_client(options), read_secret(options.secret_file)
    from fullbloom.engines.redis import RedisBloomFilter

    found = fullbloom.open(options.file, verify="full", secret=secret)
    if not isinstance(found, fullbloom.BloomFilter):
        raise Refusal(f"{options.file}: holds a {type(found).__name__}; a server takes a BloomFilter")
    remote = RedisBloomFilter.find(client, options.name, secret=secret)
    if remote is None or options.replace:
        remote = RedisBloomFilter.from_filter(
            client,
            options.name,
            found,
            shards=options.shards,
            secret=secret,
            allow_eviction=options.allow_eviction,
            ttl=options.ttl,
        )
    elif options.merge:
        remote.manifest.require_match(options.name, {"ttl": options.ttl})
        remote |= found
    else:
        raise Refusal(
            f"the server has a filter {options.name!r}; --merge adds to it, --replace takes its place, "
            "or choose another name"
        )
    stats = {"file": options.file, **remote.info()}
    count, shards = f"about {stats['approx_count']:,.0f} keys", stats["shards"]
    strings = "a string" if shards == 1 else f"{shards} strings"
    line = f"{options.name}: {stats['nbytes']:,} bytes in {strings}, {count}"
    report(options, stats, [line], stdout_is_free=True)
    return 0
