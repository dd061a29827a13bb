"""Banks of filters: of a service, and in this process, where tables of kinds ask them as any filter.

Their keys are pairs of an owner and a key.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

import fullbloom

_NUMBERS = count()


class Bank:
    """A `fullbloom.FilterBank` whose methods take pairs."""

    def __init__(self, bank: Any):
        self.bank = bank

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("contains", "add")):
            raise AttributeError(name)
        return getattr(self.bank, name)

    def add(self, pair: Any) -> bool:
        owner, key = pair
        return bool(self.bank.add(owner, key))

    def add_hashed(self, pair: Any) -> bool:
        return bool(self.bank.add_hashed([pair[0]], [pair[1]])[0])

    def contains_many(self, pairs: Any) -> list[bool]:
        return [tuple(pair) in self.bank for pair in pairs]


class BankKind:
    """The kind, for tests that take a `support.Variant`."""

    name = "bank"

    def can(self, _: str) -> bool:
        return False

    def build_from(self, pairs: Any, capacity: int, **settings: Any) -> Any:
        del capacity  # owners with few keys each, one of which grows
        bank = fullbloom.FilterBank(4, **settings)
        for owner, key in pairs:
            bank.add(owner, key)
        return bank

    def load(self, data: bytes) -> Bank:
        return Bank(fullbloom.loads(data))


def pairs(keys: list[Any]) -> list[list[Any]]:
    """Return a pair for each key: the first ten are of one owner, the others of seven."""
    return [["heavy" if at < 10 else f"owner {at % 7}", key] for at, key in enumerate(keys)]


def create(server: Any, **settings: Any) -> str:
    """Create a bank of a service, of fifty keys per owner, and return its path."""
    name = f"bank.{next(_NUMBERS)}"
    body = {"name": name, "kind": "bank", "capacity": 50, "seed": 7, **settings}
    answer = server.http.post("/v1/filters", json=body)
    assert answer.status_code == 201, answer.text
    return f"/v1/filters/{name}"


def post(server: Any, path: str, **body: Any) -> Any:
    """Return the JSON of the response to a request that succeeds."""
    answer = server.http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def load_dump(server: Any, path: str) -> bytes:
    """Return the file of a filter."""
    data: bytes = server.http.get(f"{path}/dump").content
    return data


def own(pairs: Any, **settings: Any) -> Any:
    """Return the bank of this process with the parameters of `create`."""
    bank = fullbloom.FilterBank(50, seed=7, **settings)
    for owner, key in pairs:
        bank.add(owner, key)
    return bank


def connect(service: Any, **options: Any) -> Any:
    """Return a client of the RESP port."""
    redis = pytest.importorskip("redis", reason="redis-py is not installed")
    host, _, port = service.resp.rpartition(":")
    client = redis.Redis(host, int(port), socket_timeout=60, protocol=2, **options)
    client.response_callbacks.clear()
    return client
