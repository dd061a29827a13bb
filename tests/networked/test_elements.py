"""Guarantee: messages arrive complete and in order; a peer that fails or lies is one error with its rank."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from networked.processes import run_processes

from fullbloom import BloomFilter
from fullbloom.compose.networked import (
    CountingElement,
    LocalElement,
    ProcessingElement,
    SocketElement,
    find_duplicates,
    replicate,
    run_local,
    sockets,
)
from fullbloom.errors import FullbloomError, ParameterError, ParameterTypeError, PeerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

SECRET = b"sixteen secrets!"
#: Seconds that a call may take which must not wait for the timeout of 30 s.
SOON = 10.0


def values(size: int, job: Callable[[Any], Any], transport: str) -> list[Any]:
    if transport == "threads":
        return run_local(size, job)
    outcomes = run_processes(size, job)
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
    return [outcome.value for outcome in outcomes]


@pytest.mark.parametrize("transport", ["threads", "processes"])
@pytest.mark.parametrize("seed", range(3))
def test_messages_arrive_complete_and_in_order(transport: str, seed: int) -> None:
    draw = random.Random(seed)
    size = draw.randint(2, 6)
    lengths = [draw.choice([0, 1, 13, 5000, 3_000_000]) for _ in range(6)]

    def is_whole(element: ProcessingElement) -> bool:
        peers = [rank for rank in range(size) if rank != element.rank]
        # All send megabytes before anyone receives: no buffer of a socket holds that much.
        for peer in peers:
            for number, length in enumerate(lengths):
                element.send(peer, bytes([element.rank, number]) * length)
        right = all(
            element.receive(peer) == bytes([peer, number]) * length
            for peer in peers
            for number, length in enumerate(lengths)
        )
        element.barrier()
        return right

    assert values(size, is_whole, transport) == [True] * size


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_no_element_leaves_a_barrier_before_all_have_entered_it(size: int) -> None:
    entered: list[int] = []
    lock = threading.Lock()

    def job(element: LocalElement) -> int:
        time.sleep(0.02 * element.rank)
        with lock:
            entered.append(element.rank)
        element.barrier()
        return len(entered)

    assert run_local(size, job) == [size] * size


@pytest.mark.long
def test_the_error_that_came_first_is_raised_and_not_a_report_of_it() -> None:
    def job(element: LocalElement) -> None:
        if element.rank == 1:
            raise PeerError(0, "sent nonsense")
        element.receive(1)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(500):
            with pytest.raises(PeerError, match=r"^rank 0 sent nonsense$"):
                run_local(8, job)
    finally:
        sys.setswitchinterval(interval)


def die_at(message: int, victim: int, task: Callable[[ProcessingElement], Any]) -> Callable[[Any], Any]:
    """A job in which the victim is killed when it sends its message of this number."""

    class Dying(CountingElement):
        def send(self, to: int, data: bytes) -> None:
            if self.rank == victim and self.messages_sent == message:
                os.kill(os.getpid(), signal.SIGKILL)
            super().send(to, data)

    return lambda element: task(Dying(element))


def exchange_filters(element: ProcessingElement) -> int:
    own = BloomFilter(50_000, 0.01)
    own.update(range(element.rank * 1000, element.rank * 1000 + 1000))
    return replicate(element, own).num_added


def exchange_keys(element: ProcessingElement) -> int:
    return sum(find_duplicates(element, range(element.rank * 900, element.rank * 900 + 1000)).mask)


@pytest.mark.parametrize("task", [exchange_filters, exchange_keys])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.timed
def test_the_death_of_a_process_is_an_error_with_its_rank_in_all_others(
    task: Callable[[ProcessingElement], Any], seed: int
) -> None:
    draw = random.Random(seed)
    size, victim, message = draw.choice([4, 5]), draw.randrange(4), draw.randrange(2)
    begun = time.monotonic()
    outcomes = run_processes(size, die_at(message, victim, task))
    assert time.monotonic() - begun < SOON
    assert outcomes[victim].exit_code == -signal.SIGKILL
    for rank, outcome in enumerate(outcomes):
        if rank != victim and outcome.value is None:
            assert isinstance(outcome.error, PeerError), (rank, outcome)
            assert outcome.error.rank == victim, (rank, outcome)
    assert sum(isinstance(outcome.error, PeerError) for outcome in outcomes) >= 1


@pytest.mark.parametrize("transport", ["threads", "processes"])
@pytest.mark.timed
def test_an_error_in_one_element_ends_all(transport: str) -> None:
    def job(element: ProcessingElement) -> None:
        if element.rank == 2:
            raise ZeroDivisionError
        # Rank 0 waits for rank 1, which waits for rank 2: the report travels back.
        element.receive(element.rank + 1 if element.rank < 2 else 2)

    begun = time.monotonic()
    if transport == "threads":
        with pytest.raises(ZeroDivisionError):
            run_local(4, job)
    else:
        outcomes = run_processes(4, job)
        assert isinstance(outcomes[2].error, ZeroDivisionError)
        for rank in (0, 1, 3):
            error = outcomes[rank].error
            assert isinstance(error, PeerError)
            assert error.rank == 2
        assert "as rank 1 reports" in str(outcomes[0].error)
    assert time.monotonic() - begun < SOON


@pytest.fixture
def connect() -> Iterator[Callable[..., tuple[SocketElement, SocketElement]]]:
    """Returns two connected elements in this process; the second is free to lie."""
    made: list[SocketElement] = []

    def create(*, timeout: float = 2.0, **options: Any) -> tuple[SocketElement, SocketElement]:
        listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        addresses = [listener.getsockname() for listener in listeners]
        results: dict[int, SocketElement] = {}

        def build(rank: int) -> None:
            results[rank] = SocketElement(
                rank, addresses, secret=SECRET, listener=listeners[rank], timeout=60, **options
            )
            results[rank]._timeout = timeout  # for messages; a busy machine may take longer to connect

        threads = [threading.Thread(target=build, args=(rank,)) for rank in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        made.extend(results.values())
        return results[0], results[1]

    yield create
    for element in made:
        element.close()


def write_raw(liar: SocketElement, data: bytes, *, close: bool = False) -> None:
    connection = liar._peers[0].writer
    connection.sendall(data)
    if close:
        connection.shutdown(socket.SHUT_RDWR)


FRAMES = {
    "closed the connection before a message": (b"", True),
    "closed the connection before a message ": (b"\x01\x00\x00", True),
    "closed the connection in the middle of a message of 100 bytes": (
        b"\x01" + (100).to_bytes(8, "big") + b"x" * 99,
        True,
    ),
    "sent nothing for 2 s, before a message": (b"\x01\x00", False),
    "sent nothing for 2 s, in the middle of a message of 9 bytes": (
        b"\x01" + (9).to_bytes(8, "big") + b"x",
        False,
    ),
    "announced a message of 18446744073709551615 bytes": (b"\x01" + b"\xff" * 8, False),
    "announced a message of 1001 bytes, at most 1000 are allowed": (
        b"\x01" + (1001).to_bytes(8, "big"),
        False,
    ),
    "announced a barrier of 1 bytes": (b"\x02" + (1).to_bytes(8, "big"), False),
    "announced a failure of 5 bytes": (b"\x03" + (5).to_bytes(8, "big"), False),
    "sent an invalid report of a failure": (b"\x03" + (4).to_bytes(8, "big") + b"\xff" * 4, False),
    "stopped before the end of the exchange": (b"\x03" + (4).to_bytes(8, "big") + b"\0\0\0\0", False),
    "sent a frame of the unknown kind 77": (b"\x4d" + bytes(8), False),
    "sent a barrier where a message was due": (b"\x02" + bytes(8), False),
}


@pytest.mark.long
@pytest.mark.parametrize("message", FRAMES)
@pytest.mark.timed
def test_an_invalid_frame_is_one_error_with_the_rank(
    message: str, connect: Callable[..., tuple[SocketElement, SocketElement]]
) -> None:
    data, close = FRAMES[message]
    honest, liar = connect(max_message=1000)
    write_raw(liar, data, close=close)
    begun = time.monotonic()
    with pytest.raises(PeerError, match=f"^rank 1 {message.strip()}") as caught:
        honest.receive(1)
    assert time.monotonic() - begun < SOON
    assert caught.value.rank == 1
    assert isinstance(caught.value, ConnectionError)
    assert isinstance(caught.value, FullbloomError)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.rank) == (str(caught.value), 1)


@pytest.mark.timed
def test_a_peer_that_sends_a_byte_now_and_then_cannot_stretch_the_timeout(
    connect: Callable[..., tuple[SocketElement, SocketElement]],
) -> None:
    honest, liar = connect()
    done = threading.Event()

    def trickle() -> None:
        write_raw(liar, b"\x01" + (1000).to_bytes(8, "big"))
        while not done.wait(0.1):
            write_raw(liar, b"x")

    thread = threading.Thread(target=trickle)
    thread.start()
    begun = time.monotonic()
    with pytest.raises(PeerError, match="sent nothing"):
        honest.receive(1)
    assert time.monotonic() - begun < SOON
    done.set()
    thread.join()


def test_nothing_is_read_after_a_message_that_was_cut_short(
    connect: Callable[..., tuple[SocketElement, SocketElement]],
) -> None:
    honest, liar = connect()
    write_raw(liar, b"\x01" + (100).to_bytes(8, "big") + b"x" * 50)
    with pytest.raises(PeerError, match="in the middle of a message of 100 bytes"):
        honest.receive(1)
    # The rest of the message has the form of a frame.
    write_raw(liar, b"\x01" + (2).to_bytes(8, "big") + b"hi")
    with pytest.raises(PeerError, match="rank 1 sent an incomplete or invalid message before"):
        honest.receive(1)


def test_the_report_of_a_failure_arrives_past_megabytes_that_nobody_reads(
    connect: Callable[..., tuple[SocketElement, SocketElement]],
) -> None:
    failed, peer = connect(timeout=20)
    peer.send(0, bytes(64 << 20))
    failed.abort()
    peer.send(0, b"")
    time.sleep(0.2)
    with pytest.raises(PeerError, match="rank 0 stopped before the end"):
        peer.receive(0)
    peer.close()


def test_the_report_of_a_failure_is_read_after_the_connection_is_lost(connect: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(sockets, "_LINGER_SECONDS", 0.1)  # the peer is paused for longer, and sends first
    failed, peer = connect(timeout=20)
    failed.send(1, b"before")
    failed.abort()
    with pytest.raises(PeerError, match="cannot be reached any more"):
        while True:
            peer.send(0, b"")
    assert peer.receive(0) == b"before"
    with pytest.raises(PeerError, match="rank 0 stopped before the end"):
        peer.send(0, b"")
    sender, _ = connect()
    sender._peers[1].broken.append("timed out")  # as after a message that nobody read: no report will come
    begin = time.monotonic()
    with pytest.raises(PeerError, match="any more: timed out"):
        sender.send(1, b"")
    assert time.monotonic() - begin < SOON


def test_an_error_after_close_is_raised_as_it_is() -> None:
    first, _ = LocalElement.group(2)
    with pytest.raises(ZeroDivisionError), first:
        first.close()
        raise ZeroDivisionError


def test_a_length_that_is_only_stated_takes_no_memory(
    connect: Callable[..., tuple[SocketElement, SocketElement]],
) -> None:
    honest, liar = connect(max_message=1 << 62)
    write_raw(liar, b"\x01" + (1 << 61).to_bytes(8, "big") + b"x", close=True)
    with pytest.raises(PeerError, match="in the middle of a message"):
        honest.receive(1)


def test_strangers_are_turned_away_and_elements_still_connect() -> None:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    addresses = [listener.getsockname() for listener in listeners]
    strangers = [socket.create_connection(addresses[0]) for _ in range(3)]
    strangers[0].sendall(b"GET / HTTP/1.1\r\n\r\n" + b"x" * 100)
    strangers[1].close()
    errors: list[PeerError] = []

    def impostor() -> None:
        try:
            SocketElement(
                1, addresses, secret=b"another secret!!", listener=socket.create_server(("127.0.0.1", 0))
            )
        except PeerError as error:
            errors.append(error)

    def build(rank: int) -> None:
        elements[rank] = SocketElement(rank, addresses, secret=SECRET, listener=listeners[rank], timeout=20)

    elements: dict[int, SocketElement] = {}
    threads = [threading.Thread(target=build, args=(0,)), threading.Thread(target=impostor)]
    for thread in threads:
        thread.start()
    threads[1].join()
    threads.append(threading.Thread(target=build, args=(1,)))
    threads[-1].start()
    for thread in threads:
        thread.join()
    assert [error.rank for error in errors] == [0]
    assert str(errors[0]) == "rank 0 has another secret, or is not an element"
    elements[1].send(0, b"hello")
    assert elements[0].receive(1) == b"hello"
    for connection in strangers:
        connection.close()
    for element in elements.values():
        element.close()
        element.close()
    with pytest.raises(ValueError, match="closed"):
        elements[0].send(1, b"")


@pytest.mark.parametrize("trickle", [False, True])
@pytest.mark.timed
def test_silent_strangers_do_not_delay_the_elements(trickle: bool) -> None:
    """Each had two seconds, one after the other: fifteen of them took all the time that elements have."""
    listeners = [socket.create_server(("127.0.0.1", 0), backlog=500) for _ in range(3)]
    addresses = [listener.getsockname() for listener in listeners]
    # More than the handshakes that go on at once.
    strangers = [socket.create_connection(address) for address in addresses for _ in range(100)]
    if trickle:
        for stranger in strangers:
            stranger.sendall(b"F")
    begun = time.monotonic()
    with ThreadPoolExecutor(3) as pool:
        elements = list(
            pool.map(
                lambda rank: SocketElement(
                    rank, addresses, secret=SECRET, listener=listeners[rank], timeout=SOON
                ),
                range(3),
            )
        )
    assert time.monotonic() - begun < SOON / 2
    elements[2].send(0, b"hello")
    assert elements[0].receive(2) == b"hello"
    for connection in (*strangers, *elements):
        connection.close()


@pytest.mark.timed
def test_strangers_are_not_taken_for_a_peer_that_never_came() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        addresses = [listener.getsockname(), ("127.0.0.1", 0)]
        strangers = [socket.create_connection(addresses[0]) for _ in range(3)]
        for stranger in strangers:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" + b"x" * 100)
        reason = r"rank 1 did not connect within 2 s; 3 connections of strangers were refused"
        with pytest.raises(PeerError, match=reason):
            SocketElement(0, addresses, secret=SECRET, listener=listener, timeout=2)
        for stranger in strangers:
            stranger.close()


def test_a_peer_that_never_comes_is_an_error_with_its_rank() -> None:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    addresses = [listener.getsockname() for listener in listeners]
    with pytest.raises(PeerError, match=r"rank 1 did not connect within 0\.2 s"):
        SocketElement(0, addresses, secret=SECRET, listener=listeners[0], timeout=0.2)
    with socket.socket() as deaf:  # its port is taken, so that no other program listens there
        deaf.bind(("127.0.0.1", 0))
        with pytest.raises(PeerError, match="rank 0 cannot be reached"):
            SocketElement(
                1, [deaf.getsockname(), addresses[1]], secret=SECRET, listener=listeners[1], timeout=0.2
            )
    # A server that accepts and says nothing.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        addresses = [silent.getsockname(), ("127.0.0.1", 0)]
        with pytest.raises(PeerError, match="rank 0 did not complete the handshake"):
            SocketElement(1, addresses, secret=SECRET, timeout=0.2)


def test_elements_meet_over_the_sixth_version_of_the_protocol() -> None:
    with contextlib.ExitStack() as stack:
        try:
            # A socket that does not listen keeps the port for elements, which may share it (SO_REUSEADDR).
            kept = stack.enter_context(socket.socket(socket.AF_INET6))
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            kept.bind(("::1", 0))
        except OSError as error:
            pytest.skip(f"this system has no IPv6 loopback: {error}")
        addresses = [("::1", kept.getsockname()[1]), ("::1", 0)]
        pool = stack.enter_context(ThreadPoolExecutor(2))
        elements = list(
            pool.map(lambda rank: SocketElement(rank, addresses, secret=SECRET, timeout=60), range(2))
        )
    elements[0].send(1, b"hello")
    assert elements[1].receive(0) == b"hello"
    for element in elements:
        element.close()


def test_invalid_arguments_are_refused() -> None:
    first, second = LocalElement.group(2, timeout=0.1)
    for rank in (0, 2, -1):
        with pytest.raises(ParameterError, match="rank of another element"):
            first.send(rank, b"")
        with pytest.raises(ParameterError, match="rank of another element"):
            first.receive(rank)
    for message in (5, "text", None):
        with pytest.raises(ParameterTypeError, match="message must be bytes"):
            first.send(1, message)  # type: ignore[arg-type]
    for culprit in (-1, 2):
        with pytest.raises(ParameterError, match="culprit must be a rank"):
            first.abort(culprit)
    with pytest.raises(ParameterTypeError, match="to must be an int"):
        first.send("1", b"")  # type: ignore[arg-type]
    with pytest.raises(PeerError, match=r"rank 1 sent nothing for 0.1 s"):
        first.receive(1)
    with pytest.raises(ParameterError, match="size"):
        LocalElement.group(0)
    second.close()
    with pytest.raises(ValueError, match="closed"):
        second.send(0, b"")
    with pytest.raises(PeerError, match="rank 1 stopped"):
        first.receive(1)
    nowhere = [("127.0.0.1", 0)]
    with pytest.raises(ParameterError, match="secret must have at least 16 bytes"):
        SocketElement(0, nowhere, secret=b"short")
    with pytest.raises(ParameterTypeError, match="secret must be bytes"):
        SocketElement(0, nowhere, secret="sixteen letters!")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="timeout"):
        SocketElement(0, nowhere, secret=SECRET, timeout=0)
    with pytest.raises(ParameterError, match="max_message"):
        SocketElement(0, nowhere, secret=SECRET, max_message=0)
    with pytest.raises(ParameterError, match="got rank 1 of 1"):
        SocketElement(1, nowhere, secret=SECRET)
    assert isinstance(first, ProcessingElement)
    assert isinstance(CountingElement(first), ProcessingElement)
    with SocketElement(0, nowhere, secret=SECRET, max_message=10) as alone:
        alone.barrier()
        with pytest.raises(ParameterError, match="at most 10 bytes, got 11"):
            alone.send(1, bytes(11))
