"""Guarantee: dumps move between the service and this process over a socket, and stay the same bytes."""

from __future__ import annotations

import pytest
from engines.modules import Service

from fullbloom import Client, ForeignCuckooFilter, ForeignScalableFilter, loads


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    pytest.importorskip("fullbloom_server", reason="needs the wheel fullbloom-server")
    started = Service(tmp_path_factory.mktemp("service"), "--plain")
    yield started
    started.kill()


def scan(client, command, name):
    """The pieces that a server answers, with the one that ends the dump."""
    number = 0
    while True:
        number, piece = client.execute_command(command, name, number, NEVER_DECODE=True)
        yield number, piece or b""
        if number == 0:
            return


KEYS = [f"key {i}" for i in range(3000)]


def test_a_bloom_filter_comes_from_the_service_and_goes_back(running):
    with running.client() as client:
        client.execute_command("BF.RESERVE", "theirs", 0.01, 200)
        client.execute_command("BF.MADD", "theirs", *KEYS)
        pieces = list(scan(client, "BF.SCANDUMP", "theirs"))
        read = ForeignScalableFilter.from_chunks(pieces)
        assert read.num_stages > 2
        assert all(read.contains_many(KEYS))
        own = ForeignScalableFilter(200, 0.01)
        own.update(KEYS)
        assert own == read
        assert [*own.chunks(), (0, b"")] == pieces
        own.add("more")
        for number, piece in own.chunks():
            assert client.execute_command("BF.LOADCHUNK", "back", number, piece) in {b"OK", True}
        assert client.execute_command("BF.EXISTS", "back", "more") == 1
        assert list(scan(client, "BF.SCANDUMP", "back"))[:-1] == list(own.chunks())
        # Both go on in the same way.
        more = [f"more {i}" for i in range(2000)]
        assert [bool(new) for new in client.execute_command("BF.MADD", "back", *more)] == own.add_many(more)
        assert list(scan(client, "BF.SCANDUMP", "back"))[:-1] == list(own.chunks())


def test_a_cuckoo_filter_comes_from_the_service_and_goes_back(running):
    with running.client() as client:
        client.execute_command("CF.RESERVE", "cuckoo", 256, "EXPANSION", 2)
        for key in KEYS[:1000]:
            client.execute_command("CF.ADD", "cuckoo", key)
        pieces = list(scan(client, "CF.SCANDUMP", "cuckoo"))
        read = ForeignCuckooFilter.from_chunks(pieces)
        own = ForeignCuckooFilter(256, expansion=2)
        own.update(KEYS[:1000])
        assert own == read
        assert [*own.chunks(), (0, b"")] == pieces
        assert own.discard(KEYS[0])
        for number, piece in own.chunks():
            client.execute_command("CF.LOADCHUNK", "cuckoo-back", number, piece)
        assert client.execute_command("CF.COUNT", "cuckoo-back", KEYS[1]) == own.count(KEYS[1])
        assert list(scan(client, "CF.SCANDUMP", "cuckoo-back"))[:-1] == list(own.chunks())


def test_containers_of_the_service_open_in_this_process(running):
    """Whichever way a filter leaves the service, it is the same class here."""
    own = ForeignScalableFilter(200, 0.01)
    own.update(KEYS)
    with running.client() as client, Client(running.url) as http:
        client.execute_command("BF.RESERVE", "dumped", 0.01, 200)
        client.execute_command("BF.MADD", "dumped", *KEYS)
        dumped = loads(http.filter("dumped").dump())
        assert isinstance(dumped, ForeignScalableFilter)
        assert dumped == own
        own.add("more")
        http.filter("restored").restore(own.to_bytes())
        assert client.execute_command("BF.EXISTS", "restored", "more") == 1
        assert list(scan(client, "BF.SCANDUMP", "restored"))[:-1] == list(own.chunks())
