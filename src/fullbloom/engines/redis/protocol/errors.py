"""Errors for what servers refuse and clients raise: one clear message each, which repeats no key."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import redis.exceptions as redis_errors

from fullbloom.engines.redis.protocol.requests import parse_number, unexpected_reply
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
    "a node of a cluster says that another node has the key; use a cluster client, or, if it is one, try "
    "again: slots are moving"
)
_ERRORS: dict[str, tuple[Callable[[str], EngineError], str]] = {
    "OOM": (
        EngineFull,
        "the server has reached its limit (maxmemory) and refused the change; raise it, or free memory",
    ),
    "READONLY": (EngineRefused, "the server is a replica and takes no changes; connect to its master"),
    "WRONGTYPE": (
        EngineNameTaken,
        "a key of its name holds something other than this filter; choose another name, or delete that key",
    ),
    "NOAUTH": (EngineRefused, "the server requires a password; give it to the client"),
    "WRONGPASS": (EngineRefused, "the server does not know this user and password"),
    "NOPERM": (EngineRefused, "the server does not allow this user the commands or keys of the filter"),
    "LOADING": (EngineUnavailable, "the server is loading its data; try again"),
    "BUSY": (EngineUnavailable, "the server is busy with a script; try again"),
    "MASTERDOWN": (EngineUnavailable, "the server's master is down, and the replica does not answer alone"),
    "CLUSTERDOWN": (EngineUnavailable, "the cluster is down; try again once its slots are served"),
    "TRYAGAIN": (EngineUnavailable, "the cluster is moving the filter's keys; try again"),
    "MOVED": (EngineUnavailable, _MOVED),
    "ASK": (EngineUnavailable, _MOVED),
    "MISCONF": (EngineRefused, "the server cannot save to its disk and takes no changes"),
    "NOREPLICAS": (EngineRefused, "the server has too few replicas and takes no changes"),
    "EXECABORT": (EngineError, "the server aborted the transaction"),
}
#: What redis-py raises: its cluster errors are not RedisErrors.
CLIENT_ERRORS = (redis_errors.RedisError, redis_errors.RedisClusterException, OSError)
_REFUSALS = (redis_errors.AuthenticationError, redis_errors.BusyLoadingError, redis_errors.ResponseError)
#: The codes of refusals that redis-py turns into classes and leaves out of their texts.
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
#: Characters of a server's text that a message repeats.
_MAX_TEXT = 200


def refusal(name: str, text: str) -> EngineError:
    """Return the error for a server's refusal: a code, a space, and text."""
    code, _, said = text.partition(" ")
    if code in _ERRORS:
        kind, message = _ERRORS[code]
        return kind(f"filter {name!r}: {message}")
    if _UNKNOWN in text:  # the rest of the text repeats what was sent
        return EngineError(f"filter {name!r}: the server does not support a required command")
    shown = escape(said if code == "ERR" else text)
    return EngineError(f"filter {name!r}: the server refused: {shown}")


def escape(text: str) -> str:
    """Return a server's text without control characters, cut to a line."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:_MAX_TEXT])


def client_failure(name: str, why: str) -> EngineError:
    """Return the error for an exception of the client library itself."""
    return EngineError(f"filter {name!r}: the client library failed: {escape(why)}")


def too_few_acks(have: int, wanted: int, milliseconds: int) -> EngineUnavailable:
    """Return the error for a change that too few replicas confirmed."""
    return EngineUnavailable(
        f"{have} of {wanted} replicas confirmed the change within {milliseconds / 1000} s; the server has "
        "it, and may lose it in a failover: add it again, wait longer, or ask for fewer acks"
    )


def unreachable(name: str, why: str) -> EngineUnavailable:
    """Return the error for a server that cannot be reached; ``why`` is the client library's text."""
    reason = f" ({escape(why).rstrip('.')})" if why else ""
    return EngineUnavailable(
        f"filter {name!r}: the server cannot be reached, or closed the connection{reason}; "
        "pending adds may have been done"
    )


def timeout(name: str) -> EngineTimeout:
    """Return the error for a server that takes too long."""
    return EngineTimeout(
        f"filter {name!r}: the server did not answer within the client's timeout; "
        "pending adds may have been done"
    )


def rollback(name: str) -> FilterRolledBack:
    """Return the error for a server that returned to an earlier state."""
    return FilterRolledBack(
        f"filter {name!r}: the server went back to an earlier state (restarted from an older snapshot or a "
        "truncated log, or failed over to a replica that was behind); keys that it acknowledged are gone: "
        "clear() or load() starts over, opening the filter again continues with what is left"
    )


def loss(name: str, what: str) -> FilterLost:
    """Return the error for cells that are lost."""
    return FilterLost(
        f"filter {name!r}: the server has lost {what}; keys that it acknowledged are gone (restarted without "
        "its data, evicted, deleted, or failed over): verify() tells more, delete() and a new filter start "
        "over"
    )


def translate(name: str, error: Exception) -> Exception:
    """Return the package's error for one of redis-py's."""
    if isinstance(error, FullbloomError):
        return error
    if isinstance(error, redis_errors.TimeoutError):
        return timeout(name)
    if isinstance(error, _REFUSALS):
        return refusal(name, error_text(error))
    if isinstance(error, (redis_errors.ConnectionError, redis_errors.RedisClusterException, OSError)):
        return unreachable(name, str(error))
    return client_failure(name, str(error)) if isinstance(error, redis_errors.RedisError) else error


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
        raise unexpected_reply(f"{type(error).__name__} in the client library") from None


def translate_replies(name: str, replies: list[Any]) -> list[Any]:
    """Return the replies of a transaction, with the package's errors."""
    return [translate(name, one) if isinstance(one, Exception) else one for one in replies]


def no_transactions(name: str) -> EngineError:
    """Return the error for cluster clients, not all of which have transactions."""
    return EngineError(f"filter {name!r}: no transactions over a client of a cluster")


def check_acks(acks: Acks, answer: Any) -> None:
    """Raise EngineUnavailable where fewer replicas than required confirmed a change."""
    confirmed = parse_number(answer)
    if confirmed < acks.replicas:
        raise too_few_acks(confirmed, acks.replicas, acks.milliseconds)


def check_loaded(refusals: list[tuple[int, str]]) -> None:
    """Raise redis-py's error, which its retries know, for a server that is still loading its data."""
    if any(text.startswith("LOADING") for _, text in refusals):
        raise redis_errors.BusyLoadingError("the server is loading its data")
