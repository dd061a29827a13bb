"""Owners of a bank in the service, over both ports; and the examples of the pages about banks."""

from __future__ import annotations

import shlex
import struct
import subprocess
from pathlib import Path

import pytest
from service.banks import connect, create, load_dump, own, post

import fullbloom

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def server(new_service):
    return new_service("--plain", "--durability", "off")


def test_owners_are_listed_described_cleared_removed_and_exported(server):
    path, expected = create(server), own([])
    pairs = [(owner, n) for owner in ("ada", 7, 2.5, ("a", 1)) for n in range(30)]
    pairs += [("heavy", n) for n in range(500)]
    post(server, f"{path}/add", keys=pairs)
    for pair in pairs:
        expected.add(*pair)
    listed, start = [], 0
    while start is not None:
        page = server.http.get(f"{path}/owners", params={"start": start, "limit": 2}).json()
        assert (page["total"], len(page["owners"]) <= 2) == (5, True)
        listed += [(one["hash"], one["num_added"]) for one in page["owners"]]
        start = page["next"]
    assert dict(listed)[fullbloom.hash_key("heavy", seed=7)] == expected.info("heavy")["num_added"]
    assert [owner for owner, _ in listed] == list(expected.owners())
    for owner in ("ada", 7, 2.5, ("a", 1), "heavy"):
        state, right = post(server, f"{path}/owners/info", owner=owner), expected.info(owner)
        assert (state["num_added"], state["stages"], state["nbytes"]) == (
            right["num_added"],
            right["stages"],
            right["nbytes"],
        )
        assert (state["fpr"], state["estimated"]) == (right["fpr"], right["approx_count"])
        answer = server.http.post(f"{path}/owners/export", json={"owner": owner})
        assert answer.content == expected.export(owner).to_bytes()
    assert post(server, f"{path}/owners/clear", owner="heavy") == {"cleared": True}
    assert post(server, f"{path}/owners/remove", owners=[7, "7", ["a", 1]]) == {
        "removed": [True, False, True]
    }
    expected.clear_owner("heavy")
    expected.remove_owner(7)
    expected.remove_owner(("a", 1))
    assert load_dump(server, path) == expected.to_bytes()
    for action in ("info", "export"):
        answer = server.http.post(f"{path}/owners/{action}", json={"owner": "nobody"})
        assert (answer.status_code, answer.json()["code"]) == (404, "missing"), answer.text


def test_wrong_requests_about_owners_are_refused(server):
    path = create(server)
    post(server, f"{path}/add", key=["ada", 1])
    before = load_dump(server, path)
    deep = "[" * 70 + "]" * 70
    for action in ("info", "export", "clear", "remove"):
        for body in (
            "{}",
            '{"owner": null}',
            '{"owner": {"a": 1}}',
            '{"owner": "a", "key": 1}',
            '{"owner": "a", "owners": ["b"]}',
            '{"owners": "a"}',
            '{"owners": [null]}',
            '{"owner": "\\ud800"}',
            f'{{"owner": {"9" * 5000}}}',
            f'{{"owner": {deep}}}',
            f'{{"owner": {"[" * 20_000}',
            f'{{"owner": "{"x" * 70_000}"}}',
            "no json",
        ):
            answer = server.http.post(f"{path}/owners/{action}", content=body)
            assert answer.status_code in (400, 413, 422), (action, body[:50], answer.text)
    for params in ({"start": -1}, {"start": 1 << 64}, {"limit": 0}, {"limit": 10_001}, {"start": "x"}):
        assert server.http.get(f"{path}/owners", params=params).status_code == 400
    stale = server.http.post(f"{path}/owners/clear", json={"owner": "ada"}, headers={"if-match": '"1-1"'})
    assert stale.status_code == 412
    assert load_dump(server, path) == before
    assert server.http.post("/v1/filters/nothing/owners/clear", json={"owner": "a"}).status_code == 404


def read_block(page: str, heading: str, number: int = 0) -> list[str]:
    """Return the lines of a text block below a heading of a page."""
    text = (DOCS / page).read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    return text.split("```text\n")[number + 1].partition("```")[0].splitlines()


def test_the_requests_on_the_page_work(start, tmp_path):
    service = start("--durability", "off")
    lines = [
        line.replace("localhost:8080", service.url.removeprefix("http://"))
        for line in read_block("service.md", "### Banks")
    ]
    script = [line.removeprefix("$ ") for line in lines if line.startswith(("$ ", "    "))]
    printed = [line for line in lines if not line.startswith(("$ ", "    "))]
    done = subprocess.run(
        ["bash", "-c", "\n".join(f"{line}" if line.endswith("\\") else f"{line}; echo" for line in script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == printed
    bank = fullbloom.loads(
        service.http.get("/v1/filters/read/dump").content,
        secret=bytes.fromhex(service.http.get("/v1/filters/read/secret").json()["secret"]),
    )
    assert (len(bank), ("ada", "article 2") in bank) == (1, True)


def test_the_client_on_the_pages_works(start):
    service = start("--durability", "off", "--plain")
    with fullbloom.Client(service.url) as client:
        for page, heading, number in (
            ("service.md", "### Banks", 1),
            ("filters/bank.md", "## In the service", 0),
        ):
            names = {"client": client, "fullbloom": fullbloom}
            for line in read_block(page, heading, number):
                if line.startswith("with "):
                    continue
                code, _, expected = line.strip().partition("  # ")
                if not expected.strip().startswith(("[", "(")):
                    exec(code, names)
                else:
                    assert eval(code, names) == eval(expected), line
            client.delete("read")
    assert isinstance(names["bank"], fullbloom.FilterBank)


def test_the_commands_on_the_page_work(start):
    service = start("--durability", "off")
    with connect(service) as client:
        for line in read_block("resp.md", "## Banks"):
            if line.startswith("> "):
                answer = client.execute_command(*shlex.split(line[2:]))
                answers = iter(answer if isinstance(answer, list) else [answer])
            elif line == "OK":
                assert next(answers) == b"OK"
            else:
                assert next(answers) == int(line.rpartition(" ")[2]), line


def test_commands_and_requests_change_the_same_owners(server):
    path = create(server)
    name = path.rpartition("/")[2]
    with connect(server) as client:
        run = client.execute_command
        assert run("BLOOM.ADD", name, "ada", "x", "ada", "y", "alan", "x") == [1, 1, 1]
        assert post(server, f"{path}/check", keys=[["ada", "y"], ["alan", "y"]])["found"] == [True, False]
        following, listed = run("BLOOM.OWNERS", name)
        page = server.http.get(f"{path}/owners").json()
        assert (following, page["next"]) == (None, None)
        assert [int(one) for one in listed] == [
            part for one in page["owners"] for part in (one["hash"], one["num_added"])
        ]
        first, (one, keys) = run("BLOOM.OWNERS", name, 0, 1)
        assert (int(one), keys) == (page["owners"][0]["hash"], page["owners"][0]["num_added"])
        assert run("BLOOM.OWNERS", name, first, 1)[1][0] == first
        info = run("BLOOM.OWNERINFO", name, "ada")
        facts = {info[at].decode(): float(info[at + 1]) for at in range(0, len(info), 2)}
        assert facts == post(server, f"{path}/owners/info", owner="ada")
        answer = server.http.post(f"{path}/owners/export", json={"owner": "ada"})
        assert run("BLOOM.EXPORTOWNER", name, "ada") == answer.content
        assert [run(f"BLOOM.{what}", name, "nobody") for what in ("OWNERINFO", "EXPORTOWNER")] == [None, None]
        with client.pipeline(transaction=True) as batch:
            batch.response_callbacks.clear()
            batch.execute_command("BLOOM.CLEAROWNER", name, "ada", "nobody")
            batch.execute_command("BLOOM.ADD", name, "ada", "z")
            batch.execute_command("BLOOM.REMOVEOWNER", name, "alan")
            assert batch.execute() == [[1, 0], [1], [1]]
        assert fullbloom.loads(load_dump(server, path)) == own([("ada", "z")])
        for words in (
            ["BLOOM.ADD", name, "ada"],
            ["BLOOM.CHECK", name, "ada", "x", "alan"],
            ["BLOOM.PADD", name, struct.pack("<I", 3) + b"ada"],
            ["BLOOM.HADD", name, bytes(24)],
            ["BLOOM.HCHECK", name, bytes(8)],
            ["BF.ADD", name, "ada"],
            ["BF.EXISTS", name, "ada"],
            ["CF.COUNT", name, "ada"],
            ["BLOOM.REMOVE", name, "ada", "z"],
            ["BLOOM.OWNERS", name, -1],
            ["BLOOM.OWNERS", name, 0, 0],
            ["BLOOM.OWNERS", name, 0, 100_001],
            ["BLOOM.OWNERS", name, 0, 1, 1],
            ["BLOOM.OWNERINFO", name],
            ["BLOOM.CLEAROWNER", name],
            ["BLOOM.REMOVEOWNER", name, b"x" * (1 << 20)],
            ["BLOOM.CREATE", "never", "KIND", "bank"],
            ["BLOOM.CREATE", "never", "KIND", "bank", "capacity", 9, "strict", "yes"],
        ):
            with pytest.raises(
                Exception, match=r"(?i)pair|arguments|cannot|whole|count|bytes|capacity|words"
            ):
                run(*words)
        assert fullbloom.loads(load_dump(server, path)) == own([("ada", "z")])
        assert run("EXISTS", "never") == 0
        kinds = [row[1] for row in run("BLOOM.KINDS")]
        assert b"bank" in kinds


def test_a_token_that_may_only_read_changes_no_owner(start):
    service = start("--durability", "off", "--plain")
    service.http.post("/v1/filters", json={"name": "b", "kind": "bank", "capacity": 50})
    post(service, "/v1/filters/b/add", key=["ada", 1])
    made = {}
    for name, scopes in (("root", ["admin", "read", "write"]), ("reader", ["read"])):
        headers = {"authorization": f"Bearer {made['root']}"} if made else {}
        answer = service.http.post("/v1/tokens", json={"name": name, "scopes": scopes}, headers=headers)
        made[name] = answer.json()["token"]
    headers = {"authorization": f"Bearer {made['reader']}"}
    for action, status in (("info", 200), ("export", 200), ("clear", 403), ("remove", 403)):
        path = f"/v1/filters/b/owners/{action}"
        assert service.http.post(path, json={"owner": "ada"}, headers=headers).status_code == status, action
        assert service.http.post(path, json={"owner": "ada"}).status_code == 401
    assert service.http.get("/v1/filters/b/owners", headers=headers).json()["total"] == 1
    with connect(service, password=made["reader"]) as client:
        for command in ("BLOOM.CLEAROWNER", "BLOOM.REMOVEOWNER"):
            with pytest.raises(Exception, match=r"(?i)permissions"):
                client.execute_command(command, "b", "ada")
