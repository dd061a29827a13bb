"""A token with patterns: both names of a change of names are its own, on both ports."""

from __future__ import annotations

import pytest
import redis

MINE, YOURS = "mine:", "yours:"


@pytest.fixture(scope="module")
def limited(new_service):
    service = new_service()
    for name in ("mine:a", "mine:b", "yours:a", "yours:b"):
        service.create(name, seed=7, keyed=False)
    everything = {"name": "root", "scopes": ["read", "write", "admin"]}
    root = {"authorization": f"Bearer {service.http.post('/v1/tokens', json=everything).json()['token']}"}
    some = {"name": "some", "scopes": ["read", "write"], "patterns": ["mine:*"]}
    token = service.http.post("/v1/tokens", json=some, headers=root).json()["token"]
    return service, token, root


def names(service, root):
    return sorted(one["name"] for one in service.http.get("/v1/filters", headers=root).json()["filters"])


REFUSED = [
    ("PATCH", "/v1/filters/mine:a", {"name": "yours:c"}),
    ("PATCH", "/v1/filters/mine:a", {"name": "yours:b", "replace": True}),
    ("PATCH", "/v1/filters/mine:a", {"name": "yours:c", "expire": 1000}),
    ("PATCH", "/v1/filters/yours:a", {"name": "mine:c"}),
    ("PATCH", "/v1/filters/yours:a", {"expire": 1000}),
    ("POST", "/v1/filters/mine:a/clone", {"name": "yours:c"}),
    ("POST", "/v1/filters/mine:a/clone", {"name": "yours:b", "replace": True}),
    ("POST", "/v1/filters/yours:a/clone", {"name": "mine:c"}),
    ("POST", "/v1/filters/mine:a/merge", {"source": "yours:a"}),
    ("POST", "/v1/filters/yours:a/merge", {"source": "mine:a"}),
    ("POST", "/v1/filters", {"name": "yours:c", "capacity": 10}),
    ("POST", "/v1/filters/yours:c/freeze?kind=ribbon", {"keys": ["a"]}),
    ("PUT", "/v1/filters/yours:c/dump", None),
]


@pytest.mark.parametrize(("method", "path", "body"), REFUSED)
def test_http_asks_about_both_names(limited, method, path, body):
    service, token, root = limited
    before = names(service, root)
    headers = {"authorization": f"Bearer {token}"}
    answer = service.http.request(method, path, json=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "denied")
    assert names(service, root) == before
    expires = [one["expires"] for one in service.http.get("/v1/filters", headers=root).json()["filters"]]
    assert expires == [None] * len(before), "nothing is half done"


COMMANDS = [
    "RENAME mine:a yours:c", "RENAME yours:a mine:c", "RENAME mine:a yours:b",
    "RENAMENX mine:a yours:c", "RENAMENX yours:a mine:c",
    "DEL mine:a yours:a", "UNLINK yours:a mine:a", "EXISTS mine:a yours:a",
    "BLOOM.MERGE mine:a yours:a", "BLOOM.MERGE yours:a mine:a", "BLOOM.MERGE mine:a mine:b yours:a",
    "EXPIRE yours:a 10", "BLOOM.CREATE yours:c KIND bloom capacity 10", "BF.ADD yours:c x",
]  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in MULTI"])
def test_resp_asks_about_all_names(limited, words, inside):
    service, token, root = limited
    before = names(service, root)
    host, _, port = service.resp.rpartition(":")
    with redis.Redis(host, int(port), password=token) as client, client.pipeline(transaction=inside) as many:
        many.execute_command(*words.split())
        with pytest.raises(redis.RedisError, match=r"NOPERM|No permissions|EXECABORT"):
            many.execute()
    assert names(service, root) == before


def test_its_own_names_it_changes(limited):
    service, token, _ = limited
    headers = {"authorization": f"Bearer {token}"}
    changes = [
        ("PATCH", "/v1/filters/mine:a", {"name": "mine:c"}, 200),
        ("POST", "/v1/filters/mine:c/clone", {"name": "mine:a"}, 201),
        ("POST", "/v1/filters/mine:a/merge", {"source": "mine:b"}, 200),
        ("DELETE", "/v1/filters/mine:c", None, 204),
    ]
    for method, path, body, status in changes:
        assert service.http.request(method, path, json=body, headers=headers).status_code == status
    host, _, port = service.resp.rpartition(":")
    with redis.Redis(host, int(port), password=token) as client:
        assert client.execute_command("RENAME", "mine:a", "mine:d")
        assert client.execute_command("RENAME", "mine:d", "mine:a")
