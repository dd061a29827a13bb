"""Replies of a service without keys are RedisBloom's, command by command, in both versions of the protocol.

``tests/golden/replies-of-redisbloom.jsonl`` has what RedisBloom 8 (its sources of June 2026) answers to the
commands of ``corpus``, a line each: the command, the reply in version 2, and in version 3 where it differs.
Two words more are what RedisBloom 2.8.20 answers instead. In ``tests/``, ``python -m
service.resp.test_redisbloom_replies PORT PORT`` writes it anew, of both.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import pytest
from service.resp.corpus import CORPUS, spoken
from service.resp.data_plane import Raw
from service.resp.redisbloom import redisbloom

__all__ = ["redisbloom"]  # a fixture

RECORD = Path(__file__).parents[2] / "golden" / "replies-of-redisbloom.jsonl"
# What is answered otherwise, by command, and why.
OTHERWISE = {
    # Numbers are decimal here.
    "BF.RESERVE r14 0x1p-3 100": b"-ERR bad error rate\r\n",
    "BF.INFO r14": b"-ERR not found\r\n",
}


def played(raw: Raw, protocol: int) -> list[bytes]:
    """The replies to all of the corpus."""
    if protocol == 3:
        raw.send(spoken("HELLO 3"))
        raw.reply()
    replies = []
    for line in CORPUS:
        raw.send(spoken(line))
        replies.append(raw.reply())
    raw.close()
    return replies


def recorded(protocol: int, version: int = 8) -> list[bytes]:
    """The replies that RedisBloom gave."""
    rows = [json.loads(line) for line in RECORD.read_text(encoding="ascii").splitlines()]
    assert [row[0] for row in rows] == CORPUS, "the corpus has changed: write the record anew"
    found = []
    for _, *replies in rows:
        pair = replies[2:] if version < 8 and len(replies) == 4 else replies[:2]
        found.append(pair[-1 if protocol == 3 else 0].encode("latin-1"))
    return found


@pytest.mark.parametrize("protocol", [2, 3])
def test_replies_are_those_of_redisbloom(start, protocol):
    said = played(start(plain="yes").socket(), protocol)
    rows = zip(CORPUS, said, recorded(protocol), strict=True)
    assert not [row for row in rows if row[1] != OTHERWISE.get(row[0], row[2])]


@pytest.mark.parametrize("protocol", [2, 3])
def test_the_record_is_what_redisbloom_says(redisbloom, protocol):
    client = redisbloom.client()
    client.execute_command("FLUSHALL")
    modules = client.execute_command("MODULE", "LIST")
    version = int(modules[0][modules[0].index(b"ver") + 1]) // 10_000
    rows = zip(CORPUS, played(redisbloom.socket(), protocol), recorded(protocol, version), strict=True)
    assert not [row for row in rows if row[1] != row[2]]


def record(new: int, old: int) -> None:
    """Asks both, whose keys are dropped."""
    found = []
    for port, protocol in itertools.product((new, old), (2, 3)):
        Raw(port).ask(spoken("FLUSHALL"), b"+OK\r\n")
        found.append(played(Raw(port), protocol))
    with RECORD.open("w", encoding="ascii") as out:
        for line, *replies in zip(CORPUS, *found, strict=True):
            two, three, old_two, old_three = [reply.decode("latin-1") for reply in replies]
            row = [line, two, three, old_two, old_three]
            if (two, three) == (old_two, old_three):
                row = [line, two] if two == three else [line, two, three]
            out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    record(int(sys.argv[1]), int(sys.argv[2]))
