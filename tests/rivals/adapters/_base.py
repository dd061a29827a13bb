"""Common parts of adapters: a wrapper around our filters, and errors under a package's own names."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any


class Wrapped:
    """Holds one filter of Fullbloom as `inner`; native classes are final, so an adapter contains one."""

    inner: Any

    @classmethod
    def around(cls, inner, **fields):
        """An adapter around a ready filter, without its constructor."""
        instance = cls.__new__(cls)
        instance.inner = inner
        instance.__dict__.update(fields)
        return instance

    def __contains__(self, key):
        return key in self.inner

    def __bool__(self):
        return bool(self.inner)

    def __eq__(self, other):
        return self.inner == other.inner if isinstance(other, Wrapped) else NotImplemented

    __hash__ = None


@contextmanager
def renamed(**names):
    """Raises errors of Fullbloom, given by their names, as a package's own class with the same text."""
    try:
        yield
    except Exception as error:
        for kind in type(error).__mro__:
            if kind.__name__ in names:
                raise names[kind.__name__](str(error)) from error
        raise


def inner_of(other):
    """The filter in an adapter; anything else as it is, for Fullbloom to refuse."""
    return other.inner if isinstance(other, Wrapped) else other
