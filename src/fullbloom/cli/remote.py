"""Requests to a running service, by Python's own HTTP client."""

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
    """Declare the service's address; its token is in the environment, which no list of processes shows."""
    parser.add_argument(
        "--url",
        default=default,
        help=f"address of the service{f' ({default})' if default else ''}; its token in FULLBLOOM_TOKEN",
    )


@contextmanager
def send_request(url: str, path: str, method: str = "GET", body: bytes | None = None) -> Iterator[IO[bytes]]:
    """Send a request and yield the response; `Refusal` if the service refuses it or is unreachable."""
    if urlsplit(url).scheme not in {"http", "https"}:
        raise Refusal(f"the address of a service begins with http:// or https://, got {url!r}")
    request = Request(url.rstrip("/") + path, body, method=method)  # noqa: S310 - checked above
    request.add_header("content-type", "application/octet-stream")
    if token := os.environ.get("FULLBLOOM_TOKEN"):
        request.add_header("authorization", f"Bearer {token}")
    try:
        with urlopen(request, timeout=_SECONDS) as response:  # noqa: S310 - checked above
            yield response
    except HTTPError as error:
        raise Refusal(f"{url} refused: {_read_detail(error)}") from None
    except URLError as error:
        raise Refusal(f"{url} cannot be reached: {error.reason}") from None


def _read_detail(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read())["detail"])
    except (ValueError, KeyError, TypeError, OSError):
        return f"{error.code} {error.reason}"
