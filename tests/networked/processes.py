"""Elements in real processes, which may die: what each returned, raised, or its exit code."""

from __future__ import annotations

import multiprocessing
import os
import socket
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from fullbloom.compose.networked import SocketElement

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds after which a test gives up; all of them take a few.
LIMIT = 60.0


class Outcome(NamedTuple):
    """How a process ended."""

    value: Any
    error: BaseException | None
    exit_code: int | None


def work(
    rank: int,
    listeners: list[socket.socket],
    secret: bytes,
    timeout: float,
    job: Callable[[SocketElement], Any],
    pipe: Any,
) -> None:
    """Run the job in a child; send its result or error through the pipe."""
    addresses = [listener.getsockname() for listener in listeners]
    for other, listener in enumerate(listeners):
        if other != rank:
            listener.close()
    try:
        with SocketElement(
            rank, addresses, secret=secret, listener=listeners[rank], timeout=timeout
        ) as element:
            value = job(element)
    except Exception as error:  # noqa: BLE001 - the parent compares it
        pipe.send((None, error))
    else:
        pipe.send((value, None))


def run_processes(
    size: int, job: Callable[[SocketElement], Any], *, timeout: float = LIMIT / 2
) -> list[Outcome]:
    """Run ``job(element)`` in ``size`` forked processes; return how each ended, by rank."""
    context = multiprocessing.get_context("fork")
    listeners = [socket.create_server(("127.0.0.1", 0), backlog=size) for _ in range(size)]
    pipes = [context.Pipe(duplex=False) for _ in range(size)]
    secret, deadline = os.urandom(16), time.monotonic() + LIMIT
    processes = [
        context.Process(target=work, args=(rank, listeners, secret, timeout, job, pipes[rank][1]))
        for rank in range(size)
    ]
    outcomes = []
    try:
        for process in processes:
            process.start()
        for _, pipe in pipes:
            pipe.close()
        for process, (pipe, _) in zip(processes, pipes, strict=True):
            value = error = None
            try:
                assert pipe.poll(max(0.0, deadline - time.monotonic())), "a process hangs"
                value, error = pipe.recv()
            except EOFError:
                pass  # it died without a word
            process.join(max(0.0, deadline - time.monotonic()))
            outcomes.append(Outcome(value, error, process.exitcode))
    finally:
        for process, listener in zip(processes, listeners, strict=True):
            process.kill()
            listener.close()
    return outcomes
