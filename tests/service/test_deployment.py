"""The files in ``deploy/`` match the service: its unit, its container, its dashboard."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
FULLBLOOM = [sys.executable, "-m", "fullbloom"]


def panels():
    return json.loads((DEPLOY / "grafana.json").read_text())["panels"]


def test_the_dashboard_queries_existing_metrics(service):
    service.create("shown")
    service.http.post("/v1/filters/shown/add", json={"key": "ada"})
    result = set(re.findall(r"^(fullbloom_\w+)", service.http.get("/metrics").text, re.MULTILINE))
    asked = [target["expr"] for panel in panels() for target in panel["targets"]]
    wanted = {name for expression in asked for name in re.findall(r"\bfullbloom_\w+", expression)}
    assert len(asked) >= 8
    assert wanted <= result, wanted - result


def test_panels_have_distinct_ids_and_positions():
    assert len({panel["id"] for panel in panels()}) == len(panels())
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels())
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


def unit():
    return (DEPLOY / "fullbloom.service").read_text()


def test_the_systemd_unit_starts_an_existing_command(tmp_path):
    command = re.search(r"^ExecStart=(.*)$", unit(), re.MULTILINE)[1]
    program, *words = shlex.split(command)
    assert program.endswith("/bin/fullbloom")
    words[words.index("--data") + 1] = str(tmp_path / "data")
    free = ["--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--check"]
    subprocess.run([*FULLBLOOM, *words, *free], check=True)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path):
    path = tmp_path / "fullbloom.service"
    path.write_text(unit().replace("/opt/fullbloom/bin/fullbloom", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def container():
    """The environment and the command that the container has."""
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    said = dict(line.split(" ", 1) for line in lines if line.startswith(("ENV ", "ENTRYPOINT ")))
    return dict(word.split("=") for word in said["ENV"].split()), json.loads(said["ENTRYPOINT"])


@pytest.mark.long
def test_commands_in_the_container_address_its_service(start, tmp_path):
    """A token made by a command beside the service opens it; whose user has no home, as there."""
    result, command = container()
    assert command == ["fullbloom", "serve"]
    data = tmp_path / "one" / "data"
    own = {**result, "FULLBLOOM_DATA": str(data), "HOME": "/nonexistent", "XDG_STATE_HOME": ""}
    words = [*FULLBLOOM, "token", "create", "root", "--scope", "admin", "--scope", "read"]
    instance = subprocess.run(words, env={**os.environ, **own}, capture_output=True, text=True, check=True)
    service = start("--http", result["FULLBLOOM_HTTP"].replace("8080", "0"))
    headers = {"authorization": f"Bearer {instance.stdout.strip()}"}
    assert service.http.get("/v1/filters").status_code == 401
    assert service.http.get("/v1/filters", headers=headers).status_code == 200
    lost = {**os.environ, "HOME": "/proc/nonexistent", "XDG_STATE_HOME": ""}
    done = subprocess.run(words, env=lost, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "give the service's folder with --data" in done.stderr
