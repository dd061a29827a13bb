"""``fullbloom redis-load``: a filter's file onto a Redis or Valkey server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom.cli import units
from fullbloom.cli.failures import Refusal
from fullbloom.cli.options import add_secret
from fullbloom.cli.redis_server import add_server, client_of
from fullbloom.cli.report import report

if TYPE_CHECKING:
    import argparse

HELP = "put a filter's file onto a Redis or Valkey server"
DETAIL = """The filter there has the same bits and parameters. It appears under its name when it is whole."""
EXAMPLE = "fullbloom redis-load words.bloom redis://localhost:6379/0 words"
QUIET = "print nothing"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", metavar="FILE", help="a plain filter that fullbloom wrote")
    add_server(parser)
    parser.add_argument(
        "--shards", type=units.count, metavar="N", help="strings to cut it into (default: as few as hold it)"
    )
    parser.add_argument(
        "--ttl", type=units.seconds, metavar="SECONDS", help="it vanishes so long after it was made"
    )
    there = parser.add_mutually_exclusive_group()
    there.add_argument("--merge", action="store_true", help="add the keys to the filter that is there")
    there.add_argument("--replace", action="store_true", help="replace what the filter there holds")
    parser.add_argument(
        "--allow-eviction", action="store_true", help="also where the server may evict it (maxmemory-policy)"
    )
    add_secret(parser)


def run(args: argparse.Namespace) -> int:
    """Open the file and send its cells."""
    import fullbloom
    from fullbloom.cli.filters.secret import secret_from

    client, secret = client_of(args), secret_from(args.secret_file)
    from fullbloom.engines.redis import RedisBloomFilter

    found = fullbloom.open(args.file, verify="full", secret=secret)
    if not isinstance(found, fullbloom.BloomFilter):
        raise Refusal(f"{args.file}: holds a {type(found).__name__}; a server takes a BloomFilter")
    there = RedisBloomFilter.find(client, args.name, secret=secret)
    if there is None or args.replace:
        options = {"shards": args.shards, "secret": secret, "allow_eviction": args.allow_eviction}
        options["ttl"] = args.ttl
        there = RedisBloomFilter.from_filter(client, args.name, found, **options)
    elif args.merge:
        there.manifest.require_match(args.name, {"ttl": args.ttl})
        there |= found
    else:
        raise Refusal(
            f"the server has a filter {args.name!r}; --merge adds to it, --replace takes its place, "
            "or choose another name"
        )
    stats = {"file": args.file, **there.info()}
    count, shards = f"about {stats['approx_count']:,.0f} keys", stats["shards"]
    strings = "a string" if shards == 1 else f"{shards} strings"
    line = f"{args.name}: {stats['nbytes']:,} bytes in {strings}, {count}"
    report(args, stats, [line], stdout_is_free=True)
    return 0
