"""Filters of our own kinds, dumped and loaded in pieces: over any connections, of one state, with an end."""

from __future__ import annotations

import pytest
import redis
from service.resp.data_plane import Service


def pieces(clients, sort: str, name: str):
    """All of a dump, each piece over the next of some connections."""
    at, found = 0, []
    while at or not found:
        client = clients[len(found) % len(clients)]
        at, piece = client.execute_command(f"{sort}.SCANDUMP", name, at)
        found.append((at, piece))
    return found[:-1]


@pytest.mark.parametrize("sort", ["BF", "CF"])
def test_a_dump_is_of_one_state_whatever_connections_it_takes(service: Service, sort):
    clients = [service.client() for _ in range(3)]
    one = clients[0]
    for number in range(500):
        one.execute_command(f"{sort}.ADD", f"d{sort}", f"a{number}")
    first = one.execute_command(f"{sort}.SCANDUMP", f"d{sort}", 0)
    for number in range(500):
        one.execute_command(f"{sort}.ADD", f"d{sort}", f"b{number}")
    second = pieces(clients, sort, f"d{sort}")
    at, piece = clients[1].execute_command(f"{sort}.SCANDUMP", f"d{sort}", first[0])
    for name, dumped in ((f"one{sort}", [first, [at, piece]]), (f"both{sort}", second)):
        for turn, (number, bytes_) in enumerate(dumped):
            assert number < 2**52  # as far as JavaScript counts
            clients[turn % 3].execute_command(f"{sort}.LOADCHUNK", name, number, bytes_)
    keys = [f"{letter}{number}" for letter in "ab" for number in range(500)]
    found = one.execute_command(f"{sort}.MEXISTS", f"one{sort}", *keys)
    assert all(found[:500])
    assert sum(found[500:]) < 50
    assert all(one.execute_command(f"{sort}.MEXISTS", f"both{sort}", *keys))


def test_a_piece_may_be_loaded_before_the_next_is_asked_for(service: Service):
    client = service.client()
    client.execute_command("BF.MADD", "loop", *range(1000))
    at = -1
    while at:
        at, piece = client.execute_command("BF.SCANDUMP", "loop", max(at, 0))
        if at:
            client.execute_command("BF.LOADCHUNK", "looped", at, piece)
    assert all(client.execute_command("BF.MEXISTS", "looped", *range(1000)))


def test_numbers_of_no_dump_are_refused_by_name(service: Service):
    client = service.client()
    client.execute_command("BF.ADD", "n", "x")
    client.execute_command("BF.ADD", "other", "x")
    at, _ = client.execute_command("BF.SCANDUMP", "n", 0)
    for name, number in [("n", 1), ("n", 5), ("n", -1), ("n", 2**63 - 1), ("other", at)]:
        with pytest.raises(redis.ResponseError, match="begin with 0"):
            client.execute_command("BF.SCANDUMP", name, number)
    for _ in range(2):  # its end ends it
        at, _ = client.execute_command("BF.SCANDUMP", "n", at)
    assert at == 0


def test_dumps_that_are_left_have_a_bound(start):
    client = start().client()
    client.execute_command("BF.ADD", "left", "x")
    begun = [client.execute_command("BF.SCANDUMP", "left", 0)[0] for _ in range(255)]
    assert len(set(begun)) == 255
    with pytest.raises(redis.ResponseError, match="255 dumps are on their way"):
        client.execute_command("BF.SCANDUMP", "left", 0)
    at, _ = client.execute_command("BF.SCANDUMP", "left", begun[7])
    assert client.execute_command("BF.SCANDUMP", "left", at) == [0, b""]
    assert client.execute_command("BF.SCANDUMP", "left", 0)[0] == begun[7]
