"""RedisBloom and a service without keys (``--plain``) give the same replies and exchange filters bit for bit.

The dumps below are those of RedisBloom 2.8.20. The real module is compared as well where there is one.
``tests/golden/replies-of-redisbloom.jsonl`` has the replies of RedisBloom 8 (its sources of June 2026)
to the commands of ``corpus``, a line each: the command, the reply in version 2 of the protocol, and in
version 3 where it differs. Two more fields are the replies of RedisBloom 2.8.20 where they differ. In
``tests/``, ``python -m service.resp.test_redisbloom PORT PORT`` records the replies of both.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import struct
import sys
from pathlib import Path

import pytest
import redis
from service.resp.corpus import CORPUS, encode_command
from service.resp.data_plane import Raw, Service
from service.resp.redisbloom import redisbloom

__all__ = ["redisbloom"]  # a fixture

# Of BF.RESERVE a 0.01 100 and BF.ADD a x.
HEADER = bytes.fromhex(
    "0100000000000000 01000000 05000000 02000000 9000000000000000 8004000000000000"
    "0100000000000000 7b14ae47e17a743f e9862fb2350e2640 08000000 6400000000000000 00"
)
# Of CF.ADD c x.
CUCKOO_HEADER = struct.pack("<QQQQHHH", 1, 512, 0, 1, 2, 20, 1)

# A name, the command that makes it, keys added, and what its dump has: SHA-256 of all pieces, header first.
DUMPED = [
    ("default", None, 1, "8caa643dcf43b85e06153cb0dfcbca66f12bfeff858bc98215aa1ee2896ecff3"),
    (
        "grown",
        "BF.RESERVE {} 0.02 50 EXPANSION 3",
        3000,
        "4562a13ec8bcd65232bf6a28a55ef4b2662ac36de3cb131054a14e363ee54012",
    ),
    (
        "doubled",
        "BF.RESERVE {} 0.0001 10",
        2000,
        "b4be431ff8f7824b3994de1c2a41bb52e7be3bb06e4b285222e2acf08ea81a8b",
    ),
    (
        "still",
        "BF.RESERVE {} 0.001 1000 NONSCALING",
        900,
        "b96a149479ef3bb2a1698f2673d51754e22a21cb591079f4d6e55f34e605c27e",
    ),
    ("cuckoo", "CF.RESERVE {} 64", 1500, "59cc989b74d6523ab7db0dd414ccaf54a1326028e1d047897c319ddfab7b9c46"),
    (
        "cuckoo4",
        "CF.RESERVE {} 100 BUCKETSIZE 4 MAXITERATIONS 50 EXPANSION 2",
        3000,
        "f2c4aa1f791b6016368f73337b7306e301848442932d196d8389dbf82b117503",
    ),
    (
        "cuckoo3",
        "CF.RESERVE {} 1000 BUCKETSIZE 3 EXPANSION 0",
        500,
        "524d9ff1987cb3c5b83ced8aed1ac33dc47f35e76609192fc229f9ff086d6207",
    ),
]


def key(number: int) -> str:
    return f"key:{number}:{'x' * (number % 23)}"


def family(name: str) -> str:
    return "CF" if "cuckoo" in name else "BF"


def pieces(client: redis.Redis, name: str, sort: str) -> list[tuple[int, bytes]]:
    """All of a dump, each piece with the number that it is loaded under."""
    found, at = [], 0
    while True:
        at, piece = client.execute_command(f"{sort}.SCANDUMP", name, at)
        if at == 0:
            return found
        found.append((at, piece))


def load(client: redis.Redis, name: str, sort: str, dumped: list[tuple[int, bytes]]) -> None:
    for at, piece in dumped:
        assert client.execute_command(f"{sort}.LOADCHUNK", name, at, piece) == b"OK"


def add(client: redis.Redis, name: str, sort: str, numbers: range) -> list[str]:
    """Answers to adding keys; of a cuckoo filter every seventh is taken out again."""
    if sort == "BF":
        return [str(answer) for answer in client.execute_command("BF.MADD", name, *map(key, numbers))]
    answers = client.execute_command("CF.INSERT", name, "ITEMS", *map(key, numbers))
    return [*answers, *(client.execute_command("CF.DEL", name, key(number)) for number in numbers[::7])]


def make(client: redis.Redis, name: str, command: str | None, count: int) -> None:
    if command:
        assert client.execute_command(*command.format(name).split()) == b"OK"
    add(client, name, family(name), range(count))


def digest(dumped: list[tuple[int, bytes]]) -> str:
    return hashlib.sha256(b"".join(piece for _, piece in dumped)).hexdigest()


@pytest.fixture(scope="module")
def plain():
    one = Service(plain="yes")
    yield one
    one.kill()


def test_headers_equal_those_of_redisbloom(plain):
    client = plain.client()
    client.execute_command("BF.RESERVE", "a", 0.01, 100)
    client.execute_command("BF.ADD", "a", "x")
    client.execute_command("CF.ADD", "c", "x")
    assert client.execute_command("BF.SCANDUMP", "a", 0) == [1, HEADER]
    assert client.execute_command("CF.SCANDUMP", "c", 0) == [1, CUCKOO_HEADER]
    client.execute_command("CF.RESERVE", "empty", 100)
    assert client.execute_command("CF.SCANDUMP", "empty", 0) == [0, None]


@pytest.mark.parametrize(("name", "command", "count", "known"), DUMPED, ids=[row[0] for row in DUMPED])
def test_dumps_equal_those_of_redisbloom(plain, name, command, count, known):
    client = plain.client()
    make(client, name, command, count)
    assert digest(pieces(client, name, family(name))) == known


@pytest.mark.parametrize(("name", "command", "count", "known"), DUMPED, ids=[row[0] for row in DUMPED])
def test_a_filter_round_trips_through_redisbloom(plain, redisbloom, name, command, count, known):
    ours, theirs, sort = plain.client(), redisbloom.client(protocol=2), family(name)
    make(theirs, name, command, count)
    dumped = pieces(theirs, name, sort)
    assert digest(dumped) == known
    load(ours, f"from-{name}", sort, dumped)
    asked = list(map(key, range(2 * count + 20)))
    expected = theirs.execute_command(f"{sort}.MEXISTS", name, *asked)
    assert ours.execute_command(f"{sort}.MEXISTS", f"from-{name}", *asked) == expected
    assert 0 < sum(expected) < len(asked)
    more = range(count, count + count // 2 + 20)
    assert add(ours, f"from-{name}", sort, more) == add(theirs, name, sort, more)
    after = pieces(ours, f"from-{name}", sort)
    assert after == pieces(theirs, name, sort)
    for what in ("INFO", "DEBUG"):
        result = theirs.execute_command(f"{sort}.{what}", name)
        assert ours.execute_command(f"{sort}.{what}", f"from-{name}") == result
    load(theirs, f"back-{name}", sort, after)
    assert pieces(theirs, f"back-{name}", sort) == after
    answers = theirs.execute_command(f"{sort}.MEXISTS", f"back-{name}", *asked)
    assert answers == ours.execute_command(f"{sort}.MEXISTS", f"from-{name}", *asked)


@pytest.mark.parametrize("name", ["grown", "cuckoo4"])
def test_pieces_in_any_parts_are_loaded_over_any_connection(plain, service, name):
    command, count = next((row[1], row[2]) for row in DUMPED if row[0] == name)
    one, sort = plain.client(), family(name)
    make(one, f"s-{name}", command, count)
    dumped = []
    at = 0
    while at or not dumped:
        at, piece = plain.client().execute_command(f"{sort}.SCANDUMP", f"s-{name}", at)
        dumped.append((at, piece))
    # In parts of any length, some of them twice, each on a connection of its own.
    for at, piece in dumped[:-1]:
        for start in range(0, len(piece), 1000) if at > 1 else [0]:
            part = piece[start : start + 1000] if at > 1 else piece
            number = at - len(piece) + start + len(part) if at > 1 else at
            for _ in range(1 + (start == 1000)):
                service.client().execute_command(f"{sort}.LOADCHUNK", f"s-{name}", number, part)
    other = service.client()
    assert pieces(other, f"s-{name}", sort) == dumped[:-1]
    asked = list(map(key, range(2 * count)))
    assert other.execute_command(f"{sort}.MEXISTS", f"s-{name}", *asked) == one.execute_command(
        f"{sort}.MEXISTS", f"s-{name}", *asked
    )


@pytest.mark.long
def test_loaded_pieces_survive_a_kill(start, tmp_path):
    one = start(tmp_path, "always", plain="yes")
    client = one.client()
    for name, command, count, _ in DUMPED:
        make(client, name, command, count)
        dumped = pieces(client, name, family(name))
        load(client, f"{name}-loaded", family(name), dumped)
        load(client, f"{name}-half", family(name), dumped[:2])
    client.execute_command("CF.COMPACT", "cuckoo")
    names = sorted(client.execute_command("KEYS", "*"))
    before = {name: pieces(client, name.decode(), family(name.decode())) for name in names}
    for _ in range(2):
        one.kill()
        one = start(tmp_path, "always", plain="yes")
        client = one.client()
        assert {name: pieces(client, name.decode(), family(name.decode())) for name in names} == before
        client.execute_command("SAVE")


def test_filters_of_redisbloom_accept_packed_and_plain_commands(plain):
    client = plain.client()
    client.execute_command("BF.MADD", "paths", "a", "b")
    packed = b"".join(len(key).to_bytes(4, "little") + key for key in (b"a", b"c", b"b"))
    assert client.execute_command("BLOOM.PCHECK", "paths", packed) == b"\x05"
    assert client.execute_command("BLOOM.PADD", "paths", packed) == b"\x02"
    assert client.execute_command("BLOOM.CHECK", "paths", "a", "d") == [1, 0]
    for refused in (
        ["BLOOM.HCHECK", "paths", bytes(16)],
        ["BLOOM.REMOVE", "paths", "a"],
        ["BLOOM.CLEAR", "paths"],
    ):
        with pytest.raises(redis.ResponseError, match="cannot"):
            client.execute_command(*refused)
    client.execute_command("BLOOM.RESTORE", "copy", client.execute_command("BLOOM.DUMP", "paths"))
    assert pieces(client, "copy", "BF") == pieces(client, "paths", "BF")
    assert b"ForeignScalableFilter" in client.execute_command("BLOOM.INFO", "copy")
    instance = ["BLOOM.CREATE", "named", "KIND", "redisbloom-cuckoo", "capacity", 100, "keyed", "no"]
    assert client.execute_command(*instance) == b"OK"
    assert client.execute_command("CF.ADD", "named", "x") == 1


def test_filters_of_redisbloom_are_unkeyed(service):
    client = service.client()
    create = ("BLOOM.CREATE", "k", "KIND", "redisbloom", "capacity", 100)
    with pytest.raises(redis.ResponseError, match="keyed no"):
        client.execute_command(*create, "keyed", "yes")
    assert client.execute_command(*create) == b"OK"


RECORD = Path(__file__).parents[2] / "golden" / "replies-of-redisbloom.jsonl"
# What is answered otherwise, by command, and why.
OTHERWISE = {
    # Numbers are decimal here.
    "BF.RESERVE r14 0x1p-3 100": b"-ERR bad error rate\r\n",
    "BF.INFO r14": b"-ERR not found\r\n",
}


def play(raw: Raw, protocol: int) -> list[bytes]:
    """The replies to all of the corpus."""
    if protocol == 3:
        raw.send(encode_command("HELLO 3"))
        raw.reply()
    replies = []
    for line in CORPUS:
        raw.send(encode_command(line))
        replies.append(raw.reply())
    raw.close()
    return replies


def read_record(protocol: int, version: int = 8) -> list[bytes]:
    """The replies that RedisBloom gave."""
    rows = [json.loads(line) for line in RECORD.read_text(encoding="ascii").splitlines()]
    assert [row[0] for row in rows] == CORPUS, "the corpus has changed: record the replies again"
    found = []
    for _, *replies in rows:
        pair = replies[2:] if version < 8 and len(replies) == 4 else replies[:2]
        found.append(pair[-1 if protocol == 3 else 0].encode("latin-1"))
    return found


@pytest.mark.parametrize("protocol", [2, 3])
def test_replies_equal_those_of_redisbloom(start, protocol):
    said = play(start(plain="yes").socket(), protocol)
    rows = zip(CORPUS, said, read_record(protocol), strict=True)
    assert not [row for row in rows if row[1] != OTHERWISE.get(row[0], row[2])]


@pytest.mark.parametrize("protocol", [2, 3])
def test_the_recorded_replies_equal_those_of_the_real_module(redisbloom, protocol):
    client = redisbloom.client(protocol=2)
    client.execute_command("FLUSHALL")
    modules = client.execute_command("MODULE", "LIST")
    version = int(modules[0][modules[0].index(b"ver") + 1]) // 10_000
    rows = zip(CORPUS, play(Raw(redisbloom.port), protocol), read_record(protocol, version), strict=True)
    assert not [row for row in rows if row[1] != row[2]]


def record(new: int, old: int) -> None:
    """Asks both, whose keys are dropped."""
    found = []
    for port, protocol in itertools.product((new, old), (2, 3)):
        Raw(port).ask(encode_command("FLUSHALL"), b"+OK\r\n")
        found.append(play(Raw(port), protocol))
    with RECORD.open("w", encoding="ascii") as out:
        for line, *replies in zip(CORPUS, *found, strict=True):
            two, three, old_two, old_three = [reply.decode("latin-1") for reply in replies]
            row = [line, two, three, old_two, old_three]
            if (two, three) == (old_two, old_three):
                row = [line, two] if two == three else [line, two, three]
            out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    record(int(sys.argv[1]), int(sys.argv[2]))
