"""A filter takes the place of another in one step: nobody finds nothing, and a refusal changes nothing."""

from __future__ import annotations

import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from support import LONG

import fullbloom

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REFUSALS = 1600 if LONG else 60
LIVE, NEW = "/v1/filters/live", "/v1/filters/new"


def make(service, name: str, *keys: str) -> None:
    service.create(name, keyed=False, seed=7)
    answer = service.http.post(f"/v1/filters/{name}/add", json={"keys": ["marker", *keys]})
    assert answer.status_code == 200


@contextmanager
def beside(url: str, work: Callable[[httpx.Client], None]) -> Iterator[None]:
    """Do ``work`` again and again in another thread; what it raises is raised at the end."""
    over, raised = threading.Event(), []

    def run() -> None:
        try:
            with httpx.Client(base_url=url, timeout=60) as client:
                while not over.is_set():
                    work(client)
        except BaseException as error:  # noqa: BLE001 - raised below
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(60)
    if raised:
        raise raised[0]


@pytest.mark.long
def test_a_refused_swap_changes_nothing(start):
    service = start("--durability", "off")
    make(service, "live")
    make(service, "new")
    refused = 0

    def change(client: httpx.Client) -> None:
        client.post(f"{NEW}/add", json={"key": "more"})
        client.post(f"{LIVE}/add", json={"key": "more"})

    def swap() -> int:
        """The status of a swap or a replacement on the condition that nothing has changed."""
        if refused % 2:
            tag = {"if-match": service.http.get(LIVE).headers["etag"]}
            return service.http.put(f"{LIVE}/dump?replace=true", content=dump, headers=tag).status_code
        tag = {"if-match": service.http.get(NEW).headers["etag"]}
        return service.http.patch(NEW, json={"name": "live", "replace": True}, headers=tag).status_code

    dump = service.http.get(f"{NEW}/dump").content
    with beside(service.url, change):
        while refused < REFUSALS:
            status = swap()
            found = service.http.post(f"{LIVE}/check", json={"key": "marker"})
            assert (status, found.status_code) in {(412, 200), (200, 200), (201, 200)}, found.text
            assert found.json() == {"found": True}
            if status == 412:
                refused += 1
            elif status == 200:
                make(service, "new")
            assert service.http.get(NEW).status_code == 200
    # The registry has what the store has.
    assert [one["name"] for one in service.http.get("/v1/filters").json()["filters"]] == ["live", "new"]


def test_lookups_find_their_keys_during_a_swap(service):
    make(service, "live")

    def look(client: httpx.Client) -> None:
        answer = client.post(f"{LIVE}/check", json={"key": "marker"})
        assert (answer.status_code, answer.json()) == (200, {"found": True})
        assert client.get(LIVE).status_code == 200

    with beside(service.url, look):
        for turn in range(20):
            make(service, "new", f"turn {turn}")
            tag = {"if-match": service.http.get(NEW).headers["etag"]}
            match turn % 4:
                case 0:
                    change = {"name": "live", "replace": True, "expire": 1000}
                    answer = service.http.patch(NEW, json=change, headers=tag)
                    assert answer.json()["expires"] is not None
                case 1:
                    dump = service.http.get(f"{NEW}/dump").content
                    answer = service.http.put(f"{LIVE}/dump?replace=true", content=dump)
                case 2:
                    answer = service.http.post(
                        f"{NEW}/clone", json={"name": "live", "replace": True}, headers=tag
                    )
                case _:
                    keys = {"keys": ["marker", f"turn {turn}"]}
                    answer = service.http.post(f"{LIVE}/freeze?kind=xor&replace=true", json=keys)
            assert answer.status_code in {200, 201}, answer.text
            assert answer.json()["name"] == "live"
            there = service.http.post(f"{LIVE}/check", json={"key": f"turn {turn}"})
            assert there.json() == {"found": True}, turn
            service.http.delete(NEW)


def test_a_replacement_is_one_atomic_change(service):
    data = fullbloom.BloomFilter(100, seed=3).to_bytes()
    put = service.http.put
    # Nothing: with replace it is made, without and on a condition it is not.
    never = {"if-match": '"1-1"'}
    refused = put("/v1/filters/one/dump?replace=true", content=data, headers=never)
    assert refused.status_code in {404, 412}
    assert service.http.get("/v1/filters/one").status_code == 404
    assert put("/v1/filters/one/dump?replace=true", content=data).status_code == 201
    assert put("/v1/filters/one/dump", content=data).status_code == 409
    first = service.http.get("/v1/filters/one").json()["id"]
    assert put("/v1/filters/one/dump?replace=true", content=data).json()["id"] > first
    # Many at once, all of which may replace each other.
    answers = []
    threads = [
        threading.Thread(
            target=lambda: answers.append(
                httpx.put(f"{service.url}/v1/filters/many/dump?replace=true", content=data, timeout=60)
            )
        )
        for _ in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} == {201}
    # Each has a number of its own. The last to take the name has it; the others are gone.
    ids = {answer.json()["id"] for answer in answers}
    assert len(ids) == len(answers)
    assert service.http.get("/v1/filters/many").json()["id"] in ids
    assert [one["name"] for one in service.http.get("/v1/filters").json()["filters"]].count("many") == 1


def test_http_does_not_replace_a_note(service):
    redis = pytest.importorskip("redis", reason="redis-py is not installed")
    host, _, port = service.resp.rpartition(":")
    with redis.Redis(host, int(port), socket_timeout=60) as client:
        client.set("note", "text")
        make(service, "filter")
        data = service.http.get("/v1/filters/filter/dump").content
        for answer in (
            service.http.patch("/v1/filters/filter", json={"name": "note", "replace": True}),
            service.http.put("/v1/filters/note/dump?replace=true", content=data),
            service.http.post("/v1/filters/filter/clone", json={"name": "note", "replace": True}),
            service.http.post("/v1/filters/note/freeze?kind=xor&replace=true", json={"keys": ["a"]}),
        ):
            assert (answer.status_code, answer.json()["code"]) == (409, "exists")
        assert service.http.delete("/v1/filters/note").status_code == 404
        assert client.get("note") == b"text"


def test_the_swap_on_the_page_works(service, tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "service.md").read_text(encoding="utf-8")
    block = page.partition("### Rebuild and swap")[2].partition("```text\n")[2].partition("```")[0]
    service.create("urls")
    lines = block.replace("localhost:8080", service.url.removeprefix("http://")).splitlines()
    script = [line.removeprefix("$ ") for line in lines if line.startswith(("$ ", "    "))]
    printed = [line for line in lines if not line.startswith(("$ ", "    "))]
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == printed
    assert service.http.get("/v1/filters/urls").json()["capacity"] == 2_000_000
    assert service.http.get("/v1/filters/urls.new").status_code == 404
