"""A proxy that cuts the connection at a command, before the server has it or before its answer comes back."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

#: What clients send of themselves when they connect.
_GREETINGS = {b"HELLO", b"CLIENT", b"SELECT", b"AUTH"}


class CuttingProxy:
    """Passes everything on, and counts commands."""

    def __init__(self, port: int):
        self.cut, self.after, self.names = None, False, []
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.target, self.open, self.one = port, [], threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def start(self, cut: int | None, *, after: bool = False) -> None:
        """Count from 1 again, and cut once at that command: before or after the server executes it."""
        with self.one:
            self.cut, self.after, self.names = cut, after, []

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self.listening.accept()
                there = socket.create_connection(("127.0.0.1", self.target))
                for end in (here, there):  # else a small reply waits 40 ms for the acknowledgement of another
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.open += [here, there]
                doomed = threading.Event()
                threading.Thread(target=self._out, args=(here, there, doomed), daemon=True).start()
                threading.Thread(target=self._back, args=(here, there, doomed), daemon=True).start()

    def _out(self, here: socket.socket, there: socket.socket, doomed: threading.Event) -> None:
        with suppress(OSError, ValueError), here.makefile("rb") as commands:
            while line := commands.readline():
                words, raw = [], [line]
                for _ in range(int(line[1:])):
                    head = commands.readline()
                    body = commands.read(int(head[1:]) + 2)
                    words.append(body[:-2])
                    raw += [head, body]
                with self.one:
                    if words[0].upper() not in _GREETINGS:
                        self.names.append(words[0].upper())
                        if len(self.names) == self.cut:
                            self.cut = None
                            if not self.after:
                                break
                            doomed.set()
                there.sendall(b"".join(raw))
        if not doomed.is_set():
            _close(here, there)

    @staticmethod
    def _back(here: socket.socket, there: socket.socket, doomed: threading.Event) -> None:
        with suppress(OSError):
            while data := there.recv(65536):
                if doomed.is_set():
                    break
                here.sendall(data)
        _close(here, there)

    def close(self) -> None:
        """Ends it."""
        _close(self.listening, *self.open)


def _close(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
