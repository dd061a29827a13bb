"""Elements that are processes of this machine, connected by sockets."""

from __future__ import annotations

import multiprocessing
import os
import socket
from typing import TYPE_CHECKING, Any

from fullbloom.compose.networked import SocketElement
from fullbloom.errors import PeerError

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT = 400.0


def work(
    rank: int,
    listeners: list[socket.socket],
    secret: bytes,
    job: Callable[..., Any],
    arguments: tuple[Any, ...],
    pipe: Any,
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
        pipe.send(error)
        raise
    pipe.send(result)


def run_processes(size: int, job: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Run ``job(element, *arguments)`` in ``size`` processes; return the results by rank."""
    # Forked children inherit the listeners, so no port can be taken by another program in between.
    context = multiprocessing.get_context("fork")
    listeners = [socket.create_server(("127.0.0.1", 0), backlog=size) for _ in range(size)]
    pipes, secret = [context.Pipe(duplex=False) for _ in range(size)], os.urandom(16)
    processes = [
        context.Process(target=work, args=(rank, listeners, secret, job, arguments, pipes[rank][1]))
        for rank in range(size)
    ]
    found = []
    try:
        for process in processes:
            process.start()
        for _, pipe in pipes:
            pipe.close()
        for rank, (pipe, _) in enumerate(pipes):
            try:
                found.append(pipe.recv())
            except EOFError:  # killed: its end of the pipe closed, so this does not wait forever
                processes[rank].join()
                message = f"rank {rank} ended with status {processes[rank].exitcode}"
                raise ChildProcessError(message) from None
    finally:
        for process, listener in zip(processes, listeners, strict=True):
            if len(found) < size:
                process.kill()
            process.join()
            listener.close()
    errors = [result for result in found if isinstance(result, BaseException)]
    if errors:
        # The errors of the others only report the first one.
        raise next((error for error in errors if not isinstance(error, PeerError)), errors[0])
    return found
