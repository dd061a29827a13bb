"""Starting and stopping the service."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import os
import signal
import socket
from functools import partial
from typing import TYPE_CHECKING

import uvloop

from fullbloom.service import logs
from fullbloom.service.clock import Clock
from fullbloom.service.data_folder import check_tokens
from fullbloom.service.engine import Engine, Fault
from fullbloom.service.failures import StartError
from fullbloom.service.node import Node
from fullbloom.service.redis.handles import create_client
from fullbloom.service.registry import Registry
from fullbloom.service.resources import clamp, limit_allocator, release_memory, warn_if_clamped
from fullbloom.service.settings import split_address

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fullbloom.service.http.server import Server
    from fullbloom.service.settings import Settings

_LOG = logging.getLogger("fullbloom.service")
#: Changes that wait for the disk at once, each in a thread of its own.
_THREADS = 64
#: TCP keepalive of idle clients: after so many seconds, each so many, so often.
_KEEPALIVE = (
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 120),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 20),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
)
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def serve(settings: Settings, *, ready_file: Path | None, show: Callable[[str], None]) -> None:
    """Run until a signal; ``StartError`` if it cannot start. ``show`` prints the greeting."""
    os.umask(0o077)
    limit_allocator()
    logs.configure(settings.log_level)
    requested = settings.limits.connections
    settings = clamp(settings)
    listener = _bind(settings.http, "--http")
    engine = Engine(settings)
    try:
        with Registry(settings.registry_url) as registry:
            node = Node(settings, engine, registry)
            check_tokens(settings, registry)
            _check_open(settings, registry)
            own = ipaddress.ip_address(listener.getsockname()[0]).is_loopback
            if settings.require_token or not own:
                engine.service.require_tokens()
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                # Logged after the start: a start that fails prints one line only.
                warn = partial(warn_if_clamped, requested, settings.limits.connections)
                runner.run(_run(node, listener, ready_file, show, warn))
        engine.service.stop()
    except Fault as fault:
        raise StartError(str(fault)) from None
    finally:
        engine.close()


def check(settings: Settings) -> str:
    """Return a line about valid settings; ``StartError`` for settings with which the service cannot start."""
    for address, option in ((settings.http, "--http"), (settings.resp, "--resp")):
        if address != "none":
            _bind(address, option).close()
    for path in (settings.tls_cert, settings.tls_key):
        if path is not None and not path.is_file():
            raise StartError(f"{path}: no such file")
    create_client(settings)
    return f"the settings are valid: data in {settings.data}, durability {settings.durability}"


def _bind(address: str, option: str) -> socket.socket:
    host, port = split_address(address)
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise StartError(f"{address}: {error.strerror}; give another address with {option}") from None
    for level, name, value in _KEEPALIVE:
        if hasattr(socket, name):
            listener.setsockopt(level, getattr(socket, name), value)
    return listener


def _check_open(settings: Settings, registry: Registry) -> None:
    """Refuse to listen beyond this machine without a token."""
    open_to_all = [
        address
        for address in (settings.http, settings.resp)
        if address != "none" and split_address(address)[0] not in _LOOPBACK
    ]
    if registry.tokens.load():
        return
    remedy = "make one with: fullbloom token create NAME --scope admin"
    if open_to_all:
        raise StartError(
            f"{open_to_all[0]} is reachable from other machines, and there is no token: {remedy}"
        )
    if settings.require_token:
        raise StartError(f"--require-token needs a token, and there is no token: {remedy}")


async def _run(
    node: Node,
    listener: socket.socket,
    ready_file: Path | None,
    show: Callable[[str], None],
    warn: Callable[[], None],
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    settings, loop = node.settings, asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(_THREADS))
    host, port = listener.getsockname()[:2]
    scheme = "https" if settings.tls_cert else "http"
    url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
    resp = await asyncio.to_thread(_listen_resp, node)
    await asyncio.to_thread(node.register, url, resp)
    # Imported here: the libraries reuse the memory that loading the store and the registry needed.
    from fullbloom.service.http.api import build
    from fullbloom.service.http.gateway import Gateway
    from fullbloom.service.http.server import Server
    from fullbloom.service.metrics import Metrics

    metrics = Metrics(node.service, node.shared.describe_open)

    def ready() -> None:
        # Tokens and names of other nodes are known by now; until here clients of either port wait.
        node.service.serve_resp()
        warn()
        if ready_file is not None:
            new = ready_file.with_name(f"{ready_file.name}.new")
            new.write_text(json.dumps({"http": url, "resp": resp, "pid": os.getpid(), "node": node.id}))
            new.replace(ready_file)
        show(_greeting(node, url, resp))
        release_memory()

    server = Server(Gateway(node, build(node, metrics), metrics), settings, ready)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, server)
    tasks = [asyncio.create_task(work) for work in (server.watch(), Clock(node).run())]
    try:
        await server.serve(sockets=[listener])
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(node.service.stop_resp)
        try:  # the clock added those before its last sample
            await asyncio.to_thread(node.shared.flush)
        except Exception:  # noqa: BLE001 - the registry is away: the store is stopped in any case
            _LOG.exception("the last counts of filters in Redis are not recorded")
        _LOG.info("stops")


def _stop(server: Server) -> None:
    server.force_exit = server.should_exit
    server.should_exit = True


def _listen_resp(node: Node) -> str:
    """Listen on the RESP port, where clients wait until `serve_resp`; return its address."""
    address = node.settings.resp
    if address == "none":
        return ""
    host, port = split_address(address)
    tls = None
    if node.settings.tls_cert and node.settings.tls_key:
        tls = (str(node.settings.tls_cert), str(node.settings.tls_key))
    try:
        bound = node.service.listen_resp(
            host, port, tls=tls, keys=node.settings.resp_keys, flush=node.settings.resp_flush
        )
    except Fault as fault:
        raise StartError(f"{address}: {fault}; give another address with --resp") from None
    return f"{bound[0]}:{bound[1]}"


def _greeting(node: Node, url: str, resp: str) -> str:
    lines = [
        f"HTTP {url}  (description: {url}/docs)",
        f"data {node.settings.data}, durability {node.service.durability}",
    ]
    if resp:
        host, _, port = resp.rpartition(":")
        lines.insert(1, f"RESP {resp}")
        lines.append(f"try  redis-cli -h {host} -p {port} BF.ADD seen ada")
    lines.append(f'try  curl {url}/v1/filters -d \'{{"name":"urls","capacity":1000000}}\'')
    lines.append(f'     curl {url}/v1/filters/urls/add -d \'{{"key":"https://example.org"}}\'')
    return "\n".join(lines)
