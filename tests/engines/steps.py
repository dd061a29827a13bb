"""Generators of requests that a test runs one step at a time, so that other clients act in between."""

from __future__ import annotations

from fullbloom.engines.redis.protocol import Call, Sleep
from fullbloom.engines.redis.transport.sync_transport import Transport


class Run:
    """An operation of a client that continues when the test says so."""

    def __init__(self, client, name, steps):
        self.transport, self.steps, self.value, self.over = Transport(client, name), steps, None, False
        self.requests = next(steps)

    def step(self):
        """Send the next requests."""
        replies = [
            None if isinstance(request, Sleep) else self.transport._answer(request)
            for request in self.requests
        ]
        try:
            self.requests = self.steps.send(replies)
        except StopIteration as stop:
            self.value, self.over = stop.value, True

    def run_until(self, is_next):
        """Continue until one of the next requests is a call for which ``is_next(key, words)`` is true."""
        while not any(isinstance(one, Call) and is_next(one.key, one.words) for one in self.requests):
            assert not self.over
            self.step()

    def finish(self, most=10_000):
        """Continue to the end, and return the result."""
        for _ in range(most):
            if self.over:
                return self.value
            self.step()
        raise AssertionError("it does not end")
