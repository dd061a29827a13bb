"""From what a server refuses to one clear error each; no message repeats what was sent."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import redis.exceptions as redis_errors

from fullbloom.engines.redis.protocol.requests import number, unexpected
from fullbloom.errors import (
    EngineError,
    EngineFull,
    EngineNameTaken,
    EngineRefused,
    EngineTimeout,
    EngineUnavailable,
    FilterLost,
    FilterRolledBack,
    FullbloomError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from fullbloom.engines.redis.protocol.requests import Acks

_MOVED = (
    "a node of a cluster says that another one has the key; give RedisBloomFilter a client for clusters, or "
    "try again if it is one: slots are moving"
)
_SAID: dict[str, tuple[Callable[[str], EngineError], str]] = {
    "OOM": (
        EngineFull,
        "the server is at its limit of memory (maxmemory) and refused the change; raise it, or make room",
    ),
    "READONLY": (EngineRefused, "the server is a replica and takes no changes; connect to its master"),
    "WRONGTYPE": (
        EngineNameTaken,
        "a key of its name holds something else than this filter; choose another name, or delete that key",
    ),
    "NOAUTH": (EngineRefused, "the server asks for a password; give it to the client"),
    "WRONGPASS": (EngineRefused, "the server does not know this user and password"),
    "NOPERM": (EngineRefused, "the server does not allow this user the commands or keys of the filter"),
    "LOADING": (EngineUnavailable, "the server is loading its data; try again"),
    "BUSY": (EngineUnavailable, "the server is busy with a script; try again"),
    "MASTERDOWN": (EngineUnavailable, "the server's master is down, and it does not answer alone"),
    "CLUSTERDOWN": (EngineUnavailable, "the cluster is down; try again once its slots are served"),
    "TRYAGAIN": (EngineUnavailable, "the cluster is moving the filter's keys; try again"),
    "MOVED": (EngineUnavailable, _MOVED),
    "ASK": (EngineUnavailable, _MOVED),
    "MISCONF": (EngineRefused, "the server cannot save to its disk and takes no changes"),
    "NOREPLICAS": (EngineRefused, "the server has too few replicas and takes no changes"),
    "EXECABORT": (EngineError, "the server gave up the transaction"),
}
#: What redis-py raises: its errors of clusters are no RedisError.
CLIENT_ERRORS = (redis_errors.RedisError, redis_errors.RedisClusterException, OSError)
_REFUSALS = (redis_errors.AuthenticationError, redis_errors.BusyLoadingError, redis_errors.ResponseError)
#: The codes of refusals that redis-py makes classes of and leaves out of their texts.
_CODES = (
    (redis_errors.ReadOnlyError, "READONLY"),
    (redis_errors.OutOfMemoryError, "OOM"),
    (redis_errors.NoPermissionError, "NOPERM"),
    (redis_errors.AuthenticationError, "WRONGPASS"),
    (redis_errors.BusyLoadingError, "LOADING"),
    (redis_errors.MasterDownError, "MASTERDOWN"),
    (redis_errors.ClusterDownError, "CLUSTERDOWN"),
    (redis_errors.TryAgainError, "TRYAGAIN"),
    (redis_errors.AskError, "ASK"),
    (redis_errors.MovedError, "MOVED"),
)
_UNKNOWN = "unknown command"
#: Characters of what a server said that a message repeats.
_SHOWN = 200


def refused(name: str, text: str) -> EngineError:
    """Return the error for a refusal: the server's code, a blank, its text."""
    code, _, said = text.partition(" ")
    if code in _SAID:
        kind, message = _SAID[code]
        return kind(f"filter {name!r}: {message}")
    if _UNKNOWN in text:  # whose text goes on with what was sent
        return EngineError(f"filter {name!r}: the server does not know a command that it takes")
    shown = escaped(said if code == "ERR" else text)
    return EngineError(f"filter {name!r}: the server refused: {shown}")


def escaped(text: str) -> str:
    """Return what a server said without what a terminal would do, and no more of it than a line."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:_SHOWN])


def strange(name: str, why: str) -> EngineError:
    """Return the error for what a client library makes of a reply, or raises of itself."""
    return EngineError(f"filter {name!r}: the client library failed: {escaped(why)}")


def too_few_acks(have: int, wanted: int, milliseconds: int) -> EngineUnavailable:
    """Return the error for a change that too few replicas have."""
    return EngineUnavailable(
        f"{have} of {wanted} replicas confirmed the change within {milliseconds / 1000} s; it was done, and "
        "may be lost if the server is: add it again, wait longer, or ask for fewer acks"
    )


def gone(name: str, why: str) -> EngineUnavailable:
    """Return the error for a server that cannot be reached; ``why`` is what the client says of it."""
    said = f" ({escaped(why).rstrip('.')})" if why else ""
    return EngineUnavailable(
        f"filter {name!r}: the server cannot be reached, or broke the connection off{said}; adds that were "
        "on their way may have been done"
    )


def late(name: str) -> EngineTimeout:
    """Return the error for a server that takes too long."""
    return EngineTimeout(
        f"filter {name!r}: the server did not answer within the client's timeout; adds that were on their "
        "way may have been "
        "done"
    )


def rolled_back(name: str) -> FilterRolledBack:
    """Return the error for a server that has an earlier state than it had."""
    return FilterRolledBack(
        f"filter {name!r}: the server went back to an earlier state (restarted from an older snapshot or a "
        "cut log, or a replica took over that was behind); keys that it acknowledged are gone: clear() or "
        "load() starts afresh, opening it again goes on with what is there"
    )


def lost(name: str, what: str) -> FilterLost:
    """Return the error for cells that are gone."""
    return FilterLost(
        f"filter {name!r}: the server has lost {what}; keys that it acknowledged are gone (restarted "
        "without its data, "
        "evicted, deleted, or failed over): verify() tells more, delete() and a new filter start afresh"
    )


def translate(name: str, error: Exception) -> Exception:
    """Return the package's error for one of redis-py's."""
    if isinstance(error, FullbloomError):
        return error
    if isinstance(error, redis_errors.TimeoutError):
        return late(name)
    if isinstance(error, _REFUSALS):
        return refused(name, error_text(error))
    if isinstance(error, (redis_errors.ConnectionError, redis_errors.RedisClusterException, OSError)):
        return gone(name, str(error))
    return strange(name, str(error)) if isinstance(error, redis_errors.RedisError) else error


def error_text(error: Exception) -> str:
    """Return the text of a server's refusal, its code in front."""
    text = str(error)
    for kind, code in _CODES:
        if isinstance(error, kind):
            return f"{code} {text}"
    # redis-py leaves ERR out, and keeps codes that it does not know.
    return text if text.partition(" ")[0].isupper() else f"ERR {text}"


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Raise the package's errors for whatever redis-py raises inside ``with``.

    On replies that no server sends, redis-py raises built-in exceptions, whose texts may repeat the reply.
    """
    try:
        yield
    except (FullbloomError, *CLIENT_ERRORS) as error:
        raise translate(name, error) from None
    except Exception as error:  # noqa: BLE001 - such a reply may cause any exception
        raise unexpected(f"{type(error).__name__} in the client library") from None


def translate_replies(name: str, replies: list[Any]) -> list[Any]:
    """Return the replies of a transaction, with the package's errors."""
    return [translate(name, one) if isinstance(one, Exception) else one for one in replies]


def no_transactions(name: str) -> EngineError:
    """Return the error for cluster clients, not all of which have transactions."""
    return EngineError(f"filter {name!r}: no transactions over a client of a cluster")


def check_acks(acks: Acks, answer: Any) -> None:
    """Raise EngineUnavailable where fewer replicas than required confirmed a change."""
    confirmed = number(answer)
    if confirmed < acks.replicas:
        raise too_few_acks(confirmed, acks.replicas, acks.milliseconds)


def check_loaded(refusals: list[tuple[int, str]]) -> None:
    """Raise redis-py's error, which its retries know, for a server that is still loading its data."""
    if any(text.startswith("LOADING") for _, text in refusals):
        raise redis_errors.BusyLoadingError("the server is loading its data")
