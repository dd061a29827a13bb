"""Entity tags of filters, and requests with ``If-Match`` or ``If-None-Match``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fullbloom.service.failures import Refused

if TYPE_CHECKING:
    from fullbloom.service.http.request import Request

#: An entity tag: number and version, of 64 bits each.
_TAG = re.compile(rb'"(\d{1,19})-(\d{1,19})"')
#: Numbers and versions that a filter may have for a request to change it; None: any.
Versions = list[tuple[int, int]] | None


def make_etag(store: Any, name: str) -> bytes | None:
    """Return the entity tag of a filter: its number and version; None for a filter in Redis, without one."""
    found = store.version(name)
    return None if found is None else b'"%d-%d"' % tuple(found)


def format_etag(info: dict[str, Any]) -> bytes | None:
    """Return the entity tag of the state that an info describes."""
    version = info["version"]
    return None if version is None else b'"%d-%d"' % (info["id"], version)


def etag_header(tag: bytes | None) -> dict[str, str]:
    """Return the header of an entity tag."""
    return {} if tag is None else {"etag": tag.decode()}


def is_not_modified(request: Request, tag: bytes | None) -> bool:
    """Return whether the client has the version of a tag already, by its ``If-None-Match``."""
    given = request.headers.get(b"if-none-match")
    return given is not None and tag is not None and has_match(given, tag)


def has_match(given: bytes, tag: bytes) -> bool:
    """Return whether a condition names this tag.

    >>> has_match(b'"1-2", W/"1-3"', b'"1-3"'), has_match(b"*", b'"1-3"'), has_match(b'"1"', b'"1-3"')
    (True, True, False)
    """
    tags = _split_tags(given)
    return tag in tags or b"*" in tags


def _split_tags(given: bytes) -> list[bytes]:
    return [part.strip().removeprefix(b"W/") for part in given.split(b",")]


def parse_versions(given: bytes | None) -> Versions:
    """Return the numbers and versions that an ``If-Match`` names; None if it allows any.

    >>> parse_versions(b'"1-2", W/"1-3", "x"'), parse_versions(None), parse_versions(b"*")
    ([(1, 2), (1, 3)], None, None)
    """
    if given is None or b"*" in (tags := _split_tags(given)):
        return None
    found = (_TAG.fullmatch(tag) for tag in tags)
    return [(int(tag[1]), int(tag[2])) for tag in found if tag is not None]


def parse_if_match(request: Request) -> Versions:
    """Return the numbers and versions that the request's ``If-Match`` names; None if it allows any."""
    return parse_versions(request.headers.get(b"if-match"))


def check_if_match(store: Any, request: Request) -> Versions:
    """Return the versions that ``If-Match`` names, or raise ``Refused`` if the filter has another one.

    The native module checks them again under its lock, where no other request can change the filter.
    """
    given = request.headers.get(b"if-match")
    if given is not None:
        tag = make_etag(store, str(request.name))
        if tag is None:
            text = "a filter in Redis has no versions, so that If-Match cannot be held"
            raise Refused("unsupported", text)
        if not has_match(given, tag):
            raise Refused("changed", "the filter was changed since; read it again")
    return parse_versions(given)
