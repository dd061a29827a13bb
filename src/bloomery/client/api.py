"""The client, waiting or not."""

from __future__ import annotations

import asyncio
import secrets
import time
import warnings
from typing import TYPE_CHECKING, Any, Self

import httpx

from bloomery.client.requests import (
    AS_JSON,
    PASSING,
    Ask,
    Key,
    ServiceError,
    filter_of,
    flags,
    many,
    pairs,
    path,
    pause,
)
from bloomery.errors import KeyDomainWarning

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

_SECONDS = 30.0
_PAGE = "1000"


def _headers(token: str | None) -> dict[str, str]:
    return {} if token is None else {"authorization": f"Bearer {token}"}


def _once() -> dict[str, str]:
    """Return the header by which a change that is sent twice is made once."""
    return {"idempotency-key": secrets.token_hex(16)}


def _new(name: str, capacity: int | None, settings: Mapping[str, Any]) -> Ask:
    body = {"name": name, **settings}
    return Ask("POST", "/v1/filters", json=body if capacity is None else {**body, "capacity": capacity})


def _checked(answer: httpx.Response, ask: Ask) -> httpx.Response:
    if answer.is_success:
        if (warning := answer.headers.get("x-bloomery-key-domain-warning")) is not None:
            warnings.warn(warning, KeyDomainWarning, stacklevel=5)  # at the call of the filter's method
        return answer
    try:
        problem = answer.json()
    except ValueError:
        problem = {}
    raise ServiceError(answer.status_code, problem if isinstance(problem, dict) else {}, filter_of(ask))


def unreached(error: httpx.TransportError, url: httpx.URL, attempts: int) -> httpx.TransportError:
    """Return the same error of httpx with the service's address in its text."""
    tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    why = str(error) or type(error).__name__
    text = f"the service at {shown_url(url)} cannot be reached after {tries}: {why}"
    # Every class of them takes the text and the request.
    return type(error)(text, request=getattr(error, "_request", None))


def shown_url(url: httpx.URL) -> str:
    """Return an address without name and password."""
    return str(url.copy_with(username=None, password=None)).rstrip("/")


def values_of(answer: httpx.Response) -> list[int | None]:
    """Return the numbers of an answer about many keys."""
    found: list[int | None] = answer.json()["values"]
    return found


def _sent(ask: Ask) -> dict[str, Any]:
    return {
        "method": ask.method,
        "url": ask.path,
        "json": ask.json,
        "content": ask.content,
        "headers": dict(ask.headers),
        "params": dict(ask.params),
    }


class Client:
    """A service's filters, as objects like `set`.

    ``retries`` attempts follow one that the service is too busy for (429, 503) or that does not arrive; a
    change that arrives twice is made once. ``ServiceError`` for what is refused. Safe for several threads.

    ``with bloomery.Client("http://127.0.0.1:8080") as client: client.create("seen", 1_000_000)``
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = _SECONDS,
        retries: int = 4,
        verify: Any = True,
    ) -> None:
        """Take the service's address; nothing is sent yet."""
        self._retries = retries
        self._http = httpx.Client(base_url=url, headers=_headers(token), timeout=timeout, verify=verify)

    def create(self, name: str, capacity: int | None = None, **settings: Any) -> RemoteFilter:
        """Make a filter; ``settings`` are those of ``POST /v1/filters``: fpr, kind, grow ..."""
        self.send(_new(name, capacity, settings))
        return RemoteFilter(self, name)

    def filter(self, name: str) -> RemoteFilter:
        """Return a filter by its name; nothing is asked yet."""
        return RemoteFilter(self, name)

    def names(self, prefix: str = "") -> Iterator[str]:
        """Yield the names of filters, in order."""
        params = {"prefix": prefix, "limit": _PAGE}
        while True:
            page = self.send(Ask("GET", "/v1/filters", params=params)).json()
            yield from (one["name"] for one in page["filters"])
            if page["next"] is None:
                return
            params["after"] = page["next"]

    def __contains__(self, name: str) -> bool:
        """Tell whether there is a filter of this name."""
        try:
            self.filter(name).info()
        except ServiceError as error:
            if error.code == "missing":
                return False
            raise
        return True

    def delete(self, name: str) -> None:
        """Drop a filter."""
        self.send(Ask("DELETE", path(name)))

    def send(self, ask: Ask) -> httpx.Response:
        """Send a request, again where that may help: its answer."""
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            said = None
            try:
                answer = self._http.request(**_sent(ask))
                if last or answer.status_code not in PASSING:
                    return _checked(answer, ask)
                said = answer.headers.get("retry-after")
            except httpx.TransportError as error:
                if last:
                    raise unreached(error, self._http.base_url, attempt + 1) from error
            time.sleep(pause(attempt, said))
        raise AssertionError  # the last attempt ends the function

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close."""
        self.close()


class RemoteFilter:
    """A filter of the service."""

    def __init__(self, client: Client, name: str) -> None:
        """Made by `Client.filter`."""
        self._client, self.name = client, name

    def __repr__(self) -> str:
        """Show the name."""
        return f"RemoteFilter({self.name!r})"

    def add(self, key: Key) -> bool:
        """Add a key; True if it was certainly new."""
        return bool(self._one("add", key, _once())["new"])

    def __contains__(self, key: Key) -> bool:
        """Tell whether the key is probably there; False is certain."""
        return bool(self._one("check", key)["found"])

    def remove(self, key: Key) -> bool:
        """Remove a key; False if it was certainly absent."""
        return bool(self._one("remove", key, _once())["removed"])

    def count(self, key: Key) -> int:
        """Return how often a key is there."""
        return int(self._one("count", key)["count"])

    def update(self, keys: Iterable[Key]) -> None:
        """Add keys."""
        self.add_many(keys)

    def add_many(self, keys: Iterable[Key]) -> list[bool]:
        """Add keys; True for each that was certainly new."""
        return self._many("add", keys, _once())

    def contains_many(self, keys: Iterable[Key]) -> list[bool]:
        """Tell for each key whether it is probably there."""
        return self._many("check", keys)

    def remove_many(self, keys: Iterable[Key]) -> list[bool]:
        """Remove keys; False for each that was certainly absent."""
        return self._many("remove", keys, _once())

    def add_pairs(self, keys: Iterable[Key], values: Iterable[int]) -> None:
        """Add keys with a label or value each, to a filter of a kind that takes such."""
        self._client.send(pairs(self.name, keys, values, _once()))

    def value(self, key: Key) -> int | None:
        """Return the label or value of a key; without one it is 0, of a map None."""
        found: int | None = self._one("values", key)["value"]
        return found

    def value_many(self, keys: Iterable[Key]) -> list[int | None]:
        """Return the label or value of each key; without one it is 0, of a map None."""
        return values_of(self._client.send(many(self.name, "values", keys, AS_JSON)[0]))

    def info(self) -> dict[str, Any]:
        """Return what the filter is and holds."""
        found: dict[str, Any] = self._client.send(Ask("GET", path(self.name))).json()
        return found

    def clear(self) -> None:
        """Forget every key."""
        self._client.send(Ask("POST", path(self.name, "clear")))

    def merge(self, source: str) -> None:
        """Take the keys of another filter of the service in."""
        self._client.send(Ask("POST", path(self.name, "merge"), json={"source": source}))

    def dump(self) -> bytes:
        """Return the filter as a file's bytes, for `bloomery.loads`."""
        return self._client.send(Ask("GET", path(self.name, "dump"))).content

    def restore(self, data: bytes, *, replace: bool = False) -> None:
        """Put the filter in a file's bytes under this name."""
        params = {"replace": str(replace).lower()}
        self._client.send(Ask("PUT", path(self.name, "dump"), content=data, params=params))

    def _one(self, action: str, key: Key, headers: Mapping[str, str] = {}) -> Any:
        ask = Ask("POST", path(self.name, action), json={"key": key}, headers=headers)
        return self._client.send(ask).json()

    def _many(self, action: str, keys: Iterable[Key], headers: Mapping[str, str] = {}) -> list[bool]:
        ask, count = many(self.name, action, keys, headers)
        return flags(self._client.send(ask).content, count)


class AsyncClient:
    """`Client` for an event loop: ``contains`` stands for ``in``, ``aclose`` for ``close``."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = _SECONDS,
        retries: int = 4,
        verify: Any = True,
    ) -> None:
        """Take the service's address; nothing is sent yet."""
        self._retries = retries
        self._http = httpx.AsyncClient(base_url=url, headers=_headers(token), timeout=timeout, verify=verify)

    async def create(self, name: str, capacity: int | None = None, **settings: Any) -> AsyncRemoteFilter:
        """See `Client.create`."""
        await self.send(_new(name, capacity, settings))
        return AsyncRemoteFilter(self, name)

    def filter(self, name: str) -> AsyncRemoteFilter:
        """Return a filter by its name; nothing is asked yet."""
        return AsyncRemoteFilter(self, name)

    async def names(self, prefix: str = "") -> AsyncIterator[str]:
        """Yield the names of filters, in order."""
        params = {"prefix": prefix, "limit": _PAGE}
        while True:
            page = (await self.send(Ask("GET", "/v1/filters", params=params))).json()
            for one in page["filters"]:
                yield one["name"]
            if page["next"] is None:
                return
            params["after"] = page["next"]

    async def contains(self, name: str) -> bool:
        """Tell whether there is a filter of this name."""
        try:
            await self.filter(name).info()
        except ServiceError as error:
            if error.code == "missing":
                return False
            raise
        return True

    async def delete(self, name: str) -> None:
        """Drop a filter."""
        await self.send(Ask("DELETE", path(name)))

    async def send(self, ask: Ask) -> httpx.Response:
        """See `Client.send`."""
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            said = None
            try:
                answer = await self._http.request(**_sent(ask))
                if last or answer.status_code not in PASSING:
                    return _checked(answer, ask)
                said = answer.headers.get("retry-after")
            except httpx.TransportError as error:
                if last:
                    raise unreached(error, self._http.base_url, attempt + 1) from error
            await asyncio.sleep(pause(attempt, said))
        raise AssertionError  # the last attempt ends the function

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close."""
        await self.aclose()


class AsyncRemoteFilter:
    """A filter of the service, for an event loop; ``contains`` stands for ``in``."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        """Made by `AsyncClient.filter`."""
        self._client, self.name = client, name

    def __repr__(self) -> str:
        """Show the name."""
        return f"AsyncRemoteFilter({self.name!r})"

    async def add(self, key: Key) -> bool:
        """Add a key; True if it was certainly new."""
        return bool((await self._one("add", key, _once()))["new"])

    async def contains(self, key: Key) -> bool:
        """Tell whether the key is probably there; False is certain."""
        return bool((await self._one("check", key))["found"])

    async def remove(self, key: Key) -> bool:
        """Remove a key; False if it was certainly absent."""
        return bool((await self._one("remove", key, _once()))["removed"])

    async def count(self, key: Key) -> int:
        """Return how often a key is there."""
        return int((await self._one("count", key))["count"])

    async def update(self, keys: Iterable[Key]) -> None:
        """Add keys."""
        await self.add_many(keys)

    async def add_many(self, keys: Iterable[Key]) -> list[bool]:
        """Add keys; True for each that was certainly new."""
        return await self._many("add", keys, _once())

    async def contains_many(self, keys: Iterable[Key]) -> list[bool]:
        """Tell for each key whether it is probably there."""
        return await self._many("check", keys)

    async def remove_many(self, keys: Iterable[Key]) -> list[bool]:
        """Remove keys; False for each that was certainly absent."""
        return await self._many("remove", keys, _once())

    async def add_pairs(self, keys: Iterable[Key], values: Iterable[int]) -> None:
        """See `RemoteFilter.add_pairs`."""
        await self._client.send(pairs(self.name, keys, values, _once()))

    async def value(self, key: Key) -> int | None:
        """Return the label or value of a key; without one it is 0, of a map None."""
        found: int | None = (await self._one("values", key))["value"]
        return found

    async def value_many(self, keys: Iterable[Key]) -> list[int | None]:
        """Return the label or value of each key; without one it is 0, of a map None."""
        return values_of(await self._client.send(many(self.name, "values", keys, AS_JSON)[0]))

    async def info(self) -> dict[str, Any]:
        """Return what the filter is and holds."""
        found: dict[str, Any] = (await self._client.send(Ask("GET", path(self.name)))).json()
        return found

    async def clear(self) -> None:
        """Forget every key."""
        await self._client.send(Ask("POST", path(self.name, "clear")))

    async def merge(self, source: str) -> None:
        """Take the keys of another filter of the service in."""
        await self._client.send(Ask("POST", path(self.name, "merge"), json={"source": source}))

    async def dump(self) -> bytes:
        """Return the filter as a file's bytes, for `bloomery.loads`."""
        return (await self._client.send(Ask("GET", path(self.name, "dump")))).content

    async def restore(self, data: bytes, *, replace: bool = False) -> None:
        """Put the filter in a file's bytes under this name."""
        params = {"replace": str(replace).lower()}
        await self._client.send(Ask("PUT", path(self.name, "dump"), content=data, params=params))

    async def _one(self, action: str, key: Key, headers: Mapping[str, str] = {}) -> Any:
        ask = Ask("POST", path(self.name, action), json={"key": key}, headers=headers)
        return (await self._client.send(ask)).json()

    async def _many(self, action: str, keys: Iterable[Key], headers: Mapping[str, str] = {}) -> list[bool]:
        ask, count = many(self.name, action, keys, headers)
        return flags((await self._client.send(ask)).content, count)
