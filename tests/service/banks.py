"""A bank of filters in this process, with the methods by which the tables of kinds ask any filter.

Its keys are pairs of an owner and a key.
"""

from __future__ import annotations

from typing import Any

import fullbloom


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
    """Stands for the kind where tests have a `support.Variant`."""

    name = "bank"

    def can(self, _: str) -> bool:
        return False

    def filled(self, pairs: Any, capacity: int, **settings: Any) -> Any:
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
