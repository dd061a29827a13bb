"""Channel: two descriptors to a peer, with timeouts."""

from __future__ import annotations

import os
import select
import time

#: A pipe that is ready for writing takes so many bytes without waiting (PIPE_BUF of POSIX).
_AT_ONCE: int = getattr(select, "PIPE_BUF", 512)
#: A long frame may take longer than the wait for its beginning: the slowest accepted peer, bytes/s.
_SLOWEST = 16 << 10
_READ = 1 << 16


class Channel:
    """Reads and writes all bytes of a call within ``timeout`` seconds, plus a second for each 16 KiB.

    ``received`` and ``sent`` count bytes.
    """

    def __init__(self, reading: int, writing: int, *, timeout: float) -> None:
        """Use two descriptors, which the caller closes."""
        self._reading, self._writing, self._timeout = reading, writing, timeout
        self._ahead = b""
        self.received = self.sent = 0

    def read(self, count: int) -> bytes:
        """Return exactly ``count`` bytes."""
        deadline = self._deadline(count)
        pieces, missing = [self._ahead[:count]], count - len(self._ahead[:count])
        self._ahead = self._ahead[count:]
        while missing:
            self._wait([self._reading], [], deadline, "sent nothing")
            piece = os.read(self._reading, _READ)
            if not piece:
                raise EOFError("the peer ended too early")
            self.received += len(piece)
            pieces.append(piece[:missing])
            self._ahead = piece[missing:]
            missing -= len(pieces[-1])
        return b"".join(pieces)

    def write(self, data: bytes) -> None:
        """Write all of ``data``."""
        deadline = self._deadline(len(data))
        with memoryview(data) as view:
            done = 0
            while done < len(view):
                self._wait([], [self._writing], deadline, "read nothing")
                done += os.write(self._writing, view[done : done + _AT_ONCE])
        self.sent += len(data)

    def _deadline(self, count: int) -> float:
        return time.monotonic() + self._timeout + count / _SLOWEST

    def _wait(self, reading: list[int], writing: list[int], deadline: float, what: str) -> None:
        left = deadline - time.monotonic()
        if left <= 0 or not any(select.select(reading, writing, [], left)):
            raise TimeoutError(f"the peer {what} for {self._timeout:g} seconds, or too slowly; see --timeout")
