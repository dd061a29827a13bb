"""``fullbloom token``: tokens of the filter service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fullbloom.cli.failures import Refusal
from fullbloom.cli.options import Options
from fullbloom.cli.report import report
from fullbloom.cli.serve import explain_missing, to_path
from fullbloom.cli.standard import flush

if TYPE_CHECKING:
    import argparse

HELP = "create, list and revoke tokens of the filter service"
DETAIL = """Without a token everybody on this machine may do everything, and the service listens on loopback
only. A token is shown once; only its digest is stored. A running service applies changes within a second."""
EXAMPLE = "fullbloom token create crawler --scope read --scope write --pattern 'crawl:*'"
QUIET = "print the token alone"


@dataclass(frozen=True, kw_only=True)
class TokenOptions(Options):
    """Options of ``fullbloom token``."""

    action: str
    name: str | None
    scope: list[str] | None
    pattern: list[str] | None
    data: str | None
    registry: str | None
    config: str | None


OPTIONS = TokenOptions


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("action", choices=("create", "list", "revoke"), help="what to do")
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of the token")
    parser.add_argument(
        "--scope",
        action="append",
        choices=("read", "write", "admin"),
        help="read: look up; write: change keys, create and drop filters; admin: the service itself; repeat",
    )
    parser.add_argument(
        "--pattern", action="append", metavar="NAMES", help="filters it is for, as logs:*; repeat"
    )
    parser.add_argument("--data", metavar="DIR", help="data folder of the service")
    parser.add_argument("--registry", metavar="URL", help="SQLAlchemy URL of its registry")
    parser.add_argument("--config", metavar="FILE", help="its TOML file of settings")


def run(options: TokenOptions) -> int:
    """Create, list or revoke tokens in the registry."""
    if (options.name is None) != (options.action == "list"):
        raise Refusal("create and revoke take the NAME of a token, list takes none")
    if (options.scope or options.pattern) and options.action != "create":
        raise Refusal("--scope and --pattern are of use with create only")
    try:
        from fullbloom.service.data_folder import record_tokens
        from fullbloom.service.failures import StartError
        from fullbloom.service.registry import Registry
        from fullbloom.service.settings import load
    except ImportError as error:
        raise Refusal(explain_missing(error)) from None
    try:
        settings = load(to_path(options.config), data=options.data, registry=options.registry)
        if not settings.registry:
            settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        registry = Registry(settings.registry_url)
    except OSError as error:
        raise Refusal(f"{error.filename}: {error.strerror}; give the service's folder with --data") from None
    except StartError as error:
        raise Refusal(str(error)) from None
    try:
        with registry:
            if options.action == "create" and not settings.registry:
                record_tokens(settings.data)
            _ACTIONS[options.action](options, registry.tokens)
    except StartError as error:
        raise Refusal(str(error)) from None
    return 0


def _create(options: TokenOptions, tokens: Any) -> None:
    token = tokens.create(options.name, options.scope or ["read"], options.pattern or [])
    if token is None:
        raise Refusal(f"there is a token {options.name!r}; revoke it first, or choose another name")
    if options.json:
        report(options, {"name": options.name, "token": token}, [], stdout_is_free=True)
    else:
        flush(f"{token}\n")


def _list(options: TokenOptions, tokens: Any) -> None:
    rows = tokens.list_all()
    lines = [
        f"{row['name']}  {','.join(row['scopes'])}  {' '.join(row['patterns']) or 'all filters'}"
        for row in rows
    ]
    report(options, {"tokens": rows}, lines or ["there is no token"], stdout_is_free=True)


def _revoke(options: TokenOptions, tokens: Any) -> None:
    if not tokens.revoke(options.name):
        raise Refusal(f"no token is called {options.name!r}")
    lines = [f"{options.name}: revoked"]
    last = not tokens.load()
    if last:
        from fullbloom.service.registry.tokens import LAST_REVOKED

        lines.append(LAST_REVOKED)
    report(options, {"revoked": options.name, "last": last}, lines, stdout_is_free=True)


_ACTIONS = {"create": _create, "list": _list, "revoke": _revoke}
