"""Celery tasks that run once a key, however often they are sent.

::

    from redis import Redis
    from fullbloom.engines.redis import RedisBloomFilter
    from fullbloom.recipes.celery import once

    orders = RedisBloomFilter(Redis(), "orders", capacity=100_000_000, fpr=1e-9)

    @app.task
    @once(orders, key="order")
    def send_receipt(order, address): ...

The key of a run is the task's name and what ``key`` names, so that several tasks may share a filter. A filter
never forgets a run, but takes a new one for done with probability ``fpr``: that task is never run. Where that
must not happen, as with money, a unique key in a database is the tool, and a filter may stand in front of it.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import threading
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from celery import Task, current_task

from fullbloom import registry
from fullbloom.errors import ParameterError, ParameterTypeError
from fullbloom.recipes.dedup import add_new

if TYPE_CHECKING:
    from collections.abc import Callable

    #: Any filter whose ``add`` takes the key alone, or what returns one.
    Seen = Any

__all__ = ["once"]

P = ParamSpec("P")
R = TypeVar("R")
_LOG = logging.getLogger(__name__)
#: Header of a run that was begun, with the id of the task; it goes with its retries.
_BEGUN = "fullbloom-once"
_MARKS = ("before", "after")


def once(
    seen: Seen,
    *,
    key: str | tuple[str, ...] | Callable[..., Any] | None = None,
    mark: Literal["before", "after"] = "before",
    skipped: Any = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of a task's function, below ``@app.task``, that runs it once a key.

    seen: a filter that all workers share: ``fullbloom.engines.redis.RedisBloomFilter``, or one of the service
    (``fullbloom.Client``); or a function that returns it, called at the first run in each process, as clients
    should not be made before a worker forks. A filter in memory does for a worker of one process (pools
    ``solo`` and ``threads``); where each process would have a copy, the task fails with ``ParameterError``.
    key: the name of a parameter, names of several, or a function of the arguments (without a bound task); all
    arguments unasked. skipped: what a run that is skipped returns.

    mark "before" keeps the key when the body begins: it begins **at most once**. One that fails is not run
    when the task is sent again; its own retries (``retry``, ``autoretry_for``) go on as parts of the same
    run. With ``acks_late`` a task whose worker died is delivered again, and skipped.

    mark "after" keeps the key when the body has returned: it succeeds **at least once**, if it is sent
    again until then. One that fails, or whose worker died, runs when it is sent or delivered again; two
    workers that have a key at the same time both run it, and so does a retry whose body had returned when
    ``add`` failed.

    Raises ``ParameterError`` and ``ParameterTypeError`` here for arguments that are none; in the task what
    the filter raises, such as ``KeyTypeError`` for arguments that are no keys, or the error of a server
    that is away: with "before" the body did not begin then, though its key may have been kept. Costs one
    ``add`` a run, with "after" a look-up, too.

    >>> from fullbloom import BloomFilter
    >>> @once(BloomFilter(1000, fpr=1e-9), key="order")
    ... def send_receipt(order, address):
    ...     return f"to {address}"
    >>> send_receipt(17, "ada"), send_receipt(17, address="ada@example.org"), send_receipt(18, "ada")
    ('to ada', None, 'to ada')
    """
    if mark not in _MARKS:
        raise ParameterError(f"mark must be 'before' or 'after', got {mark!r}")
    shared = _Shared(seen)

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        chosen = _chooser(signature, key)

        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            bound = bool(args) and isinstance(args[0], Task)
            task = args[0] if bound else (current_task or None)
            which = (_name_of(task, function), *chosen(args[bound:], kwargs, bound))
            if mark == "before":
                if _begun(task) or shared.add(which):
                    _begin(task)
                    return function(*args, **kwargs)
            elif which not in shared.filter():
                result = function(*args, **kwargs)
                shared.add(which)
                return result
            _LOG.info("%s was run with this key before: skipped", which[0])
            returned: R = skipped
            return returned

        # Celery checks the arguments of a task when it is sent, by what it can see of the function.
        run.__signature__ = signature  # type: ignore[attr-defined]
        return run

    return decorate


class _Shared:
    """The filter, opened in each process if it is to be."""

    def __init__(self, seen: Seen) -> None:
        if not callable(seen) and not hasattr(seen, "add"):
            raise ParameterTypeError(f"seen must be a filter, or a function that returns one, got {seen!r}")
        self._given, self._made = seen, os.getpid()
        self._seen: Any = None
        self._opened = 0
        self._native = False
        self._one = threading.Lock()

    def filter(self) -> Any:
        """Return the filter of this process."""
        here = os.getpid()
        with self._one:
            if self._opened != here:
                self._seen = self._given() if callable(self._given) else self._given
                self._native = registry.row_of(self._seen) is not None
                if self._native and here != self._made:
                    raise ParameterError(
                        "a filter in memory is another one in each process of the worker, so tasks would "
                        "run again; take a RedisBloomFilter, a filter of the service, or --pool=threads"
                    )
                self._opened = here
            return self._seen

    def add(self, key: tuple[Any, ...]) -> bool:
        """Keep a key: True when it was new; of two at a time one hears so."""
        seen = self.filter()
        if not self._native:
            return bool(seen.add(key))
        with self._one:  # filters that keep copies are asked first
            return add_new([key], seen)[0]


def _name_of(task: Task | None, function: Callable[..., Any]) -> str:
    return str(task.name) if task is not None else f"{function.__module__}.{function.__qualname__}"


def _begun(task: Task | None) -> bool:
    """Tell whether this is a retry of a run whose body began."""
    return task is not None and _headers(task).get(_BEGUN) == (task.request.id or 0)


def _begin(task: Task | None) -> None:
    """Have it go with retries, whose headers are those of the request."""
    if task is not None:
        task.request.headers = {**_headers(task), _BEGUN: task.request.id}


def _headers(task: Task) -> dict[str, Any]:
    return task.request.headers or {}


def _chooser(
    signature: inspect.Signature, key: str | tuple[str, ...] | Callable[..., Any] | None
) -> Callable[[tuple[Any, ...], dict[str, Any], bool], tuple[Any, ...]]:
    """Return what makes the key of arguments; ``ParameterError`` for names that it does not have."""
    if callable(key):
        chosen = key
        return lambda args, kwargs, _: (chosen(*args, **kwargs),)
    names = (key,) if isinstance(key, str) else key
    parameters = list(signature.parameters.values())
    known = [parameter.name for parameter in parameters]
    for name in names or ():
        if name not in known:
            shown = ", ".join(known) or "none"
            raise ParameterError(f"key must name parameters of the task ({shown}), got {name!r}")
    # A bound task is the first, and no part of a key.
    without_task = signature.replace(parameters=parameters[1:])

    def values(args: tuple[Any, ...], kwargs: dict[str, Any], bound: bool) -> tuple[Any, ...]:
        given = (without_task if bound else signature).bind(*args, **kwargs)
        given.apply_defaults()
        return tuple(_plain(given.arguments[name]) for name in names or given.arguments)

    return values


def _plain(value: Any) -> Any:
    """Return lists and objects as JSON has them as keys: tuples."""
    if isinstance(value, dict):
        return tuple((_plain(name), _plain(value[name])) for name in sorted(value))
    return tuple(map(_plain, value)) if isinstance(value, (list, tuple)) else value
