"""A bank in the service: pairs in every form, limits, figures, and kills."""

from __future__ import annotations

import io
import json
import random
import struct
import threading

import pytest
from service.banks import create, load_dump, own, post
from tests.support import eventually

import fullbloom

PAIRS = [("ada", "sorting"), ("ada", 7), ("alan", "sorting"), (7, 2.5), (True, ("a", 1)), ((1, "x"), "é\t")]


@pytest.fixture(scope="module")
def server(new_service):
    return new_service("--plain", "--durability", "off")


def test_pairs_of_every_type_of_key_equal_a_bank_in_a_process(server):
    path, expected = create(server), own([])
    new = [expected.add(*pair) for pair in (*PAIRS, *PAIRS[:2])]
    assert post(server, f"{path}/add", keys=[*PAIRS, *PAIRS[:2]])["new"] == new
    assert load_dump(server, path) == expected.to_bytes()
    asked = [*PAIRS, ("alan", 7), ("sorting", "ada"), ("7", 2.5), (7, "2.5"), (1, ("a", 1)), ((1, "x"), "é")]
    assert post(server, f"{path}/check", keys=asked)["found"] == [pair in expected for pair in asked]
    assert post(server, f"{path}/check", key=PAIRS[5]) == {"found": True}
    assert post(server, f"{path}/add", key=["grace", 1]) == {"new": True}


def test_every_form_of_a_body_adds_the_same_pairs(server):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pairs = [(f"owner {at % 5}", f"key {at}") for at in range(200)]
    expected = own(pairs)
    sink = io.BytesIO()
    table = pa.table(
        {"owner": [owner for owner, _ in pairs], "key": [key for _, key in pairs], "other": range(200)}
    )
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table, max_chunksize=70)
    words = fullbloom.hash_many([part for pair in pairs for part in pair], seed=7)
    forms = {
        "application/json": json.dumps({"keys": pairs}).encode(),
        "application/x-ndjson": "\n".join(json.dumps(pair) for pair in pairs).encode(),
        "text/plain": "".join(f"{owner}\t{key}\r\n" for owner, key in pairs).encode(),
        "application/vnd.apache.arrow.stream": sink.getvalue(),
        "application/x-fullbloom-hashes": struct.pack(f"<{len(words)}Q", *words),
    }
    for form, body in forms.items():
        path, headers = create(server), {"content-type": form, "accept": "application/json"}
        for action, member, right in (("add", "new", True), ("check", "found", True)):
            answer = server.http.post(f"{path}/{action}", content=body, headers=headers)
            assert answer.status_code == 200, (form, answer.text)
            assert answer.json() == {member: [right] * 200, "keys": 200, "yes": 200}, (form, action)
        if form.endswith("hashes"):  # which do not show the types of their keys
            found = fullbloom.loads(load_dump(server, path))
            assert found == expected
        else:
            assert load_dump(server, path) == expected.to_bytes(), form


@pytest.mark.parametrize(
    ("form", "body"),
    [
        ("application/json", b'{"key": "ada"}'),
        ("application/json", b'{"key": ["ada"]}'),
        ("application/json", b'{"key": []}'),
        ("application/json", b'{"key": ["ada", "x", "y"]}'),
        ("application/json", b'{"keys": [["ada", "x"], ["ada"]]}'),
        ("application/json", b'{"keys": [["ada", null]]}'),
        ("application/json", b'{"keys": [[{}, "x"]]}'),
        ("application/json", b'{"keys": [["ada", "x"]], "values": [1]}'),
        ("application/json", b'{"keys": [["ada", "x"'),
        ("application/json", b'{"keys": [[' + b"[" * 100_000),
        ("application/x-ndjson", b'["ada", "x"]\n"ada"\n'),
        ("text/plain", b"ada\tx\nada\n"),
        ("text/plain", b"ada\t" + b"x" * 70_000),
        ("text/plain", b"a" * 70_000 + b"\tx"),
        ("application/x-fullbloom-hashes", bytes(24)),
        ("application/x-fullbloom-hashes", bytes(15)),
        ("application/vnd.apache.arrow.stream", b"no stream"),
    ],
)
def test_a_key_that_is_not_a_pair_is_refused_and_changes_nothing(server, form, body):
    path = create(server)
    post(server, f"{path}/add", key=["ada", "sorting"])
    before = load_dump(server, path)
    for action in ("add", "check"):
        answer = server.http.post(f"{path}/{action}", content=body, headers={"content-type": form})
        assert answer.status_code in (400, 413, 422), (action, answer.text)
        assert load_dump(server, path) == before


def test_a_stream_of_one_column_is_refused(server):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path = create(server)
    for columns in (
        {"key": ["a"]},
        {"owner": ["a", None], "key": ["b", "c"]},
        {"owner": ["a"], "key": [None]},
    ):
        sink, table = io.BytesIO(), pa.table(columns)
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        headers = {"content-type": "application/vnd.apache.arrow.stream"}
        answer = server.http.post(f"{path}/add", content=sink.getvalue(), headers=headers)
        assert answer.status_code == 400, answer.text
    assert fullbloom.loads(load_dump(server, path)).num_added == 0


def test_too_many_pairs_are_refused(new_service):
    server = new_service("--durability", "off", FULLBLOOM_LIMITS__BATCH_KEYS="10")
    server.http.post("/v1/filters", json={"name": "b", "kind": "bank", "capacity": 50})
    path = "/v1/filters/b"
    assert len(post(server, f"{path}/add", keys=[["a", n] for n in range(10)])["new"]) == 10
    assert post(server, f"{path}/owners/clear", owners=list(range(10))) == {"cleared": [False] * 10}
    for sent in (
        {"json": {"keys": [["a", n] for n in range(11)]}},
        {"content": b"a\tb\n" * 11, "headers": {"content-type": "text/plain"}},
        {"content": bytes(16 * 11), "headers": {"content-type": "application/x-fullbloom-hashes"}},
    ):
        assert server.http.post(f"{path}/add", **sent).status_code == 413
    for owners in ({"owners": list(range(11))},):
        assert server.http.post(f"{path}/owners/clear", json=owners).status_code == 413


def test_figures_are_those_of_the_bank(server):
    path, expected = create(server, fpr=0.02, options={"growth": 3.0, "max_owners": 100}), None
    assert server.http.get(path).json()["capacity"] == 50
    expected = own([], fpr=0.02, growth=3.0, max_owners=100)
    pairs = [(f"owner {at % 8}", at) for at in range(300)] + [("heavy", at) for at in range(900)]
    post(server, f"{path}/add", keys=pairs)
    for pair in pairs:
        expected.add(*pair)
    state = server.http.get(path).json()
    assert (state["kind"], state["class"], state["capacity"]) == ("bank", "FilterBank", 9 * 50)
    assert (state["num_added"], state["target_fpr"]) == (expected.num_added, 0.02)
    assert state["nbytes"] == expected.nbytes
    rates = [expected.fpr(f"owner {n}") for n in range(8)] + [expected.fpr("heavy")]
    assert state["fpr"] == pytest.approx(sum(rates) / 9, rel=0.15)
    assert 0 < state["fill"] < 0.6
    info = expected.info()
    for name in ("capacity", "max_fpr", "growth", "max_owners", "owners", "later_stages", "line_bytes"):
        assert state["details"][name] == info[name], name
    assert state["details"]["key_domains"] == "integer"
    rows = server.http.get("/v1/filters", params={"page": 1, "sort": "load", "figures": "true"}).json()[
        "filters"
    ]
    name = path.rpartition("/")[2]
    assert next(row for row in rows if row["name"] == name)["fill"] == state["fill"]
    assert server.http.get(f"{path}/rates").json()["rates"][0]["fpr"] == state["fpr"]
    text = server.http.get("/metrics").text.splitlines()
    for gauge, member in (("bytes", "nbytes"), ("fpr", "fpr"), ("target_fpr", "target_fpr")):
        line = next(one for one in text if one.startswith(f'fullbloom_filter_{gauge}{{filter="{name}"}}'))
        assert float(line.rpartition(" ")[2]) == state[member], gauge
    kinds = {row["kind"]: row for row in server.http.get("/v1/kinds").json()["kinds"]}
    assert [one["name"] for one in kinds["bank"]["parameters"]] == [
        "capacity",
        "fpr",
        "max_fpr",
        "growth",
        "max_owners",
    ]


def test_lookups_of_another_type_of_key_are_warned_about(server):
    path = create(server)
    post(server, f"{path}/add", keys=[["ada", 1], ["ada", 2]])
    assert "integer" in post(server, f"{path}/check", key=["ada", "1"])["key_domain_warning"]
    assert "key_domain_warning" not in post(server, f"{path}/check", key=["alan", 1])


def test_banks_are_merged_cloned_cleared_and_swapped(server):
    one, other, expected = create(server), create(server), own([])
    first = [("ada", n) for n in range(40)] + [("alan", n) for n in range(90)]
    second = [("ada", n) for n in range(30, 70)] + [("grace", n) for n in range(10)]
    post(server, f"{one}/add", keys=first)
    post(server, f"{other}/add", keys=second)
    for pair in first:
        expected.add(*pair)
    expected.merge(own(second))
    name = other.rpartition("/")[2]
    assert server.http.post(f"{one}/merge", json={"source": name}).status_code == 200
    assert load_dump(server, one) == expected.to_bytes()
    clone = server.http.post(f"{one}/clone", json={"name": name, "replace": True})
    assert clone.status_code == 201, clone.text
    assert load_dump(server, other) == expected.to_bytes()
    unlike = create(server, capacity=51)
    refused = server.http.post(f"{one}/merge", json={"source": unlike.rpartition("/")[2]})
    assert (refused.status_code, refused.json()["code"]) == (422, "incompatible"), refused.text
    assert server.http.post(f"{one}/clear").status_code == 204
    assert fullbloom.loads(load_dump(server, one)).num_added == 0


def test_unsupported_operations_of_a_bank_name_its_class(server):
    path = create(server)
    post(server, f"{path}/add", key=["ada", 1])
    for action in ("remove", "count", "values"):
        answer = server.http.post(f"{path}/{action}", json={"key": ["ada", 1]})
        assert (answer.status_code, "FilterBank" in answer.json()["detail"]) == (422, True), answer.text
    body = {"name": "never", "kind": "bank", "capacity": 50}
    for wrong in (
        {"strict": True},
        {"capacity": None},
        {"options": {"layout": "split"}},
        {"options": {"max_fpr": 0.001}},
        {"options": {"max_owners": 0}},
        {"options": {"growth": 0.5}},
        {"window": 60.0},
        {"backend": "redis"},
    ):
        answer = server.http.post("/v1/filters", json={**body, **wrong})
        assert answer.status_code in (400, 409, 422, 503), (wrong, answer.text)
    assert server.http.get("/v1/filters/never").status_code == 404


def test_owners_and_growth_beyond_a_limit_are_refused(new_service):
    server = new_service("--durability", "off", FULLBLOOM_LIMITS__FILTER_BYTES=str(1 << 20))
    for name, options in (("few", {"max_owners": 3}), ("steady", {"max_fpr": 0.01}), ("open", {})):
        body = {"name": name, "kind": "bank", "capacity": 500, "options": options}
        assert server.http.post("/v1/filters", json=body).status_code == 201
    refused = server.http.post("/v1/filters/few/add", json={"keys": [[n, 1] for n in range(5)]})
    assert (refused.status_code, refused.json()["code"]) == (507, "full"), refused.text
    assert post(server, "/v1/filters/few/check", keys=[[n, 1] for n in range(5)])["yes"] == 3
    assert post(server, "/v1/filters/few/add", key=[2, 2]) == {"new": True}
    refused = server.http.post("/v1/filters/steady/add", json={"keys": [[1, n] for n in range(1000)]})
    assert (refused.status_code, refused.json()["code"]) == (507, "full"), refused.text
    refused = server.http.post("/v1/filters/open/add", json={"keys": [[n, 1] for n in range(5000)]})
    assert (refused.status_code, refused.json()["code"]) == (413, "limit"), refused.text
    state = server.http.get("/v1/filters/open").json()
    assert 1000 < state["details"]["owners"] < 2000
    assert state["nbytes"] <= 1 << 20
    assert post(server, "/v1/filters/open/add", key=[0, 2]) == {"new": True}
    total = sum(one["nbytes"] for one in server.http.get("/v1/filters").json()["filters"])
    assert server.http.get("/v1/service").json()["nbytes"] == total


def test_a_forged_dump_is_refused_and_the_service_continues(server):
    path = create(server)
    post(server, f"{path}/add", keys=[[n % 30, n] for n in range(900)])
    data, rng = load_dump(server, path), random.Random(5)
    statuses = set()
    for _ in range(150):
        lie = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            lie[rng.randrange(rng.choice([200, len(lie)]))] ^= 1 << rng.randrange(8)
        answer = server.http.put("/v1/filters/lie/dump", content=bytes(lie), params={"replace": "true"})
        statuses.add(answer.status_code)
        assert answer.status_code in (200, 201, 400, 413, 422), answer.text
    assert 400 in statuses or 422 in statuses
    assert post(server, f"{path}/check", key=[0, 0]) == {"found": True}


def test_a_keyed_bank_is_opened_with_its_secret_only(new_service):
    server = new_service("--durability", "off")
    path = "/v1/filters/keyed"
    created = server.http.post("/v1/filters", json={"name": "keyed", "kind": "bank", "capacity": 50}).json()
    assert created["keyed"] is True
    post(server, f"{path}/add", keys=PAIRS)
    with pytest.raises(fullbloom.errors.ParameterError, match="secret="):
        fullbloom.loads(load_dump(server, path))
    secret = bytes.fromhex(server.http.get(f"{path}/secret").json()["secret"])
    bank = fullbloom.loads(load_dump(server, path), secret=secret)
    assert all(pair in bank for pair in PAIRS)
    alone = server.http.post(f"{path}/owners/export", json={"owner": "ada"}).content
    assert "sorting" in fullbloom.loads(alone, secret=secret)
    assert (
        server.http.put(
            f"{path}/dump", content=load_dump(server, path), params={"replace": "true"}
        ).status_code
        == 201
    )


def test_the_client_adds_and_finds_pairs_and_changes_owners(server):
    with fullbloom.Client(server.url) as client:
        bank = client.create("client", 50, kind="bank", seed=7)
        assert bank.add(("ada", "sorting"))
        assert ("ada", "sorting") in bank
        assert ("alan", "sorting") not in bank
        bank.update([("ada", 1), ("alan", 2)])
        assert bank.contains_many([("ada", 1), ("alan", 1)]) == [True, False]
        assert bank.owner_info("ada")["num_added"] == 2
        owners = {(fullbloom.hash_key(name, seed=7), n) for name, n in (("ada", 2), ("alan", 1))}
        assert len(listed := list(bank.owners())) == 2
        assert {*listed} == owners
        assert 1 in fullbloom.loads(bank.export_owner("ada"))
        assert [bank.clear_owner("ada"), bank.remove_owner("alan"), bank.remove_owner("alan")] == [
            True,
            True,
            False,
        ]
        assert list(bank.owners()) == [(fullbloom.hash_key("ada", seed=7), 0)]
        with pytest.raises(fullbloom.client.ServiceError, match="no such owner"):
            bank.export_owner("alan")
        assert fullbloom.loads(bank.dump()).info("ada")["num_added"] == 0


@pytest.mark.long
def test_a_killed_service_has_every_acknowledged_pair_and_no_removed_owner(start):
    service = start("--durability", "always", "--plain")
    service.http.post("/v1/filters", json={"name": "b", "kind": "bank", "capacity": 5, "seed": 7})
    rng, acknowledged, removed = random.Random(3), [], []

    def work(number, stop):
        mine = random.Random(number)
        while not stop.is_set():
            pairs = [
                (f"owner {number}.{mine.randrange(20)}", mine.getrandbits(40))
                for _ in range(mine.choice([1, 30]))
            ]
            gone = f"gone {number}.{mine.getrandbits(40)}"
            try:
                added = service.http.post("/v1/filters/b/add", json={"keys": [*pairs, (gone, 1)]})
                if added.status_code == 200:
                    acknowledged.extend(pairs)
                answer = service.http.post("/v1/filters/b/owners/remove", json={"owner": gone})
                if answer.status_code == 200 and added.status_code == 200:
                    assert answer.json() == {"removed": True}
                    removed.append((gone, 1))
            except Exception:  # noqa: BLE001 - the service is gone
                return

    for round_ in range(3):
        stop = threading.Event()
        threads = [threading.Thread(target=work, args=(10 * round_ + n, stop)) for n in range(3)]
        for thread in threads:
            thread.start()
        stop.wait(rng.uniform(0.2, 0.6))
        # A busy disk may take longer for the first of them.
        eventually(lambda most=20 * (round_ + 1): len(acknowledged) > most and removed)
        if round_ % 2:
            service.http.post("/v1/checkpoint")
        service.kill()
        stop.set()
        for thread in threads:
            thread.join()
        service.start()
        bank = fullbloom.loads(service.http.get("/v1/filters/b/dump").content)
        assert all(pair in bank for pair in acknowledged)
        assert not any(bank.has_owner(owner) for owner, _ in removed)
    print(f"{len(acknowledged)} pairs and {len(removed)} removed owners acknowledged")
    before = service.http.get("/v1/filters/b/dump").content
    service.restart()
    assert service.http.get("/v1/filters/b/dump").content == before


def test_history_has_samples_of_a_bank(start):
    service = start("--durability", "off", FULLBLOOM_HISTORY__EVERY="0.2")
    # With a secret of its own, one of the keys would be found before it is added in every hundredth run.
    body = {"name": "b", "kind": "bank", "capacity": 50, "seed": 7, "keyed": False}
    service.http.post("/v1/filters", json=body)
    post(service, "/v1/filters/b/add", keys=[["ada", n] for n in range(40)])

    def sampled():
        samples = service.http.get("/v1/filters/b/history").json()["samples"]
        return samples and samples[0]["new"] == 40

    eventually(sampled)
    newest = service.http.get("/v1/filters/b/history").json()["samples"][0]
    assert newest["bytes"] > 0
    assert 0 < newest["fpr_estimate"] <= 0.01
    assert 0 < newest["fill"] < 1
