"""`AsyncClient`: the filters of a service over HTTP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

import httpx

from fullbloom.client.requests import (
    AS_JSON,
    RETRIED,
    Request,
    ServiceError,
    authorization,
    batch_request,
    change_request,
    check_response,
    creation_request,
    filter_path,
    idempotency,
    pairs_request,
    read_flags,
    read_member,
    read_object,
    read_page,
    read_value,
    read_values,
    retry_delay,
    unreachable_error,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from fullbloom.client.requests import Key

_TIMEOUT = 30.0
_PAGE_SIZE = "1000"


class AsyncClient:
    """The filters of a service, as objects like `set`.

    In asyncio the methods of `Client` and its filters are awaited; ``contains`` replaces ``in``, ``aclose``
    replaces ``close``.

    A request that the service is too busy for (429, 503), or that does not arrive, is retried up to
    ``retries`` times. A change that arrives twice is made once, while the service remembers it: for ten
    minutes, and under load for the token's latest changes, at least 30,000 divided by the number of tokens
    that send changes. Raises ``ServiceError`` for what the service refuses; its code is "applied" if a change
    was made, but its response was lost and is not stored. Safe to share between threads and tasks.

    ``async with AsyncClient("http://127.0.0.1:8080") as client: await client.create("seen", 10**6)``
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = _TIMEOUT,
        retries: int = 4,
        verify: Any = True,
    ) -> None:
        """Take the service's address; nothing is sent yet."""
        self._retries = retries
        headers = authorization(token)
        self._http = httpx.AsyncClient(base_url=url, headers=headers, timeout=timeout, verify=verify)

    async def create(self, name: str, capacity: int | None = None, **settings: Any) -> AsyncRemoteFilter:
        """Create a filter; ``settings`` are those of ``POST /v1/filters``: fpr, kind, grow ..."""
        await self.send(creation_request(name, capacity, settings))
        return AsyncRemoteFilter(self, name)

    def filter(self, name: str) -> AsyncRemoteFilter:
        """Return a filter by its name; nothing is sent yet."""
        return AsyncRemoteFilter(self, name)

    async def names(self, prefix: str = "") -> AsyncIterator[str]:
        """Yield the names of filters, in order."""
        params = {"prefix": prefix, "limit": _PAGE_SIZE}
        while True:
            response = await self.send(Request("GET", "/v1/filters", params=params))
            filters, following = read_page(response, "filters", {"name": str})
            for one in filters:
                yield one["name"]
            if following is None:
                return
            params["after"] = str(following)

    async def contains(self, name: str) -> bool:  # blocking: __contains__
        """Return whether a filter of this name exists."""
        try:
            await self.filter(name).info()
        except ServiceError as error:
            if error.code == "missing":
                return False
            raise
        return True

    async def delete(self, name: str) -> None:
        """Delete a filter."""
        await self.send(change_request("DELETE", filter_path(name)))

    async def send(self, request: Request) -> httpx.Response:
        """Send a request, again if that may help; return the response, which is a success."""
        for attempt in range(self._retries + 1):
            is_last = attempt == self._retries
            retry_after = None
            try:
                response = await self._http.request(**request.arguments())
                if is_last or response.status_code not in RETRIED:
                    return check_response(response, request)
                retry_after = response.headers.get("retry-after")
            except httpx.TransportError as error:
                if is_last:
                    raise unreachable_error(error, str(self._http.base_url), attempt + 1) from error
            await asyncio.sleep(retry_delay(attempt, retry_after))
        raise AssertionError  # the last attempt returns or raises

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close the connections."""
        await self.aclose()


class AsyncRemoteFilter:
    """A filter of the service."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        """Take the client; use `AsyncClient.filter`."""
        self._client, self.name = client, name

    def __repr__(self) -> str:
        """Show the name."""
        return f"AsyncRemoteFilter({self.name!r})"

    async def add(self, key: Key) -> bool:
        """Add a key; True if it was certainly new."""
        return read_member(await self._one("add", key, idempotency()), "new", bool)

    async def contains(self, key: Key) -> bool:  # blocking: __contains__
        """Return whether the key is probably present; False is certain."""
        return read_member(await self._one("check", key), "found", bool)

    async def remove(self, key: Key) -> bool:
        """Remove a key; False if it was certainly absent."""
        return read_member(await self._one("remove", key, idempotency()), "removed", bool)

    async def count(self, key: Key) -> int:
        """Return how often a key is present."""
        return read_member(await self._one("count", key), "count", int)

    async def update(self, keys: Iterable[Key]) -> None:
        """Add keys."""
        await self.add_many(keys)

    async def add_many(self, keys: Iterable[Key]) -> list[bool]:
        """Add keys; True for each that was certainly new."""
        return await self._many("add", keys, idempotency())

    async def contains_many(self, keys: Iterable[Key]) -> list[bool]:
        """Return, for each key, whether it is probably present."""
        return await self._many("check", keys)

    async def remove_many(self, keys: Iterable[Key]) -> list[bool]:
        """Remove keys; False for each that was certainly absent."""
        return await self._many("remove", keys, idempotency())

    async def add_pairs(self, keys: Iterable[Key], values: Iterable[int]) -> None:
        """Add keys with a label or value each, to a filter of a kind that stores them."""
        await self._client.send(pairs_request(self.name, keys, values, idempotency()))

    async def value(self, key: Key) -> int | None:
        """Return the label or value of a key. Without one it is 0; None if the filter is a map."""
        return read_value(await self._one("values", key))

    async def value_many(self, keys: Iterable[Key]) -> list[int | None]:
        """Return the label or value of each key. Without one it is 0; None if the filter is a map."""
        request, count = batch_request(self.name, "values", keys, AS_JSON)
        return read_values(await self._client.send(request), count)

    async def owners(self) -> AsyncIterator[tuple[int, int]]:
        """Yield the hash and the number of keys of each owner of a bank, in an order that stays."""
        params = {"start": "0", "limit": _PAGE_SIZE}
        while True:
            request = Request("GET", filter_path(self.name, "owners"), params=params)
            page = await self._client.send(request)
            owners, following = read_page(page, "owners", {"hash": int, "num_added": int})
            for one in owners:
                yield one["hash"], one["num_added"]
            if following is None:
                return
            params["start"] = str(following)

    async def owner_info(self, owner: Key) -> dict[str, Any]:
        """Return the present load of an owner of a bank; `ServiceError` with code "missing" without one."""
        return read_object(await self._owner("info", owner))

    async def clear_owner(self, owner: Key) -> bool:
        """Remove the keys of an owner of a bank; False if the bank does not have the owner."""
        return read_member(await self._owner("clear", owner, idempotency()), "cleared", bool)

    async def remove_owner(self, owner: Key) -> bool:
        """Remove an owner of a bank with all keys; False if the bank does not have the owner."""
        return read_member(await self._owner("remove", owner, idempotency()), "removed", bool)

    async def export_owner(self, owner: Key) -> bytes:
        """Return the filter of an owner of a bank as the bytes of a file, for `fullbloom.loads`."""
        return (await self._owner("export", owner)).content

    async def info(self) -> dict[str, Any]:
        """Return the filter's parameters and present load."""
        return read_object(await self._client.send(Request("GET", filter_path(self.name))))

    async def history(self, *, limit: int = 1000) -> list[dict[str, Any]]:
        """Return the filter's statistics, the newest first: ``sampled_at`` in milliseconds, ``fill`` ..."""
        request = Request("GET", filter_path(self.name, "history"), params={"limit": str(limit)})
        return read_page(await self._client.send(request), "samples", {"sampled_at": int})[0]

    async def clear(self) -> None:
        """Remove all keys."""
        await self._client.send(change_request("POST", filter_path(self.name, "clear")))

    async def merge(self, source: str) -> None:
        """Add the keys of another filter of the service."""
        path = filter_path(self.name, "merge")
        await self._client.send(change_request("POST", path, json={"source": source}))

    async def dump(self) -> bytes:
        """Return the filter as the bytes of a file, for `fullbloom.loads`."""
        response = await self._client.send(Request("GET", filter_path(self.name, "dump")))
        return response.content

    async def restore(self, data: bytes, *, replace: bool = False) -> None:
        """Store the filter in the bytes of a file under this name."""
        params = {"replace": str(replace).lower()}
        path = filter_path(self.name, "dump")
        await self._client.send(change_request("PUT", path, content=data, params=params))

    async def _owner(self, action: str, owner: Key, headers: Mapping[str, str] = {}) -> httpx.Response:
        path = filter_path(self.name, f"owners/{action}")
        return await self._client.send(Request("POST", path, json={"owner": owner}, headers=headers))

    async def _one(self, action: str, key: Key, headers: Mapping[str, str] = {}) -> httpx.Response:
        request = Request("POST", filter_path(self.name, action), json={"key": key}, headers=headers)
        return await self._client.send(request)

    async def _many(self, action: str, keys: Iterable[Key], headers: Mapping[str, str] = {}) -> list[bool]:
        request, count = batch_request(self.name, action, keys, headers)
        return read_flags(await self._client.send(request), count)
