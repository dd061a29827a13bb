"""Authorization: tokens, scopes, names."""

from __future__ import annotations

import pytest
import redis
from service.resp.data_plane import Service

ADMIN, READER = "token-of-the-admin", "token-of-a-reader"


@pytest.fixture(scope="module")
def guarded():
    one = Service(admin=ADMIN, reader=READER)
    yield one
    one.kill()


def words(*parts: str) -> bytes:
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part.encode()) for part in parts)


def test_no_command_runs_before_authentication(guarded):
    raw = guarded.socket()  # redis-py tries again and again
    for name in [*client_names(guarded), "no.such.command"]:
        if name in ("auth", "hello", "quit", "reset"):
            continue
        raw.ask(words(name, "x", "y", "z"), b"-NOAUTH Authentication required.\r\n")


def client_names(guarded) -> list[str]:
    client = guarded.client(password=ADMIN)
    return [name.decode() for name in client.execute_command("COMMAND LIST")]


def test_lengths_are_limited_before_authentication(guarded):
    for sent, text in (
        (b"*11\r\n", b"unauthenticated multibulk length"),
        (b"*1\r\n$20000\r\n", b"unauthenticated bulk length"),
    ):
        raw = guarded.socket()
        raw.send(sent)
        assert raw.rest() == b"-ERR Protocol error: " + text + b"\r\n"


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("user", [None, "anybody"])
def test_a_token_authenticates_a_connection(guarded, protocol, user):
    assert guarded.client(protocol, password=ADMIN, username=user).bf().add("w:1", "x") in (0, 1)
    login = ["wrong"] if user is None else [user, "wrong"]
    for sent in (words("AUTH", *login), words("HELLO", str(protocol), "AUTH", user or "default", "wrong")):
        raw = guarded.socket()
        raw.ask(sent, b"-WRONGPASS invalid username-password pair or user is disabled.\r\n")
        raw.ask(words("PING"), b"-NOAUTH Authentication required.\r\n")


def test_a_reader_may_run_read_commands_only(guarded):
    admin, reader = guarded.client(password=ADMIN), guarded.client(password=READER)
    admin.bf().add("r:1", "x")
    admin.bf().add("w:1", "x")
    assert reader.bf().exists("r:1", "x")
    for words in (["BF.EXISTS", "w:1", "x"], ["EXISTS", "r:1", "w:1"], ["BLOOM.INFO", "w:1"]):
        with pytest.raises(redis.exceptions.NoPermissionError):
            reader.execute_command(*words)
    assert reader.execute_command("SCAN", 0)[1] == [b"r:1"]
    assert next(iter(reader.execute_command("BLOOM.STATS"))) == b"r:1"


def test_every_command_requires_its_scope(guarded):
    """Every command that changes something is refused to a token that may only read."""
    admin, reader = guarded.client(password=ADMIN), guarded.client(password=READER)
    rows = admin.execute_command("COMMAND")
    rows = rows.values() if isinstance(rows, dict) else rows
    refused = set()
    for row in rows:
        name, flags, wanted = (
            (row["name"], row["flags"], row["arity"])
            if isinstance(row, dict)
            else (row[0].decode(), [flag.decode() for flag in row[2]], row[1])
        )
        if name in ("quit", "reset", "auth", "hello"):
            continue
        try:
            reader.execute_command(name, *["r:1"] * (abs(wanted) - 1))
        except redis.exceptions.NoPermissionError:
            refused.add(name)
        except redis.ResponseError:
            pass
        if "write" in flags:
            assert name in refused, name
    assert {"save", "bgsave", "flushdb", "bf.add", "cf.loadchunk", "bloom.restore"} <= refused
    assert not refused & {"bf.exists", "bf.mexists", "ping", "bloom.check", "cf.count"}


def test_a_transaction_checks_the_scope_of_each_command(guarded):
    reader = guarded.client(password=READER)
    with reader.pipeline(transaction=True) as pipe:
        pipe.bf().exists("r:1", "x")
        pipe.bf().add("r:1", "y")
        with pytest.raises(redis.ResponseError):
            pipe.execute()


def test_reset_forgets_the_token(guarded):
    raw = guarded.socket()
    raw.ask(b"AUTH " + ADMIN.encode() + b"\r\nPING\r\n", b"+OK\r\n+PONG\r\n")
    raw.ask(b"RESET\r\nPING\r\n", b"+RESET\r\n-NOAUTH Authentication required.\r\n")
