"""Every HTTP action on every kind answers as a filter in a process does, or refuses and changes nothing.

The kinds are those of the registry, and banks; a new kind is part of the test by itself, and a new action
fails it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from service.banks import BankKind, pairs
from support import Variant, variants_with

import fullbloom

if TYPE_CHECKING:
    from collections.abc import Callable

TEXTS = [f"key {i}" for i in range(60)]
NUMBERS = list(range(60))


def kinds() -> list[Any]:
    rows: dict[str, Variant] = {}
    for variant in [*variants_with(), *variants_with("numbers"), *variants_with("worlds")]:
        rows.setdefault(variant.name, variant)
    assert len(rows) == len(fullbloom.variants())
    return [*rows.values(), BankKind()]


def add(f: Any, keys: list[Any]) -> list[Any]:
    return [f.add(key) for key in keys]


def look_up(f: Any, keys: list[Any]) -> list[Any]:
    # A cascade has no `in`.
    return list(f.includes_many(keys) if hasattr(f, "includes_many") else f.contains_many(keys))


def remove(f: Any, keys: list[Any]) -> list[Any]:
    return list(f.discard_many(keys))


def count(f: Any, keys: list[Any]) -> list[Any]:
    return list(f.count_many(keys))


def get_values(f: Any, keys: list[Any]) -> list[Any]:
    return [(f.label(key) or 0) if hasattr(f, "label") else f.get(key) for key in keys]


#: Actions on keys: the member of the response, and the operation in a process.
ON_KEYS: dict[str, tuple[str, Callable[[Any, list[Any]], list[Any]]]] = {
    "add": ("new", add),
    "check": ("found", look_up),
    "remove": ("removed", remove),
    "count": ("counts", count),
    "values": ("values", get_values),
}
#: Actions on the whole filter, each tested below.
WHOLE = {"clear", "advance", "merge", "clone", "positions"}
#: Actions that do not depend on the kind.
OTHER = {"history", "dump", "freeze", "secret", "rates", "owners"}


class Subject:
    """A filter of the service, and the same filter in this process."""

    def __init__(self, service: Any, variant: Any):
        self.http, self.variant = service.http, variant
        self.path = f"/v1/filters/kind:{variant.name}"
        self.keys: list[Any] = NUMBERS if variant.can("numbers") else TEXTS
        if isinstance(variant, BankKind):
            self.keys = pairs(self.keys)
        options = {"universe": 1000} if variant.can("zones") else {}
        self.file = variant.build_from(self.keys, 1000, seed=7, **options).to_bytes()

    def put(self) -> Any:
        """Put the filter back as it was, and return the one in this process."""
        answer = self.http.put(f"{self.path}/dump", content=self.file, params={"replace": "true"})
        assert answer.status_code in (200, 201), answer.text
        return (
            self.variant.load(self.file) if isinstance(self.variant, BankKind) else fullbloom.loads(self.file)
        )

    def bytes(self) -> bytes:
        return self.http.get(f"{self.path}/dump").content

    def post(self, action: str, **options: Any) -> Any:
        """Post an action; a refusal is of the client's making and changes nothing."""
        before = self.bytes()
        answer = self.http.post(f"{self.path}/{action}", **options)
        if answer.status_code >= 300:
            assert answer.status_code in (400, 409, 422), (self.path, action, answer.text)
            assert answer.json()["detail"], (self.path, action)
            assert self.bytes() == before, (self.path, action, answer.text)
            return None
        return answer


@pytest.fixture(scope="module")
def server(new_service):
    return new_service("--durability", "off")


def in_process(operation: Any, *arguments: Any) -> Any:
    """Return the result in this process; None if the kind lacks the operation."""
    try:
        return operation(*arguments)
    except (AttributeError, TypeError, ValueError):
        return None


def test_every_action_is_in_the_tables(server):
    paths = server.http.get("/openapi.json").json()["paths"]
    actions = {match[1] for path in paths if (match := re.fullmatch(r"/v1/filters/\{name\}/(\w+)", path))}
    assert actions == {*ON_KEYS, *WHOLE, *OTHER}


@pytest.mark.parametrize("variant", kinds(), ids=lambda variant: variant.name)
def test_actions_on_keys_equal_a_filter_in_a_process(server, variant):
    subject = Subject(server, variant)
    fresh: list[Any] = [900, 901] if variant.can("numbers") else ["fresh 1", "fresh 2"]
    if isinstance(variant, BankKind):
        fresh = pairs(fresh)
    for action, (member, operation) in ON_KEYS.items():
        for keys in (subject.keys[:9], fresh, [subject.keys[0], fresh[0], subject.keys[0]]):
            f = subject.put()
            answer, case = subject.post(action, json={"keys": keys}), (variant.name, action, keys)
            right = in_process(operation, f, keys)
            if right is None:
                assert answer is None, (case, answer and answer.text)
            else:
                assert answer is not None, case
                assert answer.json()[member] == right, case
                assert subject.bytes() == f.to_bytes(), case


@pytest.mark.parametrize("variant", kinds(), ids=lambda variant: variant.name)
def test_actions_on_whole_filters_equal_a_filter_in_a_process(server, variant):
    subject = Subject(server, variant)
    for action, body, operation in (
        ("clear", None, lambda f: f.clear()),
        ("merge", {"source": f"kind:{variant.name}"}, lambda f: f.merge(f.copy())),
    ):
        f = subject.put()
        right = in_process(lambda f: [operation(f)], f)  # noqa: B023
        answer = subject.post(action, json=body)
        assert (answer is None) == (right is None), (variant.name, action)
        if right is not None:
            assert subject.bytes() == f.to_bytes(), (variant.name, action)
    f = subject.put()
    answer = subject.post("advance", json={"now": 10})
    assert answer is None or isinstance(f.window, float), variant.name
    subject.put()
    name = f"copy:{variant.name}"
    assert subject.post("clone", json={"name": name}) is not None
    assert server.http.get(f"/v1/filters/{name}/dump").content == subject.file
    right = in_process(lambda f: f.positions(subject.keys[0]), f)
    for action in ("info", "export", "clear", "remove"):
        answer = server.http.post(f"{subject.path}/owners/{action}", json={"owner": "heavy"})
        assert answer.status_code == (200 if isinstance(variant, BankKind) else 422), (
            variant.name,
            answer.text,
        )
    subject.put()
    kind = "integer" if variant.can("numbers") else "text"
    answer = server.http.get(f"{subject.path}/positions", params={"key": str(subject.keys[0]), "type": kind})
    assert answer.status_code == (422 if right is None else 200), (variant.name, answer.text)
    assert right is None or answer.json()["positions"] == right, variant.name


@pytest.mark.parametrize("variant", kinds()[:-1], ids=lambda variant: variant.name)
def test_the_state_of_a_filter_is_that_of_one_in_a_process(server, variant):
    subject = Subject(server, variant)
    f = subject.put()
    state = server.http.get(subject.path).json()
    assert (state["num_added"], state["nbytes"], state["fill"]) == (f.num_added, f.nbytes, f.fill)
    assert state["fpr"] == pytest.approx(f.fpr())
    for name, value in f.info().items():
        if name in state["details"]:
            assert state["details"][name] == (pytest.approx(value) if isinstance(value, float) else value), (
                name
            )
    if hasattr(f, "num_saturated"):
        assert state["details"]["num_saturated"] == f.num_saturated
