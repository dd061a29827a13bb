"""Elements that are processes of this machine, connected by sockets."""

from __future__ import annotations

import multiprocessing
import os
import socket
from typing import TYPE_CHECKING, Any

from fullbloom.compose.networked import SocketElement

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.queues import SimpleQueue

TIMEOUT = 400.0


def work(
    rank: int,
    listeners: list[socket.socket],
    secret: bytes,
    job: Callable[..., Any],
    arguments: tuple[Any, ...],
    results: SimpleQueue[Any],
) -> None:
    addresses = [listener.getsockname() for listener in listeners]
    for other, listener in enumerate(listeners):
        if other != rank:
            listener.close()
    try:
        with SocketElement(
            rank, addresses, secret=secret, listener=listeners[rank], timeout=TIMEOUT
        ) as element:
            result = job(element, *arguments)
            element.barrier()
    except BaseException as error:
        results.put((rank, error))
        raise
    results.put((rank, result))


def run_processes(size: int, job: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Run ``job(element, *arguments)`` in ``size`` processes; return the results by rank."""
    # Forked children inherit the listeners, so no port can be taken by another program in between.
    context = multiprocessing.get_context("fork")
    listeners = [socket.create_server(("127.0.0.1", 0), backlog=size) for _ in range(size)]
    results, secret = context.SimpleQueue(), os.urandom(16)
    processes = [
        context.Process(target=work, args=(rank, listeners, secret, job, arguments, results))
        for rank in range(size)
    ]
    for process in processes:
        process.start()
    found = dict(results.get() for _ in processes)
    for process, listener in zip(processes, listeners, strict=True):
        process.join()
        listener.close()
    for result in found.values():
        if isinstance(result, BaseException):
            raise result
    return [found[rank] for rank in range(size)]
