"""Celery tasks that run once per key, however often they are sent.

::

    from redis import Redis
    from fullbloom.engines.redis import RedisBloomFilter
    from fullbloom.recipes.celery import once

    orders = RedisBloomFilter(Redis(), "orders", capacity=100_000_000, fpr=1e-9)

    @app.task
    @once(orders, key="order")
    def send_receipt(order, address): ...

The key of a run is the task's name and the arguments that ``key`` names, so several tasks can share a filter.
A filter never forgets a run, but with probability ``fpr`` it treats a new run as done, and that task never
runs. If that must not happen, as with payments, use a unique key in a database, with a filter in front of it.
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

    #: Any filter whose ``add`` takes the key alone, or a function that returns one.
    Seen = Any

__all__ = ["once"]

P = ParamSpec("P")
R = TypeVar("R")
_LOG = logging.getLogger(__name__)
#: Header of a run that began, with the id of the task; retries inherit it.
_RUN_HEADER = "fullbloom-once"
_MARKS = ("before", "after")


def once(
    seen: Seen,
    *,
    key: str | tuple[str, ...] | Callable[..., Any] | None = None,
    mark: Literal["before", "after"] = "before",
    skipped: Any = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that runs a task's function once per key; put it below ``@app.task``.

    seen: a filter that all workers share: ``fullbloom.engines.redis.RedisBloomFilter``, or a filter of the
    service (``fullbloom.Client``); or a function that returns it, called at the first run in each process,
    since clients should not be created before a worker forks. A filter in memory works for a worker with one
    process (pools ``solo`` and ``threads``); if each process would have a copy, the task fails with
    ``ParameterError``. key: the name of a parameter, a tuple of names, or a function of the arguments
    (without a bound task); by default all arguments. skipped: the return value of a skipped run.

    mark "before" records the key when the body begins: it begins **at most once**. A run that fails is not
    repeated when the task is sent again; its own retries (``retry``, ``autoretry_for``) continue the same
    run. With ``acks_late`` a task whose worker died is delivered again, and skipped.

    mark "after" records the key when the body has returned: it succeeds **at least once**, if it is sent
    again until then. A task that failed, or whose worker died, runs when it is sent or delivered again. Two
    workers that get the same key at the same time both run it, and so does a retry after a failed ``add``.

    Raises ``ParameterError`` and ``ParameterTypeError`` for invalid arguments. The task raises the errors of
    the filter, such as ``KeyTypeError`` for arguments that cannot be keys, or the error of an unreachable
    server; with "before" the body has not begun then, but its key may be recorded. Costs one ``add`` per run,
    with "after" also one lookup.

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
        make_key = _key_function(signature, key)

        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            bound = bool(args) and isinstance(args[0], Task)
            task = args[0] if bound else (current_task or None)
            run_key = (_task_name(task, function), *make_key(args[bound:], kwargs, bound))
            if mark == "before":
                if _is_retry(task) or shared.add(run_key):
                    _mark_begun(task)
                    return function(*args, **kwargs)
            elif run_key not in shared.filter():
                result = function(*args, **kwargs)
                shared.add(run_key)
                return result
            _LOG.info("skipped %s: it ran with this key before", run_key[0])
            returned: R = skipped
            return returned

        # Celery checks the arguments of a task against this signature when it is sent.
        run.__signature__ = signature  # type: ignore[attr-defined]
        return run

    return decorate


class _Shared:
    """The filter of the workers, opened once per process if `seen` is a function."""

    def __init__(self, seen: Seen) -> None:
        if not callable(seen) and not hasattr(seen, "add"):
            raise ParameterTypeError(f"seen must be a filter, or a function that returns one, got {seen!r}")
        self._source, self._parent = seen, os.getpid()
        self._seen: Any = None
        self._process = 0
        self._native = False
        self._lock = threading.Lock()

    def filter(self) -> Any:
        """Return the filter of this process."""
        process = os.getpid()
        with self._lock:
            if self._process != process:
                self._seen = self._source() if callable(self._source) else self._source
                self._native = registry.find_row(self._seen) is not None
                if self._native and process != self._parent:
                    raise ParameterError(
                        "each process of the worker has its own copy of a filter in memory, so tasks would "
                        "run again; use a RedisBloomFilter, a filter of the service, or --pool=threads"
                    )
                self._process = process
            return self._seen

    def add(self, key: tuple[Any, ...]) -> bool:
        """Add a key; return True if it was new, to exactly one of several concurrent callers."""
        seen = self.filter()
        if not self._native:
            return bool(seen.add(key))
        with self._lock:  # add_new looks up the key first if the filter counts duplicates
            return add_new([key], seen)[0]


def _task_name(task: Task | None, function: Callable[..., Any]) -> str:
    return str(task.name) if task is not None else f"{function.__module__}.{function.__qualname__}"


def _is_retry(task: Task | None) -> bool:
    """Return whether this is a retry of a run whose body began."""
    return task is not None and _headers(task).get(_RUN_HEADER) == (task.request.id or 0)


def _mark_begun(task: Task | None) -> None:
    """Set the header that retries inherit from the request."""
    if task is not None:
        task.request.headers = {**_headers(task), _RUN_HEADER: task.request.id}


def _headers(task: Task) -> dict[str, Any]:
    return task.request.headers or {}


def _key_function(
    signature: inspect.Signature, key: str | tuple[str, ...] | Callable[..., Any] | None
) -> Callable[[tuple[Any, ...], dict[str, Any], bool], tuple[Any, ...]]:
    """Return a function from arguments to a key; raise ``ParameterError`` for unknown parameter names."""
    if callable(key):
        select = key
        return lambda args, kwargs, _: (select(*args, **kwargs),)
    names = (key,) if isinstance(key, str) else key
    parameters = list(signature.parameters.values())
    known = [parameter.name for parameter in parameters]
    for name in names or ():
        if name not in known:
            shown = ", ".join(known) or "none"
            raise ParameterError(f"key must name parameters of the task ({shown}), got {name!r}")
    # A bound task is the first argument and not part of the key.
    without_task = signature.replace(parameters=parameters[1:])

    def values(args: tuple[Any, ...], kwargs: dict[str, Any], bound: bool) -> tuple[Any, ...]:
        call = (without_task if bound else signature).bind(*args, **kwargs)
        call.apply_defaults()
        return tuple(_as_key(call.arguments[name]) for name in names or call.arguments)

    return values


def _as_key(value: Any) -> Any:
    """Convert JSON lists and objects to tuples, which can be keys."""
    if isinstance(value, dict):
        return tuple((_as_key(name), _as_key(value[name])) for name in sorted(value))
    return tuple(map(_as_key, value)) if isinstance(value, (list, tuple)) else value
