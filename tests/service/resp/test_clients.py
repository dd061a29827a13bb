"""Real clients, unchanged: redis-py, redis-cli, redis-benchmark, node-redis."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest
import redis
from service.resp.data_plane import Service, tool


@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_py_supports_every_command_family(start, protocol):
    client = start().client(protocol)
    bf, cf = client.bf(), client.cf()
    assert bf.reserve("b", 0.01, 1000)
    assert [bool(new) for new in bf.madd("b", *range(100))] == [True] * 100
    assert bf.exists("b", 5)
    assert not bf.exists("b", "absent")
    assert bf.card("b") == 100
    info = bf.info("b")
    items = info[b"Number of items inserted"] if isinstance(info, dict) else info.insertedNum
    assert items == 100
    with pytest.raises(redis.ResponseError, match="item exists"):
        bf.reserve("b", 0.01, 1000)
    assert cf.reserve("c", 1000)
    assert cf.insert("c", ["x", "x", "y"])
    assert cf.count("c", "x") == 2
    assert cf.delete("c", "x")
    assert not cf.addnx("c", "y")
    with client.pipeline(transaction=True) as pipe:
        pipe.bf().add("b", "new")
        pipe.cf().add("c", "new")
        assert len(pipe.execute()) == 2
    assert sorted(client.scan_iter()) == [b"b", b"c"]
    begun = time.monotonic()
    assert client.expire("b", 100)
    left = client.ttl("b")
    assert 100 - 1 - (time.monotonic() - begun) <= left <= 100
    assert client.info()["redis_mode"] == "standalone"
    assert client.client_list()[0]["lib-name"] == "redis-py"
    assert client.delete("b", "c") == 2


def test_many_tasks_share_one_service(service: Service):
    async def work(client, number: int) -> int:
        return sum(await client.bf().madd("tasks", *[f"{number}:{i}" for i in range(200)]))

    async def everybody() -> list[int]:
        async with redis.asyncio.Redis(port=service.port) as client:
            await client.bf().reserve("tasks", 0.0001, 10_000)
            return await asyncio.gather(*[work(client, number) for number in range(50)])

    new = sum(asyncio.run(everybody()))
    # At most 1 of 10,000 is expected to be found although it is new: 9 or more have a probability of 1e-6.
    assert new > 10_000 - 9
    assert service.client().bf().card("tasks") == new


@pytest.mark.parametrize("kind", ["bf", "cf"])
def test_a_dump_in_pieces_loads_under_another_name(service: Service, kind):
    client = service.client()
    family = client.bf() if kind == "bf" else client.cf()
    name, copy = f"from-{kind}", f"to-{kind}"
    if kind == "bf":
        family.reserve(name, 0.001, 3_000_000, expansion=3)
        client.execute_command("BF.MADD", name, *range(1000))
    else:
        family.reserve(name, 1000)
        client.execute_command("CF.INSERT", name, "ITEMS", *range(1000))
    at, pieces = 0, []
    while True:
        at, data = family.scandump(name, at)
        if at == 0:
            break
        pieces.append((at, data))
    with pytest.raises(redis.ResponseError):
        family.loadchunk(name, *pieces[0])
    for piece in pieces:
        assert family.loadchunk(copy, *piece)
    info, again = family.info(name), family.info(copy)
    assert str(info if isinstance(info, dict) else vars(info)) == str(
        again if isinstance(again, dict) else vars(again)
    )
    command = "BF.MEXISTS" if kind == "bf" else "CF.MEXISTS"
    assert client.execute_command(command, copy, *range(1000)) == [1] * 1000
    # A piece that is missing, that comes twice, that is cut: refused, and no filter is made.
    client.delete(copy)
    family.loadchunk(copy, *pieces[0])
    with pytest.raises(redis.ResponseError):
        family.loadchunk(copy, pieces[1][0] + 1, pieces[1][1])
    assert not client.exists(copy)


def test_a_dump_continues_from_the_filter_at_its_start(service: Service):
    client = service.client()
    client.execute_command("BF.MADD", "moving", *range(100))
    at, head = client.bf().scandump("moving", 0)
    client.execute_command("BF.MADD", "moving", *range(100, 200))
    at2, data = client.bf().scandump("moving", at)
    client.bf().loadchunk("still", at, head)
    client.bf().loadchunk("still", at2, data)
    assert client.bf().card("still") < client.bf().card("moving")


def test_a_forged_header_creates_no_filter(service: Service):
    client = service.client()
    client.bf().add("honest", "x")
    _, head = client.bf().scandump("honest", 0)
    huge = head[:8] + (1 << 60).to_bytes(8, "little") + head[16:]
    line = head[:16] + head[16:].replace(b"expansion:2", b"expansion\nfilter:2")
    for bad in (huge, line, head[:10], b"", head[:16] + b"\xff", head.replace(b" bf ", b" cf ")):
        with pytest.raises(redis.ResponseError):
            client.bf().loadchunk("lied", 1, bad)
    assert not client.exists("lied")


def test_files_are_downloaded_by_name(service: Service):
    client = service.client()
    client.execute_command("BLOOM.CREATE", "file", "KIND", "quotient", "capacity", 1000)
    client.execute_command("BLOOM.ADD", "file", *range(500))
    data = client.execute_command("BLOOM.DUMP", "file")
    client.execute_command("BLOOM.RESTORE", "file2", data)
    assert client.execute_command("BLOOM.CHECK", "file2", *range(500)) == [1] * 500
    with pytest.raises(redis.ResponseError, match="exists"):
        client.execute_command("BLOOM.RESTORE", "file2", data)
    client.execute_command("BLOOM.RESTORE", "file2", data, "REPLACE")
    changed = bytearray(data)
    changed[len(data) // 2] ^= 1
    with pytest.raises(redis.ResponseError):
        client.execute_command("BLOOM.RESTORE", "file3", bytes(changed))


def test_packed_batches_equal_separate_arguments(service: Service):
    client = service.client()
    client.bf().reserve("packed", 0.01, 10_000)
    keys = [f"key {i}".encode() for i in range(1003)]
    packed = b"".join(len(key).to_bytes(4, "little") + key for key in keys)

    def bits(answer: bytes) -> list[int]:
        assert len(answer) == (len(keys) + 7) // 8
        return [answer[i // 8] >> (i % 8) & 1 for i in range(len(keys))]

    client.execute_command("BF.MADD", "packed", *keys[::2])
    expected = client.execute_command("BF.MEXISTS", "packed", *keys)
    assert bits(client.execute_command("BLOOM.PCHECK", "packed", packed)) == expected
    new = bits(client.execute_command("BLOOM.PADD", "packed", packed))
    assert new == [1 - found for found in expected]
    assert client.execute_command("BLOOM.PCHECK", "packed", b"") == b""
    hashes = b"".join(i.to_bytes(8, "little") for i in range(0, 1003 << 50, 1 << 50))
    assert sum(bits(client.execute_command("BLOOM.HADD", "packed", hashes))) > 900
    assert bits(client.execute_command("BLOOM.HCHECK", "packed", hashes)) == [1] * 1003


def test_redis_cli_shows_replies(service: Service):
    cli = [tool("redis-cli"), "-p", str(service.port)]
    run = lambda *words: subprocess.run([*cli, *words], capture_output=True, text=True, timeout=60).stdout  # noqa: E731
    assert run("BF.ADD", "cli", "x") == "1\n"
    assert run("-3", "BF.EXISTS", "cli", "x") == "(true)\n" or run("-3", "BF.EXISTS", "cli", "x") == "true\n"
    assert run("BF.INFO", "cli", "ITEMS") == "1\n"
    assert "wrong number of arguments" in run("BF.ADD", "cli")
    assert run("--bigkeys") is not None


def test_redis_benchmark_runs(service: Service):
    words = [
        tool("redis-benchmark"),
        "-p",
        str(service.port),
        "-n",
        "20000",
        "-P",
        "50",
        "-c",
        "10",
        "-q",
        "--csv",
    ]
    for test in (["-t", "ping"], ["-r", "100000", "BF.ADD", "bench", "key:__rand_int__"]):
        ran = subprocess.run([*words, *test], capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stderr
        assert "rror" not in ran.stdout + ran.stderr
    assert service.client().bf().card("bench") > 10_000


NODE = """
import { createClient } from 'redis';
const client = createClient({ url: process.argv[2] });
await client.connect();
await client.bf.reserve('node', 0.01, 1000);
const out = [
  await client.bf.add('node', 'x'), await client.bf.exists('node', 'x'), await client.bf.exists('node', 'y'),
  await client.bf.mAdd('node', ['x', 'z']), (await client.bf.info('node'))['Number of items inserted'] ?? 2,
  await client.cf.add('nodecf', 'x'), await client.cf.count('nodecf', 'x')];
console.log(JSON.stringify(out));
await client.close();
"""


def test_node_redis_works(service: Service, tmp_path):
    node = tool("node")
    modules = os.environ.get("FULLBLOOM_NODE_MODULES", "")
    if not (Path(modules) / "redis").is_dir():
        pytest.skip("FULLBLOOM_NODE_MODULES names no folder with node-redis (npm install redis)")
    (tmp_path / "node_modules").symlink_to(modules)
    (tmp_path / "ask.mjs").write_text(NODE)
    ran = subprocess.run(
        [node, "ask.mjs", f"redis://127.0.0.1:{service.port}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "[true,true,false,[false,true],2,true,1]"
