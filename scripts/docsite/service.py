"""Reference pages of the service, read from a running one: HTTP, metrics, configuration, SQL schema."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

START_SECONDS = 60


def _format_table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


class RunningService:
    """A service on free ports of this machine, in a folder that is removed."""

    def __init__(self) -> None:
        """Start it and wait until it answers."""
        self._folder = tempfile.TemporaryDirectory()
        ready = Path(self._folder.name, "ready.json")
        command = [sys.executable, "-m", "fullbloom", "serve", "--data", f"{self._folder.name}/data"]
        command += ["--http", "127.0.0.1:0", "--resp", "none", "--ready-file", str(ready)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        end = time.monotonic() + START_SECONDS
        while not ready.exists():
            if self._process.poll() is not None or time.monotonic() > end:
                self.stop()
                said = self._process.stderr.read().decode() if self._process.stderr else ""
                raise SystemExit(f"the service does not start, run `make build` first: {said}")
            time.sleep(0.05)
        self._url: str = json.loads(ready.read_text(encoding="utf-8"))["http"]

    def fetch(self, path: str, body: dict[str, Any] | None = None) -> str:
        """Return the response to a request."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, {"Content-Type": "application/json"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310 - this machine
            text: str = response.read().decode()
        return text

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(timeout=30)
        self._folder.cleanup()


def _resolve(schema: dict[str, Any], api: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = api["components"]["schemas"].get(name, schema)
    return found


def _format_type(schema: dict[str, Any], api: dict[str, Any]) -> str:
    parts = [_resolve(part, api) for part in schema.get("anyOf", [schema])]
    names = [str(part.get("type", "any")) + _format_choices(part) for part in parts]
    return " or ".join(dict.fromkeys(names))


def _format_choices(schema: dict[str, Any]) -> str:
    return ": " + ", ".join(f"`{choice}`" for choice in schema["enum"]) if "enum" in schema else ""


def _escape_cell(text: object) -> str:
    return " ".join(str(text).replace("|", "\\|").split())


def _format_default(schema: dict[str, Any]) -> str:
    return f"`{json.dumps(schema['default'])}`" if schema.get("default") is not None else ""


def _render_operation(path: str, method: str, operation: dict[str, Any], api: dict[str, Any]) -> str:
    rows = [
        [f"`{parameter['name']}`", parameter["in"], _format_type(schema, api), _format_default(schema)]
        for parameter in operation.get("parameters", [])
        for schema in [parameter.get("schema", {})]
    ]
    content = operation.get("requestBody", {}).get("content", {})
    for media, body in content.items():
        schema = _resolve(body.get("schema", {}), api)
        for name, member in schema.get("properties", {}).items():
            about = member.get("description", "")
            kind = f"{_format_type(member, api)}{'; ' + about if about else ''}"
            rows.append([f"`{name}`", "body", _escape_cell(kind), _format_default(member)])
        if not schema.get("properties"):
            rows.append(["", "body", f"`{media}` {_escape_cell(schema.get('description', ''))}", ""])
    replies = [
        " or ".join([f"`{status}`", *(f"`{media}`" for media in reply.get("content", ()))]).replace(
            " or ", " ", 1
        )
        for status, reply in operation.get("responses", {}).items()
        if status.startswith("2")
    ]
    text = operation.get("description") or operation.get("summary", "")
    parts = [f"### {method.upper()} `{path}`", text, f"Replies: {', '.join(replies)}." if replies else ""]
    parts += [_format_table(["name", "in", "type", "default"], rows)] if rows else []
    return "\n\n".join(part for part in parts if part)


def render_http(api: dict[str, Any]) -> str:
    """Return the operations of the API, by their tags."""
    groups: dict[str, list[str]] = {}
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            tag = operation.get("tags", ["service"])[0]
            groups.setdefault(tag, []).append(_render_operation(path, method, operation, api))
    return "\n\n".join(f"## {tag.capitalize()}\n\n" + "\n\n".join(parts) for tag, parts in groups.items())


def render_metrics(text: str) -> str:
    """Return the families of metrics with their meaning, and the names of their labels."""
    helps, types, labels = dict[str, str](), dict[str, str](), dict[str, set[str]]()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, name, meaning = line.split(" ", 3)
            helps[name] = meaning
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ", 3)
            types[name] = kind
        elif "{" in line:
            name, _, rest = line.partition("{")
            family = next(
                (known for known in sorted(helps, key=len, reverse=True) if name.startswith(known)), name
            )
            found = {
                pair.partition("=")[0].strip() for pair in rest.partition("}")[0].split(",") if "=" in pair
            }
            labels.setdefault(family, set()).update(found - {"le"})
    rows = [
        [
            f"`{name}`",
            types.get(name, ""),
            ", ".join(f"`{label}`" for label in sorted(labels.get(name, ()))),
            meaning,
        ]
        for name, meaning in helps.items()
        if not name.endswith("_created")
    ]
    return _format_table(["metric", "type", "labels", "meaning"], rows)


def render_configuration() -> str:
    """Return every setting with its environment variable, type, default and meaning."""
    from fullbloom.service.settings import Settings

    schema = Settings.model_json_schema()
    api = {"components": {"schemas": schema["$defs"]}}
    rows = []
    for name, member in schema["properties"].items():
        inner = _resolve(member, api).get("properties")
        if inner is None:
            rows.append(_format_setting(name, member, api))
        else:
            rows += [_format_setting(f"{name}.{part}", value, api) for part, value in inner.items()]
    return _format_table(["setting", "environment", "type", "default", "meaning"], rows)


def _format_setting(name: str, member: dict[str, Any], api: dict[str, Any]) -> list[str]:
    variable = f"FULLBLOOM_{name.replace('.', '__').upper()}"
    kind = _format_type(member, api)
    return [
        f"`{name}`",
        f"`{variable}`",
        _escape_cell(kind),
        _format_default(member),
        _escape_cell(member.get("description", "")),
    ]


def _create_dialect(module: Any) -> Any:
    return module.dialect()


def render_sql() -> str:
    """Return the statements that create the registry's tables, for both databases."""
    from sqlalchemy.dialects import postgresql, sqlite
    from sqlalchemy.schema import CreateIndex, CreateTable

    from fullbloom.service.registry.models import METADATA

    parts = []
    for title, dialect in (("SQLite", _create_dialect(sqlite)), ("PostgreSQL", _create_dialect(postgresql))):
        statements = []
        for table in METADATA.sorted_tables:
            statements.append(str(CreateTable(table).compile(dialect=dialect)).strip())
            indexes = sorted(table.indexes, key=lambda index: str(index.name))
            statements += [str(CreateIndex(index).compile(dialect=dialect)).strip() for index in indexes]
        lines = "\n".join(
            line.rstrip().replace("\t", "    ") for line in ";\n\n".join(statements).splitlines()
        )
        parts.append(f"## {title}\n\n```sql\n{lines};\n```")
    return "\n\n".join(parts)


def render_sections() -> dict[str, str]:
    """Return the text that replaces each marker of the pages."""
    service = RunningService()
    try:
        api = json.loads(service.fetch("/openapi.json"))
        service.fetch("/v1/filters", {"name": "urls", "capacity": 1000})
        service.fetch("/v1/filters/urls/add", {"key": "a"})
        text = service.fetch("/metrics")
    finally:
        service.stop()
    return {
        "http": render_http(api),
        "metrics": render_metrics(text),
        "configuration": render_configuration(),
        "sql": render_sql(),
    }
