# Generated from async_client.py by scripts/generate_sync.py (`make stubs`); do not edit.

"""`Client`: the filters of a service over HTTP."""

from __future__ import annotations

import time
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
    from collections.abc import Iterable, Iterator, Mapping

    from fullbloom.client.requests import Key

_TIMEOUT = 30.0
_PAGE_SIZE = "1000"


class Client:
    """The filters of a service, as objects like `set`.

    A request that the service is too busy for (429, 503), or that does not arrive, is retried up to
    ``retries`` times. A change that arrives twice is made once, while the service remembers it: for ten
    minutes, and under load for the token's latest changes, at least 30,000 divided by the number of tokens
    that send changes. Raises ``ServiceError`` for what the service refuses; its code is "applied" if a change
    was made, but its response was lost and is not stored. Safe to share between threads and tasks.

    ``with Client("http://127.0.0.1:8080") as client: client.create("seen", 10**6)``
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
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, verify=verify)

    def create(self, name: str, capacity: int | None = None, **settings: Any) -> RemoteFilter:
        """Create a filter; ``settings`` are those of ``POST /v1/filters``: fpr, kind, grow ..."""
        self.send(creation_request(name, capacity, settings))
        return RemoteFilter(self, name)

    def filter(self, name: str) -> RemoteFilter:
        """Return a filter by its name; nothing is sent yet."""
        return RemoteFilter(self, name)

    def names(self, prefix: str = "") -> Iterator[str]:
        """Yield the names of filters, in order."""
        params = {"prefix": prefix, "limit": _PAGE_SIZE}
        while True:
            response = self.send(Request("GET", "/v1/filters", params=params))
            filters, following = read_page(response, "filters", {"name": str})
            for one in filters:
                yield one["name"]
            if following is None:
                return
            params["after"] = str(following)

    def __contains__(self, name: str) -> bool:
        """Return whether a filter of this name exists."""
        try:
            self.filter(name).info()
        except ServiceError as error:
            if error.code == "missing":
                return False
            raise
        return True

    def delete(self, name: str) -> None:
        """Delete a filter."""
        self.send(change_request("DELETE", filter_path(name)))

    def send(self, request: Request) -> httpx.Response:
        """Send a request, again if that may help; return the response, which is a success."""
        for attempt in range(self._retries + 1):
            is_last = attempt == self._retries
            retry_after = None
            try:
                response = self._http.request(**request.arguments())
                if is_last or response.status_code not in RETRIED:
                    return check_response(response, request)
                retry_after = response.headers.get("retry-after")
            except httpx.TransportError as error:
                if is_last:
                    raise unreachable_error(error, str(self._http.base_url), attempt + 1) from error
            time.sleep(retry_delay(attempt, retry_after))
        raise AssertionError  # the last attempt returns or raises

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the connections."""
        self.close()


class RemoteFilter:
    """A filter of the service."""

    def __init__(self, client: Client, name: str) -> None:
        """Take the client; use `Client.filter`."""
        self._client, self.name = client, name

    def __repr__(self) -> str:
        """Show the name."""
        return f"RemoteFilter({self.name!r})"

    def add(self, key: Key) -> bool:
        """Add a key; True if it was certainly new."""
        return read_member(self._one("add", key, idempotency()), "new", bool)

    def __contains__(self, key: Key) -> bool:
        """Return whether the key is probably present; False is certain."""
        return read_member(self._one("check", key), "found", bool)

    def remove(self, key: Key) -> bool:
        """Remove a key; False if it was certainly absent."""
        return read_member(self._one("remove", key, idempotency()), "removed", bool)

    def count(self, key: Key) -> int:
        """Return how often a key is present."""
        return read_member(self._one("count", key), "count", int)

    def update(self, keys: Iterable[Key]) -> None:
        """Add keys."""
        self.add_many(keys)

    def add_many(self, keys: Iterable[Key]) -> list[bool]:
        """Add keys; True for each that was certainly new."""
        return self._many("add", keys, idempotency())

    def contains_many(self, keys: Iterable[Key]) -> list[bool]:
        """Return, for each key, whether it is probably present."""
        return self._many("check", keys)

    def remove_many(self, keys: Iterable[Key]) -> list[bool]:
        """Remove keys; False for each that was certainly absent."""
        return self._many("remove", keys, idempotency())

    def add_pairs(self, keys: Iterable[Key], values: Iterable[int]) -> None:
        """Add keys with a label or value each, to a filter of a kind that stores them."""
        self._client.send(pairs_request(self.name, keys, values, idempotency()))

    def value(self, key: Key) -> int | None:
        """Return the label or value of a key. Without one it is 0; None if the filter is a map."""
        return read_value(self._one("values", key))

    def value_many(self, keys: Iterable[Key]) -> list[int | None]:
        """Return the label or value of each key. Without one it is 0; None if the filter is a map."""
        request, count = batch_request(self.name, "values", keys, AS_JSON)
        return read_values(self._client.send(request), count)

    def owners(self) -> Iterator[tuple[int, int]]:
        """Yield the hash and the number of keys of each owner of a bank, in an order that stays."""
        params = {"start": "0", "limit": _PAGE_SIZE}
        while True:
            request = Request("GET", filter_path(self.name, "owners"), params=params)
            page = self._client.send(request)
            owners, following = read_page(page, "owners", {"hash": int, "num_added": int})
            for one in owners:
                yield one["hash"], one["num_added"]
            if following is None:
                return
            params["start"] = str(following)

    def owner_info(self, owner: Key) -> dict[str, Any]:
        """Return the present load of an owner of a bank; `ServiceError` with code "missing" without one."""
        return read_object(self._owner("info", owner))

    def clear_owner(self, owner: Key) -> bool:
        """Remove the keys of an owner of a bank; False if the bank does not have the owner."""
        return read_member(self._owner("clear", owner, idempotency()), "cleared", bool)

    def remove_owner(self, owner: Key) -> bool:
        """Remove an owner of a bank with all keys; False if the bank does not have the owner."""
        return read_member(self._owner("remove", owner, idempotency()), "removed", bool)

    def export_owner(self, owner: Key) -> bytes:
        """Return the filter of an owner of a bank as the bytes of a file, for `fullbloom.loads`."""
        return self._owner("export", owner).content

    def info(self) -> dict[str, Any]:
        """Return the filter's parameters and present load."""
        return read_object(self._client.send(Request("GET", filter_path(self.name))))

    def history(self, *, limit: int = 1000) -> list[dict[str, Any]]:
        """Return the filter's statistics, the newest first: ``sampled_at`` in milliseconds, ``fill`` ..."""
        request = Request("GET", filter_path(self.name, "history"), params={"limit": str(limit)})
        return read_page(self._client.send(request), "samples", {"sampled_at": int})[0]

    def clear(self) -> None:
        """Remove all keys."""
        self._client.send(change_request("POST", filter_path(self.name, "clear")))

    def merge(self, source: str) -> None:
        """Add the keys of another filter of the service."""
        path = filter_path(self.name, "merge")
        self._client.send(change_request("POST", path, json={"source": source}))

    def dump(self) -> bytes:
        """Return the filter as the bytes of a file, for `fullbloom.loads`."""
        response = self._client.send(Request("GET", filter_path(self.name, "dump")))
        return response.content

    def restore(self, data: bytes, *, replace: bool = False) -> None:
        """Store the filter in the bytes of a file under this name."""
        params = {"replace": str(replace).lower()}
        path = filter_path(self.name, "dump")
        self._client.send(change_request("PUT", path, content=data, params=params))

    def _owner(self, action: str, owner: Key, headers: Mapping[str, str] = {}) -> httpx.Response:
        path = filter_path(self.name, f"owners/{action}")
        return self._client.send(Request("POST", path, json={"owner": owner}, headers=headers))

    def _one(self, action: str, key: Key, headers: Mapping[str, str] = {}) -> httpx.Response:
        request = Request("POST", filter_path(self.name, action), json={"key": key}, headers=headers)
        return self._client.send(request)

    def _many(self, action: str, keys: Iterable[Key], headers: Mapping[str, str] = {}) -> list[bool]:
        request, count = batch_request(self.name, action, keys, headers)
        return read_flags(self._client.send(request), count)
