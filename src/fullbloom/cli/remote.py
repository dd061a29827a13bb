"""Requests to a running service, by Python's own HTTP client."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from http.client import HTTPException
from typing import IO, TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from fullbloom.cli.failures import Refusal

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

_SECONDS = 300
#: Bytes of an error that are read.
_MAX_DETAIL = 1 << 16


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
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise Refusal(f"the address of a service is http://HOST:PORT or https://HOST:PORT, got {url!r}")
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
    except (HTTPException, ConnectionError, TimeoutError) as error:
        why = str(error) or type(error).__name__
        raise Refusal(f"{url} closed the connection: {why}; try again") from None


def _read_detail(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read(_MAX_DETAIL))["detail"])
    except (ValueError, KeyError, TypeError, OSError, HTTPException, RecursionError):
        return f"{error.code} {error.reason}"
