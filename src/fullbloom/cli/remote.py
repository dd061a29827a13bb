"""Requests to a running service, with what Python itself has."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from fullbloom.cli.failures import Refusal

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

_SECONDS = 300


def add_address(parser: argparse.ArgumentParser, *, default: str | None) -> None:
    """Declare the service's address; its token is in the environment, where no list of processes shows it."""
    parser.add_argument(
        "--url",
        default=default,
        help=f"address of the service{f' ({default})' if default else ''}; its token in FULLBLOOM_TOKEN",
    )


@contextmanager
def asked(url: str, path: str, method: str = "GET", body: bytes | None = None) -> Iterator[IO[bytes]]:
    """Ask the service: its answer, to be read. `Refusal` says what it refused, or why it was not reached."""
    if urlsplit(url).scheme not in {"http", "https"}:
        raise Refusal(f"the address of a service begins with http:// or https://, got {url!r}")
    request = Request(url.rstrip("/") + path, body, method=method)  # noqa: S310 - looked at above
    request.add_header("content-type", "application/octet-stream")
    if token := os.environ.get("FULLBLOOM_TOKEN"):
        request.add_header("authorization", f"Bearer {token}")
    try:
        with urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310 - looked at above
            yield answer
    except HTTPError as error:
        raise Refusal(f"{url} refused: {_said(error)}") from None
    except URLError as error:
        raise Refusal(f"{url} cannot be reached: {error.reason}") from None


def _said(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read())["detail"])
    except (ValueError, KeyError, TypeError, OSError):
        return f"{error.code} {error.reason}"
