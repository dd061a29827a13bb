"""Common parts of the tests of filters in Redis."""

from __future__ import annotations


def url_of(server):
    return f"redis://127.0.0.1:{server.port}/0"


def make(service, name, **settings):
    return service.create(name, backend="redis", **settings)


def ask(service, name, action, **body):
    return service.http.post(f"/v1/filters/{name}/{action}", json=body)
