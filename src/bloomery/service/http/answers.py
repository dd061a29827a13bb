"""Answers about many keys, in the form that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bloomery.service.engine import flags_text, numbers_text
from bloomery.service.failures import Refused
from bloomery.service.http.bodies import ARROW, JSON, NDJSON
from bloomery.service.http.wire import Answer, as_json, header

if TYPE_CHECKING:
    from bloomery.service.http.wire import Scope

BITS = "application/octet-stream"
#: The header of an answer of a filter that holds more keys than it was made for.
OVER = ((b"x-bloomery-over-capacity", b"true"),)


def wanted(scope: Scope, default: str) -> str:
    """Return the form of answers that ``Accept`` asks for."""
    accept = header(scope, b"accept")
    if accept is None:
        return default
    for part in accept.decode("latin-1").split(","):
        name = part.partition(";")[0].strip().lower()
        if name in {"*/*", "application/*", "text/*", ""}:
            return default
        if name in {BITS, JSON, NDJSON, ARROW}:
            return name
    raise Refused("not-acceptable", f"answers come as {BITS}, {JSON}, {NDJSON} or {ARROW}")


def of_keys(form: str, word: str, answer: bytes, keys: int, yes: int, *, over: bool) -> Answer:
    """Return answers of one bit a key (packed for `BITS` and `ARROW`, else a byte each)."""
    counted = (
        (b"x-bloomery-keys", str(keys).encode()),
        (b"x-bloomery-yes", str(yes).encode()),
        *(OVER if over else ()),
    )
    if form == BITS:
        return Answer(200, BITS.encode(), answer, counted)
    if form == NDJSON:
        text = flags_text(answer, b"\n")
        return Answer(200, NDJSON.encode(), text + b"\n" if text else b"", counted)
    if form == ARROW:
        from bloomery.service.http.arrow import answers

        return Answer(200, ARROW.encode(), answers(answer, keys), counted)
    said = b',"over_capacity":true' if over else b""
    text = b'{"%s":[%s],"keys":%d,"yes":%d%s}' % (word.encode(), flags_text(answer, b","), keys, yes, said)
    return Answer(200, JSON.encode(), text, counted)


def of_key(word: str, *, yes: bool, over: bool) -> Answer:
    """Return the answer about one key."""
    if over:
        return as_json({word: yes, "over_capacity": True}, headers=OVER)
    return Answer(200, JSON.encode(), b'{"%s":%s}' % (word.encode(), b"true" if yes else b"false"))


def of_numbers(form: str, word: str, numbers: bytes) -> Answer:
    """Return a number a key, from 8 bytes each."""
    if form == NDJSON:
        text = numbers_text(numbers, b"\n")
        return Answer(200, NDJSON.encode(), text + b"\n" if text else b"")
    if form == ARROW:
        from bloomery.service.http.arrow import numbers as stream

        return Answer(200, ARROW.encode(), stream(word, numbers))
    text = b'{"%ss":[%s],"keys":%d}' % (word.encode(), numbers_text(numbers, b","), len(numbers) // 8)
    return Answer(200, JSON.encode(), text)
