"""Connections that break while replies arrive."""

from __future__ import annotations

from fullbloom.engines.redis.transport import sync_transport


def interrupt_replies(monkeypatch, after):
    """Close the connection of the next exchange once ``after`` bytes of replies have arrived."""
    find, left = sync_transport.sync_find_reader, [True]

    def find_interrupted(connection):
        read = find(connection)
        if not left:
            return read
        left.clear()
        due = after

        def read_some(size):
            nonlocal due
            if not due:
                raise ConnectionResetError
            data = read(min(size, due))
            due -= len(data)
            return data

        return read_some

    monkeypatch.setattr(sync_transport, "sync_find_reader", find_interrupted)
