"""redis-load, redis-save and redis-info move filters between files and servers; README's tour runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import REDIS, run_command
from engines.servers import needs_redis, strings_of

import fullbloom
from fullbloom import BloomFilter, ScalableBloomFilter

pytestmark = needs_redis


def run(*words, **environment):
    return run_command(*words, imports=REDIS, **environment)


@pytest.fixture
def file(tmp_path):
    instance = BloomFilter(5000, layout="blocked", seed=4)
    instance.update(f"k{i}" for i in range(3000))
    instance.save(tmp_path / "words.bloom")
    return tmp_path / "words.bloom"


def test_redis_save_and_redis_load_round_trip_a_filter(server, client, file, tmp_path):
    client.flushall()
    url = f"redis://127.0.0.1:{server.port}/0"
    done = run("redis-load", file, url, "words", "--shards", 3)
    assert (done.returncode, done.stderr) == (0, "")
    assert "words: 6" in done.stdout
    assert "in 3 strings, about 3,0" in done.stdout or "about 2,9" in done.stdout
    again = run("redis-load", file, url, "words")
    assert again.returncode == 2
    assert "--merge adds to it, --replace" in again.stderr
    for option in ("--merge", "--replace"):
        assert run("redis-load", file, url, "words", option).returncode == 0
    saved = tmp_path / "saved.bloom"
    assert run("redis-save", url, "words", saved).returncode == 0
    assert fullbloom.open(saved) == fullbloom.open(file)
    result = json.loads(run("redis-info", url, "words", "--json").stdout)
    assert (result["shards"], result["capacity"], result["whole"], result["seed"]) == (3, 5000, True, 4)
    assert "about" in run("redis-save", url, "words", saved).stdout


@pytest.mark.long
def test_errors_are_one_line_and_show_no_password(own_server, file, tmp_path):
    server = own_server(requirepass="right-password")
    plain = f"redis://127.0.0.1:{server.port}/0"
    hidden = f"redis://:right-password@127.0.0.1:{server.port}/0"
    growing = tmp_path / "growing.bloom"
    ScalableBloomFilter(100).save(growing)
    result = [
        (("redis-info", hidden, "words"), {}, "REDISCLI_AUTH"),
        (("redis-info", plain, "words"), {}, "password"),
        (("redis-info", plain, "words"), {"REDISCLI_AUTH": "wrong-password"}, "password"),
        (("redis-info", plain, "words"), {"REDISCLI_AUTH": "right-password"}, "no filter 'words'"),
        (("redis-info", "env:NOWHERE", "words"), {}, "NOWHERE"),
        (("redis-info", "env:SERVER", "words"), {"SERVER": "http://right-password"}, "redis://"),
        (("redis-info", "env:SERVER", "words"), {"SERVER": "redis://:right-password@[x/0"}, "not an address"),
        (
            ("redis-info", "env:SERVER", "words"),
            {"SERVER": "redis://:right-password@h:port/0"},
            "not an address",
        ),
        (("redis-info", "redis://127.0.0.1:1/words", "words"), {}, "not an address"),
        (("redis-save", plain, "words", "f"), {"REDISCLI_AUTH": "right-password"}, "redis-load creates one"),
        (("redis-load", growing, "env:SERVER", "g"), {"SERVER": hidden}, "a server takes a BloomFilter"),
        (("redis-info", "redis://127.0.0.1:1/0", "words"), {}, "cannot be reached"),
    ]
    for words, environment, said in result:
        done = run(*words, **environment)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
        assert "-password" not in done.stderr
    assert run("redis-load", file, "env:SERVER", "words", SERVER=hidden).returncode == 0
    assert run("redis-info", plain, "words", REDISCLI_AUTH="right-password").returncode == 0


def test_an_incomplete_filter_sets_the_exit_code(server, client, file):
    client.flushall()
    url = f"redis://127.0.0.1:{server.port}/0"
    assert run("redis-load", file, url, "words", "--shards", 2).returncode == 0
    client.delete(strings_of(client, "words")[1])
    done = run("redis-info", url, "words")
    assert done.returncode == 1
    assert ["whole", "False"] in [line.split() for line in done.stdout.splitlines()]


README = Path(__file__).parents[2] / "README.md"
PORT = "6390"


@needs_redis
def test_the_tour_of_the_readme_prints_what_it_shows(server, tmp_path):
    """The lines of the page, without the port and without the server that they start."""
    block = (
        README.read_text("utf-8").partition("Across a fleet")[2].partition("```sh\n")[2].partition("```")[0]
    )
    start, _, rest = block.partition("\n")
    assert start.startswith(f"redis-server --port {PORT} ")
    assert PORT in rest
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-ec", rest.replace(PORT, str(server.port))],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("[True, False]\n")
    with server.client() as client:
        assert len(client.keys("ids:*")) == 2
