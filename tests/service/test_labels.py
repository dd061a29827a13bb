"""Labels and values that were written over HTTP are read over HTTP, by the client as well."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest
import redis

import fullbloom
from fullbloom import registry
from fullbloom.client import ServiceError

KINDS = [row for row in fullbloom.variants() if registry.is_open(row, "key", "value")]
KEYS = ["ada", 7, ("a", 1.5), "é"]


def create(service, row):
    name = f"labels:{row['name']}"
    known = {parameter for parameter, *_ in row["parameters"]}
    settings = {"capacity": 1000, "fpr": 0.001} if "fpr" in known else {"capacity": 1000}
    options = {"labels": 3} if "labels" in known else {}
    answer = service.http.post(
        "/v1/filters", json={"name": name, "kind": row["name"], "options": options, **settings}
    )
    assert answer.status_code == 201, answer.text
    return name


@pytest.mark.parametrize("row", KINDS, ids=lambda row: row["name"])
def test_written_labels_and_values_are_read(service, row):
    name = create(service, row)
    values = [1, 2, 3, 1]
    with fullbloom.Client(service.url) as client:
        labelled = client.filter(name)
        labelled.add_pairs(KEYS, values)
        read = labelled.value_many(KEYS)
        # A label that was given is among those of the key; kinds that keep one keep this one.
        assert all(
            found & value == value or found == value for found, value in zip(read, values, strict=True)
        )
        assert labelled.value("ada") == read[0]
        assert labelled.value_many(["absent-1", "absent-2"]) == [0, 0]
        with pytest.raises(ServiceError, match="array of whole numbers"):
            labelled.add_pairs(["x"], [-1])
        with pytest.raises(ServiceError, match="1 keys and 2 values"):
            labelled.add_pairs(["x"], [1, 2])
    url = f"/v1/filters/{name}/values"
    body = {"keys": KEYS}
    assert service.http.post(url, json=body).json() == {"values": read, "keys": len(KEYS)}
    lines = service.http.post(url, json=body, headers={"accept": "application/x-ndjson"}).text
    assert lines == "".join(f"{value}\n" for value in read)
    arrow = {"accept": "application/vnd.apache.arrow.stream"}
    stream = pa.ipc.open_stream(service.http.post(url, json=body, headers=arrow).content).read_all()
    assert stream.column("value").to_pylist() == read

    async def again():
        async with fullbloom.AsyncClient(service.url) as client:
            labelled = client.filter(name)
            await labelled.add_pairs(["later"], [2])
            return await labelled.value_many(KEYS), await labelled.value("later")

    assert asyncio.run(again())[0] == read


def test_absent_keys_of_a_map_have_no_value(service):
    """As `BloomierMap.get` answers None: null, and not 0, which is a value."""
    ages = fullbloom.BloomierMap.build({"ada": 36, "zero": 0})
    keys = ["ada", "absent", "zero", "none"]
    expected = ages.get_many(keys)
    assert expected == [36, None, 0, None]
    url = "/v1/filters/ages/values"
    service.http.put("/v1/filters/ages/dump", content=ages.to_bytes())
    assert service.http.post(url, json={"keys": keys}).json() == {"values": expected, "keys": 4}
    for key, value in zip(keys, expected, strict=True):
        assert service.http.post(url, json={"key": key}).json() == {"value": value}
    lines = service.http.post(url, json={"keys": keys}, headers={"accept": "application/x-ndjson"})
    assert lines.text == "36\nnull\n0\nnull\n"
    for asked in (keys, keys * 5, ["ada"], []):
        arrow = {"accept": "application/vnd.apache.arrow.stream"}
        answer = service.http.post(url, json={"keys": asked}, headers=arrow)
        column = pa.ipc.open_stream(answer.content).read_all().column("value")
        assert column.to_pylist() == ages.get_many(asked)
        assert column.type == pa.uint64()
        column.validate(full=True)
    with fullbloom.Client(service.url) as client:
        ages = client.filter("ages")
        assert ages.value_many(keys) == expected
        assert [ages.value(key) for key in keys] == expected
    host, _, port = service.resp.rpartition(":")
    with redis.Redis(host, int(port)) as client:
        assert client.execute_command("BLOOM.VALUES", "ages", *keys) == expected

    async def again():
        async with fullbloom.AsyncClient(service.url) as client:
            ages = client.filter("ages")
            return await ages.value_many(keys), await ages.value("absent")

    assert asyncio.run(again()) == (expected, None)


def test_other_kinds_refuse_labels_and_values_by_name(service):
    service.create("labels:none")
    answer = service.http.post("/v1/filters/labels:none/values", json={"key": "a"})
    assert (answer.status_code, answer.json()["code"]) == (422, "unsupported")
    assert "BloomFilter" in answer.json()["detail"]
