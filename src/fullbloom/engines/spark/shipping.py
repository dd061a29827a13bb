"""Functions that Spark sends to workers; each checks the worker's installation before it runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

import fullbloom
from fullbloom import errors
from fullbloom.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORKER = "fullbloom.engines.spark.worker"
#: What the text of an executor's exception repeats of ours.
_OURS = re.compile(r"(?:fullbloom\.errors\.(\w+)|RuntimeError): (.*)")
_GUARD = "this Spark worker cannot run fullbloom"


def ship(name: str, *arguments: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function for executors that calls ``worker.NAME(batches, *arguments)``.

    Spark pickles the inner function by value, so it runs even on a worker without this package, and reports
    that in one sentence. ``arguments`` must consist of types that such a worker can unpickle.
    """
    version, module, guard = fullbloom.__version__, WORKER, _GUARD

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib
        import platform

        try:
            found = getattr(importlib.import_module("fullbloom"), "__version__", "of unknown version")
        except ImportError:
            found = None
        if found != version:
            state = "is not installed there" if found is None else f"is {found} there"
            raise RuntimeError(
                f"{guard} on {platform.node()}: it {state}, and {version} on the driver; "
                f"install it on every worker: pip install 'fullbloom[spark]=={version}'"
            )
        call: Callable[..., Iterator[Any]] = getattr(importlib.import_module(module), name)
        return call(batches, *arguments)

    return run


class TranslateErrors:
    """Turns an executor's exception of ours into that exception on the driver; others are Spark's own.

    Put it around an action, such as ``count()`` or ``collect()``, of a query with `contains`, `bloom_join`,
    `find_duplicates` or `deduplicate`: these run when the action does. Functions that run at once do so by
    themselves.

    >>> with TranslateErrors():                                             # doctest: +SKIP
    ...     visits.where(contains("customer", customers)).count()
    """

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # PySpark translates most exceptions of the JVM, but not that of several stages which failed.
        if isinstance(error, PySparkException | Py4JError) and (found := find_cause(str(error))) is not None:
            raise found from error


def find_cause(text: str) -> Exception | None:
    """Return the exception of ours that the text of an executor's exception repeats; None if it has none."""
    for name, message in _OURS.findall(text):
        kind = getattr(errors, name, None) if name else None
        if isinstance(kind, type) and issubclass(kind, errors.FullbloomError):
            return kind(message)
        if not name and _GUARD in message:
            return EngineError(message)
    return None
