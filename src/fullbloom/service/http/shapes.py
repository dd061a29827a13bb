"""What JSON requests and answers look like."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

NAME = r"^[A-Za-z0-9._:{}-]{1,128}$"
Name = Annotated[str, Field(pattern=NAME, max_length=128, description="1 to 128 of A-Z a-z 0-9 . _ : - { }")]
NameInPath = Annotated[str, Path(pattern=NAME, max_length=128)]
#: The largest number of 64 bits with a sign: beyond what any filter holds.
_MOST = (1 << 63) - 1


class Asked(BaseModel):
    """A request's body."""

    model_config = ConfigDict(extra="forbid")


class NewFilter(Asked):
    """A filter to be made."""

    name: Name
    kind: str | None = Field(
        None, max_length=64, description="one of /v1/kinds; plain, growing or with a window unasked"
    )
    capacity: StrictInt | None = Field(None, gt=0, le=_MOST, description="keys it is sized for")
    fpr: float | None = Field(None, gt=0, lt=1, description="share of absent keys found at capacity")
    backend: Literal["memory", "redis"] = Field(
        "memory",
        description="memory: of this node; redis: on the server of --redis, every node answers for it",
    )
    grow: StrictBool = Field(default=False, description="grows beyond its first size")
    window: float | None = Field(None, gt=0, le=1e9, description="seconds after which a key is forgotten")
    strict: StrictBool = Field(default=False, description="refuses keys beyond its capacity")
    expire: float | None = Field(None, gt=0, le=1e9, description="seconds after which the filter is dropped")
    keyed: StrictBool | None = Field(
        None, description="hashes keys under a secret; the service's choice unasked"
    )
    seed: StrictInt | None = Field(None, ge=0, lt=1 << 64, description="seed of the key hash; drawn unasked")
    options: dict[str, StrictStr | StrictBool | StrictInt | StrictFloat] = Field(
        default_factory=dict, description="further parameters of the kind, by name"
    )


class Change(Asked):
    """What may be changed of a filter."""

    name: Name | None = None
    replace: StrictBool = Field(
        default=False, description="takes the new name over from the filter that has it, in one step"
    )
    expire: float | None = Field(None, gt=0, le=1e9, description="seconds from now; null: never")


class Source(Asked):
    """The filter that is merged."""

    source: Name


class Copy(Asked):
    """The name of a copy."""

    name: Name
    replace: StrictBool = False


class Time(Asked):
    """A time of a filter with a window."""

    now: float | None = Field(None, ge=0, le=1e12, description="seconds; the clock's unasked")


class NewToken(Asked):
    """A token to be made."""

    name: str = Field(min_length=1, max_length=128, pattern=NAME)
    scopes: list[Annotated[str, Field(pattern="^(read|write|admin)$")]] = Field(min_length=1, max_length=3)
    patterns: list[Annotated[str, Field(min_length=1, max_length=128)]] = Field(
        default_factory=list, max_length=100, description="names of filters, * for any text; none: all"
    )


_KEY = {"anyOf": [{"type": kind} for kind in ("string", "integer", "number", "boolean", "array")]}
#: A body with a key, or with several.
SOME_KEYS = {
    "type": "object",
    "properties": {
        "key": _KEY,
        "keys": {"type": "array", "items": _KEY},
        "values": {
            "type": "array",
            "items": {"type": "integer", "minimum": 0},
            "description": "with add: a label or value a key, for kinds that have such",
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
    """What a filter is and holds."""

    id: int
    name: str
    kind: str
    backend: str = "memory"
    capacity: int
    target_fpr: float
    num_added: int = Field(description="keys that were new when they were added, less those removed")
    fpr: float = Field(description="false-positive rate at the present number of keys")
    over_capacity: bool = Field(description="true: more keys than capacity, and fpr is above target_fpr")
    fill: float | None
    nbytes: int
    estimated: float | None
    version: int | None = Field(
        description="moves with every change; null in Redis, where any node changes it"
    )
    created: int
    expires: int | None
    model_config = ConfigDict(extra="allow")


class Page(BaseModel):
    """Some filters."""

    filters: list[Filter]
    next: str | None = Field(description="what to send as after for the next page; null at the end")


class Sample(BaseModel):
    """What a filter told of itself at one time (milliseconds since 1970)."""

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


class Problem(BaseModel):
    """A refusal (RFC 9457); code is stable, detail is for people."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    request: str
    model_config = ConfigDict(extra="allow")
