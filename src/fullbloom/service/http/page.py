"""The API description as one HTML page, without scripts or external resources."""

from __future__ import annotations

from html import escape
from typing import Any

_STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;color:#222}
code{font:13px/1.4 ui-monospace,monospace}h3 code{font-size:15px}
table{border-collapse:collapse}td{padding:.1rem .8rem .1rem 0;vertical-align:top}.method{color:#0a6}"""


def render_page(api: dict[str, Any], notice: str = "") -> str:
    """Return the page of an OpenAPI description, with a sentence above it."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        f"<title>{escape(api['info']['title'])}</title><style>{_STYLE}</style>",
        f"<h1>{escape(api['info']['title'])} {escape(api['info']['version'])}</h1>",
        f"<p>{escape(notice)}</p>" if notice else "",
        f"<p>{escape(api['info'].get('description', ''))} <a href=openapi.json>openapi.json</a></p>",
    ]
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            parts.append(_render_operation(path, method, operation, api))
    return "".join(parts)


def _render_operation(path: str, method: str, operation: dict[str, Any], api: dict[str, Any]) -> str:
    rows = [
        (parameter["name"], parameter["in"], _type_of(parameter.get("schema", {}), api))
        for parameter in operation.get("parameters", [])
    ]
    body = operation.get("requestBody", {}).get("content", {})
    for media, content in body.items():
        schema = _resolve(content.get("schema", {}), api)
        rows.append(("body", media, schema.get("description", "")))
        rows += [
            (f"  {name}", _type_of(member, api), member.get("description", ""))
            for name, member in schema.get("properties", {}).items()
        ]
    table = "".join(
        f"<tr><td><code>{escape(name)}</code><td>{escape(place)}<td>{escape(text)}"
        for name, place, text in rows
    )
    description = escape(operation.get("description", operation.get("summary", "")))
    return (
        f"<h3><code><span class=method>{method.upper()}</span> {escape(path)}</code></h3>"
        f"<p>{description}</p><table>{table}</table>"
    )


def _resolve(schema: dict[str, Any], api: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = api.get("components", {}).get("schemas", {}).get(name, schema)
    return found


def _type_of(schema: dict[str, Any], api: dict[str, Any]) -> str:
    schema = _resolve(schema, api)
    types = [str(part.get("type", "any")) for part in schema.get("anyOf", [schema])]
    return " or ".join(dict.fromkeys(types))
