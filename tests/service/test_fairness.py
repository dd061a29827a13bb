"""Requests that wait for a filter keep nobody else waiting; refusals wait for the disk."""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from support import eventually

#: Seconds in which a request is answered that need not wait, on a busy machine; in which another one is not.
SOON, WAITS = 2.0, 0.5
#: Adds to a strict filter wait for a merge into it, whatever its kind.
KINDS = ["counting", "cuckoo"]
ADDS = 64


def begun(call):
    """Run a call in a thread; its future."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(call)
    pool.shutdown(wait=False)
    return future


@pytest.fixture
def paused_merge(start, slow_disk):
    """A function that starts a service in which a merge into "into" waits for the disk."""
    with contextlib.ExitStack() as pause:  # a test that fails leaves no pause to the next one

        def begin(kind, **environment):
            service = start("--durability", "everysec", **slow_disk.environment, **environment)
            for name in ("into", "from", "other"):
                service.create(name, kind=kind, capacity=2_000_000, seed=7, keyed=False, strict=True)
            pause.enter_context(slow_disk.paused("filters"))
            merge = begun(lambda: post(service, "into/merge", {"source": "from"}))
            # A lookup goes on; an add waits once the merge has the filter, before it writes the file.
            eventually(lambda: slow_disk.has_paused("filters"))
            return service, merge, pause

        yield begin


def post(service, path, body):
    return httpx.post(f"{service.url}/v1/filters/{path}".rstrip("/"), json=body, timeout=60)


def soon(call):
    begin = time.monotonic()
    answer = call()
    assert time.monotonic() - begin < SOON
    return answer


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.timed
def test_requests_for_other_filters_are_answered_during_a_merge(paused_merge, kind):
    service, merge, pause = paused_merge(kind)
    with ThreadPoolExecutor(ADDS * 2) as clients, pause:
        adds = [clients.submit(post, service, "into/add", {"key": number}) for number in range(ADDS // 2)]
        adds += [clients.submit(post, service, "into/remove", {"key": "none"}) for _ in range(ADDS // 4)]
        merges = [clients.submit(post, service, "into/merge", {"source": "from"}) for _ in range(ADDS // 8)]
        merges += [
            clients.submit(httpx.patch, f"{service.url}/v1/filters/into", json={"expire": 600}, timeout=60)
            for _ in range(ADDS // 16)
        ]
        time.sleep(WAITS)
        for _ in range(5):
            assert soon(lambda: post(service, "other/add", {"key": "x"})).status_code == 200
            assert soon(lambda: httpx.get(f"{service.url}/metrics")).status_code == 200
            assert soon(lambda: httpx.get(f"{service.url}/v1/filters/other")).status_code == 200
            # Lookups do not queue behind changes that wait.
            assert soon(lambda: post(service, "into/check", {"keys": list(range(20_000))})).status_code == 200
            assert soon(lambda: httpx.get(f"{service.url}/v1/filters?limit=10")).status_code == 200
        assert not any(one.done() for one in (merge, *adds, *merges))
        pause.close()
        assert {one.result().status_code for one in (merge, *adds, *merges)} == {200}
    found = post(service, "into/check", {"keys": list(range(ADDS // 2))}).json()["found"]
    assert all(found)


@pytest.mark.long
@pytest.mark.timed
def test_few_requests_wait_for_one_filter(paused_merge):
    service, merge, pause = paused_merge("counting", FULLBLOOM_LIMITS__REQUESTS="40")
    with ThreadPoolExecutor(30) as clients, pause:
        adds = [clients.submit(post, service, "into/add", {"key": number}) for number in range(30)]
        eventually(lambda: sum(one.done() for one in adds) >= 20)
        refused = [one.result() for one in adds if one.done()]
        assert {(one.status_code, one.json()["code"], one.headers["retry-after"]) for one in refused} == {
            (503, "overloaded", "1")
        }
        assert soon(lambda: post(service, "other/add", {"key": "x"})).status_code == 200
        pause.close()
        statuses = sorted(one.result().status_code for one in adds)
    assert merge.result().status_code == 200
    # Some may have been refused after the others were asked for.
    assert statuses.count(503) >= len(refused)
    assert statuses.count(200) + statuses.count(503) == 30
    assert statuses.count(200) > 0


REFUSALS = {
    "create a name that exists": (409, "POST", "/v1/filters", {"name": "new", "capacity": 10}),
    "clone to it": (409, "POST", "/v1/filters/old/clone", {"name": "new"}),
    "rename to it": (409, "PATCH", "/v1/filters/old", {"name": "new"}),
    "rename what is gone": (404, "PATCH", "/v1/filters/gone", {"name": "another"}),
    "delete it": (404, "DELETE", "/v1/filters/gone", None),
    "expire it": (404, "PATCH", "/v1/filters/gone", {"expire": 10}),
    "add to it": (404, "POST", "/v1/filters/gone/add", {"key": "a"}),
    "add to an older version": (412, "POST", "/v1/filters/old/add", {"key": "a"}),
    "clear it": (412, "POST", "/v1/filters/old/clear", {}),
    "delete the older version": (412, "DELETE", "/v1/filters/old", None),
}


@pytest.mark.long
@pytest.mark.timed
def test_refusals_wait_for_the_changes_that_they_depend_on(start, slow_disk):
    service = start("--durability", "always", **slow_disk.environment)
    for name in ("old", "gone"):
        service.create(name)
    tag = {"if-match": service.http.get("/v1/filters/old").headers["etag"]}

    def request(method, path, body, headers=None):
        given = {} if body is None else {"json": body}
        return httpx.request(method, service.url + path, headers=headers, timeout=60, **given)

    with slow_disk.paused("log"), ThreadPoolExecutor(32) as clients:
        changes = [
            clients.submit(request, "POST", "/v1/filters", {"name": "new", "capacity": 10}),
            clients.submit(request, "DELETE", "/v1/filters/gone", None),
            clients.submit(request, "POST", "/v1/filters/old/add", {"key": "ada"}),
        ]
        eventually(lambda: request("POST", "/v1/filters/old/check", {"key": "ada"}).json() == {"found": True})
        eventually(lambda: request("GET", "/v1/filters/gone", None).status_code == 404)
        eventually(lambda: request("GET", "/v1/filters/new", None).status_code == 200)
        refusals = {
            what: clients.submit(request, method, path, body, tag if status == 412 else None)
            for what, (status, method, path, body) in REFUSALS.items()
        }
        time.sleep(1.0)
        told = [what for what, one in refusals.items() if one.done()]
        # Requests that change nothing do not wait.
        assert soon(lambda: request("GET", "/v1/filters/gone", None)).status_code == 404
        assert soon(lambda: request("POST", "/v1/filters/gone/check", {"key": "a"})).status_code == 404
        assert not told, told
        assert not any(one.done() for one in changes)
        service.kill()
    service.start()
    # What was not told was not promised: the disk may have it or not, and nobody relied on it.
    service.create("after")


def test_refusals_are_sent_once_the_disk_has_the_changes(start, slow_disk):
    service = start("--durability", "always", **slow_disk.environment)
    service.create("old")
    tag = {"if-match": service.http.get("/v1/filters/old").headers["etag"]}
    with ThreadPoolExecutor(4) as clients:
        with slow_disk.paused("log"):
            add = clients.submit(post, service, "old/add", {"key": "ada"})
            eventually(lambda: post(service, "old/check", {"key": "ada"}).json() == {"found": True})
            url = f"{service.url}/v1/filters/old"
            drop = clients.submit(httpx.delete, url, headers=tag, timeout=60)
            one = clients.submit(post, service, "", {"name": "new", "capacity": 10})
            two = clients.submit(post, service, "", {"name": "new", "capacity": 10})
            time.sleep(WAITS)
            assert not any(request.done() for request in (add, drop, one, two))
        assert (add.result().status_code, drop.result().status_code) == (200, 412)
        assert sorted(request.result().status_code for request in (one, two)) == [201, 409]


def test_a_claim_that_fails_leaves_the_name_to_the_next_request(start):
    """The second of two creations is not refused as taken while the first may still fail."""
    service = start(FULLBLOOM_LIMITS__TOTAL_BYTES=str(1 << 20), FULLBLOOM_LIMITS__FILTER_BYTES=str(1 << 20))
    together = threading.Barrier(2)

    def create(capacity):
        together.wait(60)
        return post(service, "", {"name": "new", "capacity": capacity})

    with ThreadPoolExecutor(2) as clients:
        for _ in range(20):
            large, small = clients.submit(create, 100_000_000), clients.submit(create, 1000)
            assert large.result().status_code in {409, 413}
            assert small.result().status_code == 201
            assert service.http.delete("/v1/filters/new").status_code == 204
