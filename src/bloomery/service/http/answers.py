"""Answers about many keys, in the form that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bloomery.service.failures import Refused
from bloomery.service.http.bodies import ARROW, JSON, NDJSON
from bloomery.service.http.wire import Answer, as_json, header

if TYPE_CHECKING:
    from bloomery.service.http.wire import Scope

BITS = "application/octet-stream"
_WORDS = (b"false\n", b"true\n")


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


def of_keys(form: str, word: str, answer: bytes, keys: int, yes: int) -> Answer:
    """Return answers of one bit a key (packed for `BITS`, else a byte each)."""
    counted = ((b"x-bloomery-keys", str(keys).encode()), (b"x-bloomery-yes", str(yes).encode()))
    if form == BITS:
        return Answer(200, BITS.encode(), answer, counted)
    if form == NDJSON:
        return Answer(200, NDJSON.encode(), b"".join([_WORDS[byte] for byte in answer]), counted)
    if form == ARROW:
        from bloomery.service.http.arrow import answers

        return Answer(200, ARROW.encode(), answers(answer), counted)
    return as_json({word: [byte == 1 for byte in answer], "keys": keys, "yes": yes}, headers=counted)


def of_counts(form: str, counts: list[int]) -> Answer:
    """Return a number a key."""
    if form == NDJSON:
        return Answer(200, NDJSON.encode(), b"".join([b"%d\n" % count for count in counts]))
    if form == ARROW:
        from bloomery.service.http.arrow import numbers

        return Answer(200, ARROW.encode(), numbers(counts))
    return as_json({"counts": counts, "keys": len(counts)})
