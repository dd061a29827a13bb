"""Broadcasts of filters: the same filter is sent once, and its file goes after the last query of it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Any

#: Filters that are kept to be sent again without a second broadcast.
_MOST_KEPT = 4
_kept: OrderedDict[tuple[str, str], Any] = OrderedDict()
#: A weak reference in the JVM to each broadcast that is not kept, and the file of the driver that it reads.
_left: list[tuple[Any, Path]] = []
_lock = threading.Lock()


def broadcast(context: Any, digest: str, data: bytes) -> Any:
    """Return the broadcast of a filter's bytes, which have this digest.

    Spark's cleaner removes the blocks of a broadcast when no plan refers to it and the JVM has collected its
    garbage, but not the file that PySpark wrote. The next call removes that.
    """
    key = context.applicationId, digest
    with _lock:
        for other in [one for one in _kept if one[0] != context.applicationId]:
            del _kept[other]  # its context has stopped, and has removed its files
        _remove_files(context)
        found = _kept.pop(key, None)
        _kept[key] = found if found is not None else context.broadcast(data)
        while len(_kept) > _MOST_KEPT:
            _leave(context, _kept.popitem(last=False)[1])
        return _kept[key]


def _leave(context: Any, sent: Any) -> None:
    """Leave a broadcast to Spark's cleaner."""
    path = getattr(sent, "_path", None)
    if path is not None:
        # A reference in Python would keep the broadcast in the JVM.
        weak = context._jvm.java.lang.ref.WeakReference(sent._jbroadcast)  # noqa: SLF001
        _left.append((weak, Path(path)))


def _remove_files(context: Any) -> None:
    left = []
    for weak, path in _left:
        if weak._gateway_client is not context._gateway._gateway_client:  # noqa: SLF001
            continue  # the JVM has ended
        if weak.get() is not None:
            left.append((weak, path))
            continue
        with suppress(OSError):
            path.unlink(missing_ok=True)
    _left[:] = left
