"""The examples do what they say, against a real service."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import create_engine, text
from tests.support import eventually

import fullbloom

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "service"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("messages.py", "1334 arrived, 1000 delivered, 334 dropped\n"),
        ("frontier.py", "pages visited, 0 of them twice\n"),
    ],
)
def test_example_programs_print_what_they_state(service, program, said):
    words = [sys.executable, str(EXAMPLES / program), service.url]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(said)


@pytest.fixture
def load_precheck(tmp_path, monkeypatch):
    """Return a function that imports the example for a service, with a database of one user."""

    def load(service):
        url = f"sqlite:///{tmp_path / 'users.db'}"
        with create_engine(url).begin() as connection:
            connection.execute(text("CREATE TABLE users (name text primary key, mail text)"))
            connection.execute(text("INSERT INTO users VALUES ('grace', 'g@example.org')"))
        monkeypatch.setenv("DATABASE_URL", url)
        monkeypatch.setenv("FULLBLOOM_URL", service.url)
        spec = importlib.util.spec_from_file_location("precheck", EXAMPLES / "precheck.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def test_the_precheck_saves_queries(service, load_precheck):
    module = load_precheck(service)
    # A busy machine may take longer than its half a second, after which it asks the database.
    module.client = fullbloom.Client(service.url, timeout=60, retries=0)
    module.users = module.client.filter("users")
    with TestClient(module.app) as app:
        eventually(lambda: module.state["filled"])
        assert app.put("/users/ada", params={"mail": "a@example.org"}).status_code == 200
        for name in ("ada", "grace"):
            assert app.get(f"/users/{name}").json()["name"] == name
        assert [app.get(f"/users/nobody-{i}").status_code for i in range(20)] == [404] * 20
        assert app.get("/saved").json()["queries"] >= 19


@pytest.mark.long
def test_the_precheck_queries_the_database_while_the_service_is_unreachable(start, load_precheck):
    service = start()
    module = load_precheck(service)

    def statuses():
        return [app.get(f"/users/{name}").status_code for name in ("grace", "nobody")]

    with TestClient(module.app) as app:
        eventually(lambda: module.state["filled"])
        assert statuses() == [200, 404]
        # It hangs, is gone, or answers with an error: the rows are found all the same.
        service.process.send_signal(signal.SIGSTOP)
        assert statuses() == [200, 404]
        assert app.put("/users/ada", params={"mail": "a"}).status_code == 503
        service.process.send_signal(signal.SIGCONT)
        service.http.delete("/v1/filters/users")
        assert statuses() == [200, 404]
        service.kill()
        assert statuses() == [200, 404]
        assert app.put("/users/ada", params={"mail": "a"}).status_code == 503
    # It starts without the service, too.
    module.state["filled"] = False
    module.client = fullbloom.Client(service.url, timeout=0.2, retries=0)
    module.users = module.client.filter("users")
    with TestClient(module.app) as app:
        assert statuses() == [200, 404]


def test_the_sample_settings_of_the_page_are_valid():
    page = (ROOT / "docs" / "service.md").read_text()
    sample = "data" + page.partition("```text\ndata")[2].partition("```")[0]
    from fullbloom.service.settings import Settings

    Settings.model_validate(tomllib.loads(sample))
