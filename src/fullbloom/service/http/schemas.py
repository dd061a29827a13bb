"""Schemas of JSON requests and responses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Depends, Path
from fastapi import Request as HTTPRequest
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from fullbloom.service.http.request import Request

NAME = r"^[A-Za-z0-9._:{}-]{1,128}$"
Name = Annotated[str, Field(pattern=NAME, max_length=128, description="1 to 128 of A-Z a-z 0-9 . _ : - { }")]
NameInPath = Annotated[str, Path(pattern=NAME, max_length=128)]
#: The largest signed number of 64 bits: more than any filter holds.
_MAX = (1 << 63) - 1


async def _current(request: HTTPRequest) -> Request:
    current: Request = request.scope["fullbloom"]
    return current


#: The gateway's request, as a parameter of a handler.
CurrentRequest = Annotated[Request, Depends(_current)]


class Body(BaseModel):
    """A request's body."""

    model_config = ConfigDict(extra="forbid")


class NewFilter(Body):
    """A filter to create."""

    name: Name
    kind: str | None = Field(
        None, max_length=64, description="one of /v1/kinds; by default plain, growing or with a window"
    )
    capacity: StrictInt | None = Field(None, gt=0, le=_MAX, description="keys it is sized for")
    fpr: float | None = Field(None, gt=0, lt=1, description="share of absent keys found at capacity")
    backend: Literal["memory", "redis"] = Field(
        "memory",
        description="memory: on this node; redis: on the server of --redis, served by every node",
    )
    grow: StrictBool = Field(default=False, description="grows beyond its first size")
    window: float | None = Field(None, gt=0, le=1e9, description="seconds after which a key is forgotten")
    strict: StrictBool = Field(default=False, description="rejects keys beyond its capacity")
    expire: float | None = Field(None, gt=0, le=1e9, description="seconds after which the filter is deleted")
    keyed: StrictBool | None = Field(
        None, description="hashes keys with a secret; by default as the service is configured"
    )
    seed: StrictInt | None = Field(
        None, ge=0, lt=1 << 64, description="seed of the key hash; random by default"
    )
    options: dict[str, StrictStr | StrictBool | StrictInt | StrictFloat] = Field(
        default_factory=dict, description="further parameters of the kind, by name"
    )


class Change(Body):
    """Changes of a filter."""

    name: Name | None = None
    replace: StrictBool = Field(
        default=False, description="replaces the filter that has the new name, in one step"
    )
    expire: float | None = Field(None, gt=0, le=1e9, description="seconds from now; null: never")


class Source(Body):
    """The filter to merge."""

    source: Name


class Copy(Body):
    """The name of a copy."""

    name: Name
    replace: StrictBool = False


class Time(Body):
    """The time of a filter with a window."""

    now: float | None = Field(None, ge=0, le=1e12, description="seconds; by default the current time")


class NewToken(Body):
    """A token to create."""

    name: str = Field(min_length=1, max_length=128, pattern=NAME)
    scopes: list[Annotated[str, Field(pattern="^(read|write|admin)$")]] = Field(min_length=1, max_length=3)
    patterns: list[Annotated[str, Field(min_length=1, max_length=128)]] = Field(
        default_factory=list,
        max_length=100,
        description="patterns of filter names, * for any text; none: all filters",
    )


_KEY_TYPES = ("string", "integer", "number", "boolean", "array")
_KEY: dict[str, Any] = {"anyOf": [{"type": kind} for kind in _KEY_TYPES]}
#: A body with one key or several.
SOME_KEYS = {
    "type": "object",
    "properties": {
        "key": {**_KEY, "description": "in a bank an array of an owner and a key"},
        "keys": {"type": "array", "items": _KEY},
        "values": {
            "type": "array",
            "items": {"type": "integer", "minimum": 0},
            "description": "with add: one label or value per key, for kinds that store them",
        },
    },
}
#: A body with all keys of a filter.
ALL_KEYS = {
    "type": "object",
    "properties": {"keys": {"type": "array", "items": _KEY}},
    "required": ["keys"],
}


class Filter(BaseModel):
    """State and parameters of a filter."""

    id: int
    name: str
    kind: str
    backend: str = "memory"
    capacity: int
    target_fpr: float
    num_added: int = Field(description="keys that were new when they were added, minus those removed")
    fpr: float = Field(description="false-positive rate at the present number of keys")
    over_capacity: bool = Field(description="true: more keys than capacity, and fpr is above target_fpr")
    fill: float | None
    nbytes: int
    estimated: float | None
    version: int | None = Field(
        description="increases with every change; null in Redis, where any node may change the filter"
    )
    created: int
    expires: int | None
    operations: float | None = Field(
        None,
        description="keys looked up, added and removed a second, in lists with figures; "
        "null until a filter has been listed twice",
    )
    model_config = ConfigDict(extra="allow")


class Page(BaseModel):
    """One page of filters."""

    filters: list[Filter]
    next: str | None = Field(description="the value of after for the next page; null at the end")
    total: int | None = Field(None, description="filters on all pages; null in a list by after")


class Sample(BaseModel):
    """Statistics of a filter at one time (milliseconds since 1970)."""

    sampled_at: int
    estimated_items: float | None
    fpr_estimate: float
    fill: float | None
    bytes: int
    hits: int
    misses: int
    adds: int
    new: int
    removed: int


class History(BaseModel):
    """Statistics over time."""

    samples: list[Sample]


class OneOwner(Body):
    """An owner of a bank."""

    owner: Any = Field(json_schema_extra=_KEY)


class SomeOwners(Body):
    """An owner of a bank, or several."""

    owner: Any = Field(None, json_schema_extra=_KEY)
    owners: list[Any] = Field([], json_schema_extra={"items": _KEY})


class OwnerCount(BaseModel):
    """An owner by its hash."""

    hash: int = Field(description="hash of the owner by the key rule")
    num_added: int = Field(description="its keys that were new when they were added")


class OwnerPage(BaseModel):
    """One page of owners."""

    owners: list[OwnerCount]
    next: int | None = Field(description="the value of start for the next page; null at the end")
    total: int = Field(description="owners on all pages")


class OwnerInfo(BaseModel):
    """State of an owner."""

    num_added: int = Field(description="its keys that were new when they were added")
    stages: int = Field(description="its filters: more than one if it has grown")
    nbytes: int
    fpr: float = Field(description="false-positive rate of the owner")
    estimated: float | None
    estimated_deviation: float | None


class Choice(BaseModel):
    """A way to build a filter."""

    kind: str
    layout: str | None
    items: int = Field(description="keys it is sized for")
    nbytes: int
    bits_per_key: float
    fpr: float
    num_hashes: int | None
    ns_add: float | None = Field(description="expected nanoseconds of adding a key, in a batch on one core")
    ns_check: float = Field(description="expected nanoseconds of looking up a key")
    false_negatives: str = Field(description="never, only on misuse, or by design")
    capabilities: list[str]
    fits: bool = Field(description="false: it takes more than memory")
    recommended: bool
    built: bool = Field(description="true: freeze builds it from all its keys")
    create: dict[str, Any] | None = Field(
        description="the body of POST /v1/filters except the name; null for kinds that it does not create"
    )


class Plan(BaseModel):
    """Ways to build a filter, best first."""

    choices: list[Choice]
    left_out: dict[str, str] = Field(description="layouts that cannot be built, with the reason")
    needs: list[str] = Field(description="all words that needs may hold")


class Rate(BaseModel):
    """The false-positive rate at a load."""

    load: int = Field(description="multiple of the present number of keys")
    keys: int
    fpr: float | None = Field(description="null: the kind cannot hold so many keys, or has no such law")


class Rates(BaseModel):
    """False-positive rates at several loads."""

    rates: list[Rate]


class Problem(BaseModel):
    """An error (RFC 9457); code is stable, detail is for people."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    request: str
    model_config = ConfigDict(extra="allow")
