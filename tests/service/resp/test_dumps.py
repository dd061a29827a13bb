"""Dumps: loaded in pieces over any connections; a forged one is refused by name."""

from __future__ import annotations

import random
import struct

import pytest
import redis
from service.resp.data_plane import Service

HEADER = bytes.fromhex(
    "0100000000000000 01000000 05000000 02000000 9000000000000000 8004000000000000"
    "0100000000000000 7b14ae47e17a743f e9862fb2350e2640 08000000 6400000000000000 00"
)
CUCKOO = struct.pack("<QQQQHHH", 1, 512, 0, 1, 2, 20, 1)
BAD = "received bad data"


def change(header: bytes, **fields: float) -> bytes:
    """A header with other fields: ``layers`` and so on of the whole, others of its only layer."""
    places = {
        "items": (0, "Q"),
        "layers": (8, "I"),
        "options": (12, "I"),
        "growth": (16, "I"),
        "bytes": (20, "Q"),
    }
    places |= {
        "bits": (28, "Q"),
        "size": (36, "Q"),
        "error": (44, "d"),
        "bpe": (52, "d"),
        "hashes": (60, "I"),
    }
    places |= {"entries": (64, "Q"), "n2": (72, "B")}
    out = bytearray(header)
    for name, value in fields.items():
        place, sort = places[name]
        struct.pack_into(f"<{sort}", out, place, value)
    return bytes(out)


LIES = {
    "empty": b"",
    "short": HEADER[:-1],
    "long": HEADER + b"\0",
    "no layers": change(HEADER, layers=0)[:20],
    "many layers": change(HEADER, layers=2**32 - 1),
    "options": change(HEADER, options=21),
    "powers of two": change(HEADER, options=4),
    "32 bits": change(HEADER, options=1),
    "no bytes": change(HEADER, bytes=0, bits=0),
    "bits": change(HEADER, bits=1153),
    "bytes": change(HEADER, bytes=2**61, bits=0),
    "error 0": change(HEADER, error=0.0),
    "error 1": change(HEADER, error=1.0),
    "error negative": change(HEADER, error=-0.5),
    "error nan": change(HEADER, error=float("nan")),
    "bpe nan": change(HEADER, bpe=float("nan")),
    "bpe infinite": change(HEADER, bpe=float("inf"), hashes=2**31),
    "bpe of another error": change(HEADER, bpe=1e9, hashes=693147181),
    "hashes": change(HEADER, hashes=9),
    "hashes 0": change(HEADER, hashes=0),
    "sizes": change(HEADER, size=2),
    "total": change(HEADER, items=2**64 - 1, size=2**64 - 1),
    "n2": change(HEADER, n2=63),
    "1101 layers": change(HEADER, layers=1101, items=1101) + HEADER[20:] * 1100,
}
CUCKOO_LIES = {
    "empty": (b"", "Invalid header"),
    "short": (CUCKOO[:-1], "Invalid header"),
    "long": (CUCKOO + b"\0", "Invalid header"),
    "no buckets": (struct.pack("<QQQQHHH", 1, 0, 0, 1, 2, 20, 1), "Couldn't create filter!"),
    "odd buckets": (struct.pack("<QQQQHHH", 1, 513, 0, 1, 2, 20, 1), "Couldn't create filter!"),
    "many buckets": (struct.pack("<QQQQHHH", 1, 2**63, 0, 1, 2, 20, 1), "Couldn't create filter!"),
    "no tables": (struct.pack("<QQQQHHH", 1, 512, 0, 0, 2, 20, 1), "Couldn't create filter!"),
    "many tables": (struct.pack("<QQQQHHH", 1, 512, 0, 2**64 - 1, 2, 20, 1), "Couldn't create filter!"),
    "growing tables": (struct.pack("<QQQQHHH", 1, 512, 0, 60, 2, 20, 2), "more slots than"),
    "no slots": (struct.pack("<QQQQHHH", 1, 512, 0, 1, 0, 20, 1), "Couldn't create filter!"),
    "many slots": (struct.pack("<QQQQHHH", 1, 512, 0, 1, 256, 20, 1), "Couldn't create filter!"),
    "no iterations": (struct.pack("<QQQQHHH", 1, 512, 0, 1, 2, 0, 1), "Couldn't create filter!"),
    "no growth": (struct.pack("<QQQQHHH", 1, 512, 0, 2, 2, 20, 0), "Couldn't create filter!"),
    "items": (struct.pack("<QQQQHHH", 1025, 512, 0, 1, 2, 20, 1), "Couldn't create filter!"),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_forged_headers_are_refused_by_name(service, lie):
    client = service.client()
    with pytest.raises(redis.ResponseError, match=BAD):
        client.execute_command("BF.LOADCHUNK", "lie", 1, lie)
    assert client.execute_command("EXISTS", "lie") == 0


@pytest.mark.parametrize(("lie", "text"), CUCKOO_LIES.values(), ids=CUCKOO_LIES)
def test_forged_headers_of_cuckoo_filters_are_refused_by_name(service, lie, text):
    client = service.client()
    with pytest.raises(redis.ResponseError, match=text):
        client.execute_command("CF.LOADCHUNK", "lie", 1, lie)
    assert client.execute_command("EXISTS", "lie") == 0


def enlarge(nbytes):
    """The header of an empty filter of so many bytes, for as many entries as these hold."""
    per_entry = struct.unpack_from("<d", HEADER, 52)[0]
    entries = int(8 * nbytes / per_entry)
    return change(HEADER, bytes=nbytes, bits=8 * nbytes, items=0, size=0, entries=entries)


def test_a_header_allocates_no_more_than_its_body():
    one = Service(filter_bytes=1 << 33)
    try:
        client, before = one.client(), one.memory()
        nbytes = 1 << 32
        client.execute_command("BF.LOADCHUNK", "huge", 1, enlarge(nbytes))
        client.execute_command("BF.LOADCHUNK", "huge", 1001, b"\xff" * 1000)
        tables = struct.pack("<QQQQHHH", 0, 1 << 30, 0, 1, 2, 20, 1)
        client.execute_command("CF.LOADCHUNK", "tables", 1, tables)
        client.execute_command("CF.LOADCHUNK", "tables", 1001, b"\x01" * 1000)
        for name, sort in (("huge", "BF"), ("tables", "CF")):
            with pytest.raises(redis.ResponseError, match=r"before byte|invalid offset"):
                client.execute_command(f"{sort}.LOADCHUNK", name, nbytes // 4, b"x")
            client.execute_command(f"{sort}.MEXISTS", name, *range(100))
        assert one.memory() - before < 16 << 20
        with pytest.raises(redis.ResponseError, match="Insufficient memory"):
            client.execute_command("BF.LOADCHUNK", "more", 1, enlarge(3 * nbytes))
    finally:
        one.kill()


def test_pieces_under_wrong_numbers_are_refused_by_name(service):
    client = service.client()
    client.execute_command("BF.LOADCHUNK", "p", 1, HEADER)
    for number, piece, text in [
        (0, b"", BAD),
        (-1, b"x", BAD),
        (-(2**63), b"x", BAD),
        (2**63 - 1, b"x", "no link found"),
        (1, b"xy", BAD),
        (1, b"x", "no link found"),
        (146, b"x", "no link found"),
        (146, b"x" * 145, "Too big"),
        (147, b"x" * 145, "Too big"),
        (145 + 145, b"x" * 145, "no link found"),
        (100, b"x", "before byte"),
    ]:
        with pytest.raises(redis.ResponseError, match=text):
            client.execute_command("BF.LOADCHUNK", "p", number, piece)
    client.execute_command("BF.LOADCHUNK", "p", 145, b"x" * 144)
    client.execute_command("CF.LOADCHUNK", "q", 1, CUCKOO)
    for number, piece in [
        (-1, b"x"),
        (5, b""),
        (1025, b"x" * 1025),
        (2000, b"x"),
        (2**63 - 1, b"x"),
        (100, b"x"),
    ]:
        with pytest.raises(redis.ResponseError, match="Couldn't load chunk!"):
            client.execute_command("CF.LOADCHUNK", "q", number, piece)


@pytest.mark.long
def test_any_bytes_leave_the_service_responsive(service):
    """Headers and pieces with bytes changed, loaded, asked, added to, dumped again."""
    print("seed 14")
    random_ = random.Random(14)
    client = service.client()
    for turn in range(300):
        sort, header = ("BF", HEADER) if turn % 2 else ("CF", CUCKOO)
        lie = bytearray(header)
        for _ in range(random_.choice([0, 1, 1, 2])):
            lie[random_.randrange(len(lie))] = random_.choice(
                [0, 1, 2, 0x7F, 0x80, 0xFF, random_.randrange(256)]
            )
        name = f"any{turn}"
        commands = [
            (f"{sort}.LOADCHUNK", name, 1, bytes(lie)),
            (f"{sort}.LOADCHUNK", name, 101, random_.randbytes(100)),
            (
                f"{sort}.LOADCHUNK",
                name,
                random_.randrange(-5, 2000),
                random_.randbytes(random_.randrange(300)),
            ),
            (f"{sort}.EXISTS", name, "x"),
            (f"{sort}.ADD", name, "y"),
            (f"{sort}.INFO", name),
            (f"{sort}.DEBUG", name),
            (f"{sort}.SCANDUMP", name, 0),
            (f"{sort}.SCANDUMP", name, random_.randrange(-5, 2000)),
            ("CF.DEL", name, "y"),
            ("CF.COMPACT", name),
            ("DEL", name),
        ]
        for command in commands:
            try:
                client.execute_command(*command)
            except redis.ResponseError as error:
                assert "panic" not in str(error)
    assert client.ping()


def pieces(clients, sort: str, name: str):
    """All of a dump, each piece over the next of some connections."""
    at, found = 0, []
    while at or not found:
        client = clients[len(found) % len(clients)]
        at, piece = client.execute_command(f"{sort}.SCANDUMP", name, at)
        found.append((at, piece))
    return found[:-1]


@pytest.mark.parametrize("sort", ["BF", "CF"])
def test_a_dump_over_several_connections_is_of_one_state(service: Service, sort):
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


def test_a_piece_may_be_loaded_before_the_next_is_fetched(service: Service):
    client = service.client()
    client.execute_command("BF.MADD", "loop", *range(1000))
    at = -1
    while at:
        at, piece = client.execute_command("BF.SCANDUMP", "loop", max(at, 0))
        if at:
            client.execute_command("BF.LOADCHUNK", "looped", at, piece)
    assert all(client.execute_command("BF.MEXISTS", "looped", *range(1000)))


def test_invalid_dump_cursors_are_refused_by_name(service: Service):
    client = service.client()
    client.execute_command("BF.ADD", "n", "x")
    client.execute_command("BF.ADD", "other", "x")
    at, _ = client.execute_command("BF.SCANDUMP", "n", 0)
    for name, number in [("n", 1), ("n", 5), ("n", -1), ("n", 2**63 - 1), ("other", at)]:
        with pytest.raises(redis.ResponseError, match="start again with 0"):
            client.execute_command("BF.SCANDUMP", name, number)
    for _ in range(2):  # its end ends it
        at, _ = client.execute_command("BF.SCANDUMP", "n", at)
    assert at == 0


def test_abandoned_dumps_are_limited(start):
    client = start().client()
    client.execute_command("BF.ADD", "left", "x")
    begun = [client.execute_command("BF.SCANDUMP", "left", 0)[0] for _ in range(255)]
    assert len(set(begun)) == 255
    with pytest.raises(redis.ResponseError, match="255 dumps are in progress"):
        client.execute_command("BF.SCANDUMP", "left", 0)
    at, _ = client.execute_command("BF.SCANDUMP", "left", begun[7])
    assert client.execute_command("BF.SCANDUMP", "left", at) == [0, b""]
    assert client.execute_command("BF.SCANDUMP", "left", 0)[0] == begun[7]


def test_loads_in_progress_are_limited_and_invalid_names_are_refused(start):
    service = start()
    client = service.client()
    client.execute_command("BLOOM.CREATE", "s", "KIND", "bloom", "capacity", 1000)
    client.execute_command("BF.ADD", "s", "key")
    (at, head), (then, piece) = pieces([client], "BF", "s")
    for name in ("", "a b", "x" * 129, "x" * (8 << 20)):
        with pytest.raises(redis.ResponseError, match="a name is 1 to 128"):
            client.execute_command("BF.LOADCHUNK", name, at, head)
    with pytest.raises(redis.ResponseError, match=BAD):
        client.execute_command("BF.LOADCHUNK", "long", at, head + b" a=1" * (16 << 10))
    held = int(client.info("memory")["clients_memory"])
    for number in range(255):
        client.execute_command("BF.LOADCHUNK", f"n{number}", at, head)
    assert int(client.info("memory")["clients_memory"]) - held == 255 << 10
    with pytest.raises(redis.ResponseError, match="255 loads are in progress, the maximum"):
        client.execute_command("BF.LOADCHUNK", "more", at, head)
    client.execute_command("BF.LOADCHUNK", "n7", then, piece)
    assert client.execute_command("BF.EXISTS", "n7", "key") == 1
    client.execute_command("BF.LOADCHUNK", "more", at, head)
