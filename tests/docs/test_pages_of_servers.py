"""Guarantee: what pages show of the service and of Redis runs, and prints what they say it prints.

These blocks have the label ``text`` or ``sh``: they need a server, whose address is put in here. Those of
Spark and Dask are in ``tests/engines``, those about swaps and banks in ``tests/service``.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from engines.servers import needs_redis
from service.conftest import start

import fullbloom
from fullbloom.cli.parser import parse

__all__ = ["start"]

ROOT = Path(__file__).parents[2]
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
#: Numbers depend on the example's keys and files; the words around them do not.
NUMBER = re.compile(r"[\d,]+")


def read_block(page: str, after: str, label: str = "text") -> list[str]:
    """The lines of the first block with a label behind some words of a page."""
    _, found, rest = (ROOT / page).read_text(encoding="utf-8").partition(after)
    assert found, f"{page} has no longer the words {after!r}"
    return rest.partition(f"```{label}\n")[2].partition("\n```")[0].splitlines()


def run(line: str, folder: Path) -> str:
    """What a line of shell prints."""
    words = ["bash", "-c", line]
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, "PATH": PATH}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, (line, done.stderr)
    return done.stdout


def run_commands(lines: list[str], folder: Path) -> None:
    """Run each line after ``$``; its output begins with the lines below it, except for numbers."""
    commands = re.split(r"^\$ ", "\n".join(lines), flags=re.MULTILINE)[1:]
    assert commands
    for command in commands:
        line, _, shown = command.partition("\n")
        printed = run(line, folder)
        begun = shown.removesuffix("...").rstrip()
        assert NUMBER.sub("N", printed).startswith(NUMBER.sub("N", begun)), (line, printed)


def put_in(lines: list[str], service) -> list[str]:
    """Lines with the addresses of a service in place of the usual ones."""
    http, resp = (address.rpartition(":")[2] for address in (service.url, service.resp))
    places = [
        ("localhost:8080", f"127.0.0.1:{http}"),
        ("127.0.0.1:8080", f"127.0.0.1:{http}"),
        ("-p 6380", f"-p {resp}"),
    ]
    for old, new in places:
        lines = [line.replace(old, new) for line in lines]
    return lines


def test_the_tour_of_the_service_prints_what_the_readme_says(start, tmp_path):
    lines = put_in(read_block("README.md", "HTTP and RESP with", "sh"), start())
    assert [line.split()[:2] for line in lines[:2]] == [["pip", "install"], ["fullbloom", "serve"]]
    printed = [run(line, tmp_path) for line in lines[2:]]
    assert printed[1].split() == lines[3].partition("# ")[2].split(", ") == ["1", "0"]
    assert '"found":[true,false]' in printed[-1]


def test_the_first_requests_of_the_service_s_page_print_what_it_says(start, tmp_path):
    lines = put_in(read_block("docs/service.md", "# "), start())
    assert [line.split()[1:3] for line in lines[:2]] == [["pip", "install"], ["fullbloom", "serve"]]
    run_commands(lines[2:], tmp_path)


def test_the_client_of_the_service_s_page_finds_what_it_added(start):
    service = start()
    lines = put_in(read_block("docs/service.md", "## From Python"), service)
    names: dict[str, object] = {}
    exec("\n".join(lines), names)
    with fullbloom.Client(service.url) as client:
        assert client.filter("seen").contains_many(["ada", "alan"]) == [True, False]


def test_backups_are_made_and_restored_as_the_page_of_commands_says(start, tmp_path):
    service = start()
    for number in range(3):
        service.create(f"f{number}")
    page = "docs/cli-service.md"
    run_commands(put_in(read_block(page, "## backup"), service), tmp_path)
    run_commands(read_block(page, "## restore"), tmp_path)
    assert (tmp_path / "new" / "manifest").is_file()


@needs_redis
def test_filters_are_moved_to_redis_and_back_as_the_page_of_commands_says(own_server, tmp_path):
    port = own_server().port
    run("seq 1000 | fullbloom build --capacity 1000000 --layout blocked words.bloom", tmp_path)
    for heading in ("## redis-load", "## redis-info", "## redis-save"):
        if heading == "## redis-save":
            (tmp_path / "words.bloom").unlink()
        lines = read_block("docs/cli-service.md", heading)
        run_commands([line.replace(":6379", f":{port}") for line in lines], tmp_path)
    with fullbloom.open(tmp_path / "words.bloom") as words:
        assert words.contains_many(["7", "x"]) == [True, False]


@needs_redis
def test_the_calls_of_the_page_of_redis_work(own_server, tmp_path, monkeypatch):
    import redis

    from fullbloom.engines.redis import RedisBitmapFilter

    port, page = own_server().port, "docs/engines/redis.md"
    urls = [f"https://example.org/{number}" for number in range(5)]
    names: dict[str, object] = {"urls": urls, "known_keys": urls[:2], "client": redis.Redis(port=port)}
    monkeypatch.chdir(tmp_path)

    def execute(after: str) -> None:
        code = "\n".join(read_block(page, after)).replace("redis.Redis()", f"redis.Redis(port={port})")
        exec(code, names)

    execute("# ")
    assert names["new"] == [True] * len(urls)
    assert names["again"].contains_many(["https://example.org/", "other"]) == [True, False]
    execute("`verify()`\nlooks for")
    assert names["result"].ok
    assert names["result"].keys_checked == 6
    names["client"].delete(*names["client"].keys("*seen*"))
    execute("## TTL")
    assert names["client"].pttl(names["client"].keys("*seen*")[0]) > 86_000_000
    # The bits of another program, which has added two keys.
    names["client"].setbit("seen:bits", 95_850, 0)
    RedisBitmapFilter(names["client"], "seen:bits", "md5-double", 95_851, 7).add_many(urls[:2])
    execute("## Filters that another program keeps by SETBIT")
    assert names["seen"].contains_many([*urls, "other"]) == [True] * 5 + [False]
    dumped = fullbloom.open(tmp_path / "seen.bloom")
    assert dumped.contains_many([*urls, "other"]) == [True] * 5 + [False]


@needs_redis
def test_a_task_of_the_page_of_recipes_runs_once_per_key(own_server):
    celery = pytest.importorskip(
        "celery", reason="celery is not installed: pip install -r requirements/recipes.txt"
    )
    app = celery.Celery("shop", broker="memory://", backend="cache+memory://")
    app.conf.task_always_eager = True
    runs: list[tuple[int, str]] = []
    code = "\n".join(read_block("docs/recipes.md", "## Celery: run a task once per key"))
    code = code.replace("Redis()", f"Redis(port={own_server().port})").replace("100_000_000", "1000")
    assert code.endswith("address): ...")
    exec(
        code.replace("address): ...", "address): runs.append((order, address))"),
        names := {"app": app, "runs": runs},
    )
    for order in (7, 8, 7):
        names["send_receipt"].delay(order, address="Ulm")
    assert runs == [(7, "Ulm"), (8, "Ulm")]


def test_the_alerts_of_the_guide_name_metrics_that_exist(start):
    yaml = pytest.importorskip(
        "yaml", reason="PyYAML is not installed: pip install -r requirements/service.txt"
    )
    alerts = yaml.safe_load(
        "\n".join(read_block("docs/how-to/operations.md", "`GET /metrics` is for Prometheus"))
    )
    assert [set(alert) for alert in alerts] == [{"alert", "expr"}] * 3
    service = start()
    service.create("users")
    metrics = service.http.get("/metrics").text
    for alert in alerts:
        for name in re.findall(r"fullbloom_\w+", alert["expr"]):
            assert re.search(rf"^{name}[ {{]", metrics, re.MULTILINE), name


@pytest.mark.parametrize("page", ["docs/how-to/operations.md", "docs/service.md"])
def test_commands_for_several_machines_have_options_of_the_command(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = r"(fullbloom serve --(?:data|registry)[^\\\n]*(?:\\\n[^\\\n]*)*)"
    found = re.search(rf"^(?:\$ )?{lines}", text, re.MULTILINE)
    assert found
    words = shlex.split(found[1].replace("\\\n", " "), comments=True)
    command, options = parse(words[1:])
    assert command.__name__ == "fullbloom.cli.serve"
    assert urlsplit(options.registry).scheme == "postgresql+psycopg"
