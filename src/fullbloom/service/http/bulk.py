"""Keys in, answers out: the requests that do not pass through FastAPI."""

from __future__ import annotations

import asyncio
import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from fullbloom.service.failures import Refused
from fullbloom.service.http import answers, bodies
from fullbloom.service.http.wire import as_json, header

if TYPE_CHECKING:
    from fullbloom.service.http.wire import Answer, Scope
    from fullbloom.service.settings import Limits

#: Below so many bytes a look-up is done at once: it takes less time than handing it to a thread.
_SMALL = 1 << 16
#: What an answer about one key, and about many, is called.
WORDS = {"add": "new", "check": "found", "remove": "removed"}
#: What a number of one key is called.
NUMBERS = {"count": "count", "values": "value"}
CHANGES = frozenset({"add", "remove"})
ACTIONS = frozenset({*WORDS, *NUMBERS})
#: An entity tag: number and version, of 64 bits each.
_TAG = re.compile(rb'"(\d{1,19})-(\d{1,19})"')


async def answer(
    service: Any, name: str, action: str, request: tuple[Scope, bytes, Any], limits: Limits
) -> Answer:
    """Do ``action`` with the keys of a body; what the request holds grows by what that takes."""
    scope, body, held = request
    if action in CHANGES and (versions := wanted(scope)) is not None:
        service = _At(service, versions)
    kind = bodies.media_type(scope)
    form = bodies.FORMS.get(kind)
    held.grow(bodies.working_bytes(body, limits))
    if form is not None:
        keys = bodies.Keys(form, body)
    elif kind == bodies.ARROW:
        keys = await asyncio.to_thread(bodies.from_arrow, service, name, body, limits, held)
    else:
        raise Refused(
            "media-type",
            f"the body is {bodies.JSON}, {bodies.TEXT}, {bodies.NDJSON}, {bodies.ARROW} or {bodies.HASHES}",
        )
    return await _done(service, name, action, keys, _form(scope, action, keys))


def _form(scope: Scope, action: str, keys: bodies.Keys) -> str:
    """Return the form of the answer; one about one key is JSON, whatever is asked for."""
    json = keys.form == "json"
    try:
        return answers.wanted(scope, answers.BITS if action in WORDS and not json else bodies.JSON)
    except Refused:
        if json and len(keys.body) < _SMALL and b'"key"' in keys.body:
            return bodies.JSON
        raise


async def _done(service: Any, name: str, action: str, keys: bodies.Keys, form: str) -> Answer:
    work = partial(getattr(service, action), name, keys.form, keys.body, of=keys.of)
    if action in NUMBERS:
        numbers, what, nulls, warning = await asyncio.to_thread(work)
        notes = answers.Notes(key_domain=warning)
        if what == "one":
            return answers.of_number(NUMBERS[action], numbers, nulls, notes)
        return answers.of_numbers(form, NUMBERS[action], numbers, nulls, notes)
    work = partial(work, pack=form in {answers.BITS, bodies.ARROW})
    found: Any = work(wait=False) if action == "check" and len(keys.body) < _SMALL else None
    if found is None:
        found = await asyncio.to_thread(work)
    answer, count, yes, what, over, warning = found
    notes = answers.Notes(over, warning)
    if what == "one":
        return answers.of_key(WORDS[action], notes, yes=yes == 1)
    if what == "pairs":
        return as_json({"keys": count, **notes.members()})
    return answers.of_keys(form, WORDS[action], answer, count, yes, notes)


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
        return partial(found, versions=self._versions) if name in CHANGES else found


def dumps(value: object) -> bytes:
    """Return JSON without blanks."""
    return json.dumps(value, separators=(",", ":")).encode()
