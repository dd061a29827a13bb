"""Guarantee: the head of an HTTP request is parsed once, and the first value of a repeated header counts."""

import pytest

from fullbloom.service.http.authorization import authorize
from fullbloom.service.http.request import Request


class Open:
    """A service without tokens."""

    def needs_token(self):
        return False


async def receive():
    return {"type": "http.disconnect"}


def request(*headers, method="POST", path="/v1/filters/words/check"):
    return Request({"method": method, "path": path, "headers": list(headers)}, receive, "1")


def test_the_path_names_the_filter_and_the_action():
    assert (request().name, request().action) == ("words", "check")
    assert (request(path="/v1/filters").name, request(path="/metrics").action) == (None, "")


def test_the_first_value_of_a_repeated_header_counts():
    twice = request((b"content-type", b"Text/Plain; charset=utf-8"), (b"content-type", b"application/json"))
    assert twice.headers == {b"content-type": b"Text/Plain; charset=utf-8"}
    assert twice.media_type == "text/plain"
    assert request().media_type == ""


@pytest.mark.parametrize("host", [b"localhost:8080", b"127.0.0.1", b"[::1]:80", b"LOCALHOST"])
def test_without_tokens_local_requests_are_accepted(host):
    authorize(Open(), request((b"host", host)))
    authorize(Open(), request())


@pytest.mark.parametrize(
    "headers",
    [
        [(b"host", b"example.org")],
        [(b"host", b"localhost"), (b"origin", b"https://example.org")],
        [(b"host", b"localhost"), (b"sec-fetch-site", b"cross-site")],
        # Another value of a header that was sent before does not open what the first closes.
        [(b"host", b"example.org"), (b"host", b"localhost")],
    ],
)
def test_requests_of_other_sites_are_refused(headers):
    with pytest.raises(Exception, match="answered"):
        authorize(Open(), request(*headers))
