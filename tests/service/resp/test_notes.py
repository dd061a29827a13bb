"""Notes: `SET` and `GET` answer as Redis 7 does, beside filters, in every form of the service.

Rows of ``NOTES`` are played on the service and on a live redis-server; those of ``BESIDE`` have filters in
them and are the service's own.
"""

from __future__ import annotations

import time

import pytest
import redis
from engines.servers import Server, needs_redis
from service.resp.data_plane import Service
from service.resp.test_replies import (
    FALSE,
    NO,
    NONE,
    NULL,
    OK,
    TRUE,
    WRONG,
    YES,
    arity,
    array,
    bulk,
    error,
    words,
)

SYNTAX = error("ERR syntax error")
EXPIRE = error("ERR invalid expire time in 'set' command")
INTEGER = error("ERR value is not an integer or out of range")
MOST = 64 << 10

NOTES = [
    ("GET a", NONE, NULL),
    ("SET a 1", OK),
    ("GET a", bulk("1")),
    ("TYPE a", "+string\r\n"),
    ("SET a 2 NX", NONE, NULL),
    ("SET b 2 XX", NONE, NULL),
    ("SET b 2 nx px 60000", OK),
    ("SET b 3 XX KEEPTTL", OK),
    ("TTL b", ":60\r\n"),
    ("GET b", bulk("3")),
    ("SET b 4", OK),
    ("TTL b", ":-1\r\n"),
    ("SET b 5 GET", bulk("4")),
    ("SET b 6 NX GET", bulk("5")),
    ("SET b 7 GET XX", bulk("5")),
    ("SET new 1 GET", NONE, NULL),
    ("GET b", bulk("7")),
    ("SET b 8 EX 100", OK),
    ("TTL b", ":100\r\n"),
    ("SET b 8 EXAT 99999999999", OK),
    ("EXPIRETIME b", ":99999999999\r\n"),
    ("SET b 8 PXAT 99999999999123", OK),
    ("PEXPIRETIME b", ":99999999999123\r\n"),
    ("PERSIST b", YES),
    ("PERSIST b", NO),
    ("PEXPIRE b 60000", YES),
    ("SET b 9 KEEPTTL", OK),
    ("TTL b", ":60\r\n"),
    ("EXPIRE b 0", YES),
    ("GET b", NONE, NULL),
    ("SET gone x PXAT 1", OK),
    ("GET gone", NONE, NULL),
    ("SET gone x XX", NONE, NULL),
    ("SET a x NX XX", SYNTAX),
    ("SET a x XX NX", SYNTAX),
    ("SET a x NX NX", NONE, NULL),
    ("SET a x EX", SYNTAX),
    ("SET a x EX 1 PX 1", SYNTAX),
    ("SET a x KEEPTTL EX 1", SYNTAX),
    ("SET a x EX 1 KEEPTTL", SYNTAX),
    ("SET a x maybe", SYNTAX),
    ("SET a x EX x", INTEGER),
    ("SET a x EX 1.5", INTEGER),
    ("SET a x EX 0", EXPIRE),
    ("SET a x PX -1", EXPIRE),
    ("SET a x EXAT 0", EXPIRE),
    ("SET a x EX 9223372036854775807", EXPIRE),
    ("SET a x PX 9223372036854775807", EXPIRE),
    ("SET a", arity("set")),
    ("GET", arity("get")),
    ("GET a b", arity("get")),
    ("GET a", bulk("1")),
    ("RENAME a c", OK),
    ("GET c", bulk("1")),
    ("RENAME a c", error("ERR no such key")),
    ("SET d 2", OK),
    ("RENAMENX d c", NO),
    ("RENAME d c", OK),
    ("GET c", bulk("2")),
    ("EXISTS c c d", ":2\r\n"),
    ("MULTI", OK),
    ("SET c 3", "+QUEUED\r\n"),
    ("GET c", "+QUEUED\r\n"),
    ("EXEC", array(OK, bulk("3"))),
    ("SET {tag}:x 1", OK),
    ("GET {tag}:x", bulk("1")),
    ("DEL c nothing", YES),
    ("UNLINK {tag}:x new", ":2\r\n"),
    ("DBSIZE", NO),
]

BESIDE = [
    ("BF.ADD f x", YES, TRUE),
    ("SET n text", OK),
    ("GET f", WRONG),
    ("SET f text", WRONG),
    ("SET f text XX", WRONG),
    ("SET n x EX 1 EX 1", SYNTAX),  # Redis takes the last
    ("SET f text NX", NONE, NULL),
    ("SET f text NX GET", WRONG),
    ("BF.EXISTS f x", YES, TRUE),
    *((line, WRONG) for line in ("BF.ADD n x", "BF.MADD n x", "BF.INSERT n ITEMS x", "BF.RESERVE n 0.1 9")),
    *((line, WRONG) for line in ("BF.CARD n", "BF.INFO n", "BF.SCANDUMP n 0", "BF.DEBUG n", "CF.ADD n x")),
    *((line, WRONG) for line in ("CF.RESERVE n 9", "CF.INFO n", "CF.INSERT n ITEMS x", "BLOOM.INFO n")),
    *((line, WRONG) for line in ("BLOOM.ADD n x", "BLOOM.CHECK n x", "BLOOM.CLEAR n", "BLOOM.DUMP n")),
    *(
        (line, WRONG)
        for line in ("BLOOM.MERGE f n", "BLOOM.MERGE n f", "BLOOM.STATS n", "BLOOM.HCHECK n 12345678")
    ),
    ("BF.EXISTS n x", NO, FALSE),
    ("BF.MEXISTS n x", array(NO), array(FALSE)),
    ("CF.EXISTS n x", NO, FALSE),
    ("CF.COUNT n x", NO),
    ("CF.DEL n x", error("Not found")),
    ("BLOOM.CREATE n KIND bloom capacity 9", error("ERR item exists")),
    ("BLOOM.CREATE m KIND note", None),
    ("GET n", bulk("text")),
    ("SCAN 0 TYPE string", array(bulk("0"), array(bulk("n")))),
    ("SCAN 0 TYPE MBbloom--", array(bulk("0"), array(bulk("f")))),
    ("KEYS *", array(bulk("f"), bulk("n"))),
    ("DBSIZE", ":2\r\n"),
    ("RENAME n f", OK),
    ("GET f", bulk("text")),
    ("BF.ADD g x", YES, TRUE),
    ("RENAME g f", OK),
    ("BF.EXISTS f x", YES, TRUE),
    ("SET x/y 1", error("ERR a name is 1 to 128 of A-Z a-z 0-9 . _ : - { }")),
    ("SET n 1", OK),
    ("FLUSHDB", OK),
    ("EXISTS n f", NO),
]


def differing(raw, table, protocol):
    """The rows of a table that are answered otherwise."""
    if protocol == 3:
        raw.send(words("HELLO 3"))
        raw.reply()
    wrong = []
    # All at once: from a SET to the TTL behind it, no pause of this process counts.
    raw.send(b"".join(words(line) for line, *_ in table))
    for line, *answers in table:
        said, expected = raw.reply(), answers[-1 if protocol == 3 else 0]
        if said != expected.encode() if expected is not None else not said.startswith(b"-"):
            wrong.append((line, said, expected))
    return wrong


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("plain", ["no", "yes"])
def test_the_service_replies_as_the_tables_say(start, protocol, plain):
    settings = {} if plain == "no" else {"plain": "yes"}
    raw = start(**settings).socket()
    assert not differing(raw, NOTES, protocol)
    assert not differing(raw, BESIDE, protocol)


@needs_redis
@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_replies_as_the_table_says(tmp_path, protocol):
    running = Server(tmp_path)
    try:
        service = Service.__new__(Service)  # for its socket
        service.port = running.port
        assert not differing(service.socket(), NOTES, protocol)
    finally:
        running.kill()


def test_notes_hold_any_bytes_up_to_a_named_limit(service):
    client = service.client()
    for text in (b"", bytes(range(256)), b"\r\n" * 1000, b"x" * MOST):
        assert client.set("any", text)
        assert client.get("any") == text
    with pytest.raises(redis.exceptions.ResponseError, match=rf"at most {MOST} bytes, got {MOST + 1}"):
        client.set("any", b"x" * (MOST + 1))
    assert client.get("any") == b"x" * MOST


def test_a_note_expires_with_its_ttl(service):
    client = service.client()
    client.set("brief", "x", px=30)
    deadline = time.monotonic() + 60
    while client.exists("brief") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert client.get("brief") is None
    assert client.set("brief", "y", nx=True)


def test_a_reader_may_get_and_may_not_set(start):
    one = start(admin="of-the-admin", reader="of-a-reader")
    admin, reader = one.client(password="of-the-admin"), one.client(password="of-a-reader")
    admin.set("r:note", "x")
    admin.set("w:note", "x")
    assert reader.get("r:note") == b"x"
    for ask in (
        lambda: reader.set("r:note", "y"),
        lambda: reader.get("w:note"),
        lambda: reader.delete("r:note"),
    ):
        with pytest.raises(redis.exceptions.NoPermissionError):
            ask()
    assert reader.execute_command("SCAN", 0)[1] == [b"r:note"]
    assert admin.get("r:note") == b"x"


@pytest.mark.parametrize(("mode", "kept"), [("always", True), ("everysec", False), ("off", False)])
def test_notes_survive_a_kill_as_filters_do(start, tmp_path, mode, kept):
    one = start(tmp_path / "data", mode)
    client = one.client()
    client.set("saved", "1")
    client.bf().add("f", "x")
    client.execute_command("SAVE")
    client.set("saved", "2")
    client.set("later", "3", ex=1000)
    client.bf().add("f", "y")
    one.kill()
    client = start(tmp_path / "data", mode).client()
    found = client.get("saved"), client.get("later"), client.bf().exists("f", "y")
    # In their order: what is kept is a beginning of what was acknowledged, all of it in the mode "always".
    states = [(b"1", None, 0), (b"2", None, 0), (b"2", b"3", 0), (b"2", b"3", 1)]
    assert found in states[3 if kept else 0 :]
    if kept:
        assert 0 < client.ttl("later") <= 1000
        assert client.ttl("saved") == -1


def test_one_of_several_concurrent_set_nx_succeeds(service):
    from concurrent.futures import ThreadPoolExecutor

    for round_ in range(20):
        clients = [service.client() for _ in range(8)]
        with ThreadPoolExecutor(8) as pool:
            name = f"one{round_}"
            won = list(pool.map(lambda at: clients[at].set(name, f"{at}", nx=True), range(8)))  # noqa: B023
        (winner,) = [at for at, yes in enumerate(won) if yes]
        assert clients[0].get(name) == b"%d" % winner
