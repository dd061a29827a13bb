"""Keys in, answers out: the requests that do not pass through FastAPI."""

from __future__ import annotations

import asyncio
import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from bloomery.service.failures import Refused
from bloomery.service.http import answers, bodies
from bloomery.service.http.wire import JSON, Answer, as_json, header

if TYPE_CHECKING:
    from bloomery.service.http.wire import Scope

#: Below so many bytes a look-up is done at once: it takes less time than handing it to a thread.
_SMALL = 1 << 16
_YES, _NO = Answer(200, JSON, b'{"found":true}'), Answer(200, JSON, b'{"found":false}')
#: What an answer about one key, and about many, is called.
WORDS = {"add": "new", "check": "found", "remove": "removed"}
CHANGES = frozenset({"add", "remove"})
ACTIONS = frozenset({"add", "check", "remove", "count"})
_CHANGING = frozenset({"add", "add_pairs", "remove"})
#: An entity tag: number and version, of 64 bits each.
_TAG = re.compile(rb'"(\d{1,19})-(\d{1,19})"')


async def answer(service: Any, name: str, action: str, scope: Scope, body: bytes) -> Answer:
    """Do ``action`` with the keys of a body."""
    if action in CHANGES and (versions := wanted(scope)) is not None:
        service = _At(service, versions)
    kind = bodies.media_type(scope)
    if kind in {bodies.JSON, "", "application/x-www-form-urlencoded"}:  # the last is what curl -d says
        value = bodies.loads(body)
        if not isinstance(value, dict):
            raise Refused("invalid", 'the body is an object with "key" or "keys"')
        if "key" in value:
            return await _one(service, name, action, value["key"])
        return await _listed(service, name, action, scope, value)
    if kind in {bodies.TEXT, bodies.HASHES}:
        keys = bodies.Keys("lines" if kind == bodies.TEXT else "hashes", body)
    elif kind == bodies.NDJSON:
        keys = await asyncio.to_thread(bodies.from_lines, service, name, body)
    elif kind == bodies.ARROW:
        keys = await asyncio.to_thread(bodies.from_arrow, service, name, body)
    else:
        raise Refused(
            "media-type",
            f"the body is {bodies.JSON}, {bodies.TEXT}, {bodies.NDJSON}, {bodies.ARROW} or {bodies.HASHES}",
        )
    default = answers.BITS if action in WORDS else bodies.JSON
    return await _many(service, name, action, keys, answers.wanted(scope, default))


async def _one(service: Any, name: str, action: str, value: Any) -> Answer:
    key = bodies.as_key(value)
    if action == "check" and isinstance(key, str):
        try:
            found = service.check_one(name, key.encode())
        except UnicodeEncodeError as error:
            raise Refused("invalid", f"the key is no Unicode: {error.reason}") from None
        if found is not None:
            return _YES if found else _NO
    keys = bodies.hashed(service, name, [key])
    if action == "count":
        counts = await asyncio.to_thread(service.count, name, keys.form, keys.body)
        return as_json({"count": counts[0]})
    work = getattr(service, action)
    _, _, yes = await asyncio.to_thread(work, name, keys.form, keys.body)
    return as_json({WORDS[action]: yes == 1})


async def _listed(service: Any, name: str, action: str, scope: Scope, value: dict[str, Any]) -> Answer:
    given = value.get("keys")
    if not isinstance(given, list):
        raise Refused("invalid", 'the body is an object with "key", or with "keys", an array')
    values = value.get("values")
    keys = bodies.hashed(service, name, [bodies.as_key(key) for key in given])
    if values is not None:
        if action != "add":
            raise Refused("invalid", '"values" come with add only')
        if not (isinstance(values, list) and all(type(v) is int and 0 <= v < 1 << 64 for v in values)):
            raise Refused("invalid", '"values" is an array of whole numbers of 64 bits')
        count = await asyncio.to_thread(service.add_pairs, name, keys.form, keys.body, values)
        return as_json({"keys": count})
    return await _many(service, name, action, keys, answers.wanted(scope, bodies.JSON))


async def _many(service: Any, name: str, action: str, keys: bodies.Keys, form: str) -> Answer:
    if action == "count":
        counts = await asyncio.to_thread(service.count, name, keys.form, keys.body)
        return answers.of_counts(form, counts)
    pack = form == answers.BITS
    if action == "check" and len(keys.body) < _SMALL:
        found = service.check(name, keys.form, keys.body, pack=pack, wait=False)
        if found is not None:
            return answers.of_keys(form, WORDS[action], *found)
    work = getattr(service, action)
    done = await asyncio.to_thread(work, name, keys.form, keys.body, pack=pack)
    return answers.of_keys(form, WORDS[action], *done)


def etag(service: Any, name: str) -> bytes | None:
    """Return the entity tag of a filter: its number and its version; None for one that any node changes."""
    found = service.version(name)
    return None if found is None else b'"%d-%d"' % tuple(found)


def tagged(tag: bytes | None) -> dict[str, str]:
    """Return the header of an entity tag."""
    return {} if tag is None else {"etag": tag.decode()}


def is_known(scope: Scope, tag: bytes | None) -> bool:
    """Tell whether the client has the version of a tag already, by its ``If-None-Match``."""
    given = header(scope, b"if-none-match")
    return given is not None and tag is not None and matches(given, tag)


def matches(given: bytes, tag: bytes) -> bool:
    """Tell whether one of the tags of a condition is this one.

    >>> matches(b'"1-2", W/"1-3"', b'"1-3"'), matches(b"*", b'"1-3"'), matches(b'"1"', b'"1-3"')
    (True, True, False)
    """
    tags = _tags(given)
    return tag in tags or b"*" in tags


def _tags(given: bytes) -> list[bytes]:
    return [part.strip().removeprefix(b"W/") for part in given.split(b",")]


def wanted(scope: Scope) -> list[tuple[int, int]] | None:
    """Return the numbers and versions that ``If-Match`` names; None where any will do.

    >>> wanted({"headers": [(b"if-match", b'"1-2", W/"1-3", "x"')]}), wanted({"headers": []})
    ([(1, 2), (1, 3)], None)
    """
    given = header(scope, b"if-match")
    if given is None or b"*" in (tags := _tags(given)):
        return None
    found = (_TAG.fullmatch(tag) for tag in tags)
    return [(int(tag[1]), int(tag[2])) for tag in found if tag is not None]


def check_condition(service: Any, name: str, scope: Scope) -> None:
    """Refuse at once a change whose ``If-Match`` names another version, or a filter that there is not.

    The native half asks again, while nobody else can change the filter.
    """
    given = header(scope, b"if-match")
    if given is None:
        return
    tag = etag(service, name)
    if tag is None:
        raise Refused("unsupported", "a filter in Redis has no versions, so that If-Match cannot be held")
    if not matches(given, tag):
        raise Refused("changed", "the filter was changed since; read it again")


class _At:
    """The service, whose changes are made to some versions of a filter only."""

    def __init__(self, service: Any, versions: list[tuple[int, int]]) -> None:
        self._service, self._versions = service, versions

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._service, name)
        return partial(found, versions=self._versions) if name in _CHANGING else found


def dumps(value: object) -> bytes:
    """Return JSON without blanks."""
    return json.dumps(value, separators=(",", ":")).encode()
