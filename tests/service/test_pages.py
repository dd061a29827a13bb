"""Built pages: files of a folder that is read once, under a strict policy; their paths are looked up only."""

from __future__ import annotations

import asyncio
import gzip
import os

import brotli
import httpx
import pytest

from fullbloom.service.failures import Refused
from fullbloom.service.http.pages import NOT_BUILT, Pages, find_folders
from fullbloom.service.http.request import Request

SCRIPT = b"console.log(1);" * 100
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
    "form-action": "'none'",
}


@pytest.fixture
def folder(tmp_path):
    built = tmp_path / "dist"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text("<!doctype html>")
    script = built / "assets" / "index-Abcd1234.js"
    script.write_bytes(SCRIPT)
    script.with_name(f"{script.name}.br").write_bytes(brotli.compress(SCRIPT))
    (built / "assets" / "core.wasm").write_bytes(b"\0asm")
    (built / "notes.exe").write_bytes(b"MZ")
    (tmp_path / "secret.txt").write_text("secret")
    (built / "linked.txt").symlink_to(tmp_path / "secret.txt")
    return built


def ask(pages, path, method="GET", **headers):
    scope = {"type": "http", "method": method, "path": path, "headers": [
        (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
    ]}  # fmt: skip
    return asyncio.run(pages.respond(Request(scope, None, "1")))


def header(response, name):
    return dict(response.headers).get(name.encode(), b"").decode()


def test_files_have_their_type_and_a_strict_policy(folder):
    pages = Pages({"/": folder, "/explore/": folder})
    types = {
        "/": b"text/html; charset=utf-8",
        "/assets/index-Abcd1234.js": b"text/javascript; charset=utf-8",
        "/explore/assets/core.wasm": b"application/wasm",
    }
    for path, media_type in types.items():
        response = ask(pages, path)
        assert (response.status, response.media_type) == (200, media_type)
        policy = dict(
            part.strip().split(" ", 1) for part in header(response, "content-security-policy").split(";")
        )
        more = " 'wasm-unsafe-eval'" if path.startswith("/explore/") else ""
        assert policy == {**POLICY, "script-src": "'self'" + more}
        assert header(response, "x-content-type-options") == "nosniff"
        assert header(response, "referrer-policy") == "no-referrer"


def test_only_files_that_were_found_at_the_start_are_served(folder):
    pages = Pages({"/": folder, "/explore/": folder})
    (folder / "later.txt").write_text("later")
    for path in (
        "/later.txt",
        "/linked.txt",
        "/notes.exe",
        "/index.html",
        "/assets",
        "/assets/",
        "/assets/index-Abcd1234.js.br",
        "/../secret.txt",
        "/assets/../index.html",
        "/%2e%2e/secret.txt",
        "//",
        "/explore/../secret.txt",
        "",
        "/\0",
        "/v1/filters",
    ):
        assert path not in pages, path
    assert "/explore/" in pages
    assert "/explore" in pages
    assert "/explore" not in Pages({"/": folder})


def test_the_smallest_form_that_the_client_takes_is_sent(folder):
    pages = Pages({"/": folder})
    path = "/assets/index-Abcd1234.js"
    forms = {
        "gzip, deflate, br": ("br", brotli.decompress),
        "br;q=1.0": ("br", brotli.decompress),
        "gzip;q=0.5, br;q=0": ("gzip", gzip.decompress),
        "GZIP": ("gzip", gzip.decompress),
        "br;q=0.000, gzip ; q=0": ("", bytes),
        "identity": ("", bytes),
        "": ("", bytes),
        "brr,xgzip": ("", bytes),
    }
    tags = set()
    for accepted, (encoding, unpack) in forms.items():
        response = ask(pages, path, accept_encoding=accepted)
        assert header(response, "content-encoding") == encoding, accepted
        assert unpack(response.body) == SCRIPT
        assert header(response, "vary") == "accept-encoding"
        tags.add(header(response, "etag"))
    assert len(tags) == 3


def test_names_with_a_hash_are_cached_permanently_and_others_checked(folder):
    pages = Pages({"/": folder})
    assert (
        header(ask(pages, "/assets/index-Abcd1234.js"), "cache-control")
        == "public, max-age=31536000, immutable"
    )
    for path in ("/", "/assets/core.wasm"):
        first = ask(pages, path)
        assert header(first, "cache-control") == "no-cache"
        again = ask(pages, path, if_none_match=header(first, "etag"))
        assert (again.status, again.body) == (304, b"")


def test_pages_are_read_only_and_a_vanished_file_is_missing(folder):
    pages = Pages({"/": folder})
    with pytest.raises(Refused) as refused:
        ask(pages, "/", "POST")
    assert refused.value.code == "method"
    (folder / "index.html").unlink()
    with pytest.raises(Refused) as missing:
        ask(pages, "/")
    assert missing.value.code == "missing"
    assert "rebuilt" in str(missing.value)


def test_a_page_that_was_rebuilt_is_served_with_its_new_files(folder):
    pages = Pages({"/": folder})
    (folder / "assets" / "index-Zyxw9876.js").write_text("new")
    assert "/assets/index-Zyxw9876.js" not in pages
    index = folder / "index.html"
    index.write_text("<!doctype html><title>new</title>")
    os.utime(index, ns=(1, 1))
    assert ask(pages, "/").body == index.read_bytes()
    assert ask(pages, "/assets/index-Zyxw9876.js").body == b"new"


def test_a_compressed_copy_of_an_older_build_is_not_sent(folder):
    script = folder / "assets" / "index-Abcd1234.js"
    script.write_bytes(b"new")
    assert ask(Pages({"/": folder}), "/assets/index-Abcd1234.js", accept_encoding="br").body == b"new"


def test_the_service_answers_at_its_root(service):
    """With the dashboard where it is built, else with the description and how to build it."""
    built = find_folders()
    response = service.http.get("/")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    if "/" in built:
        assert "script-src 'self';" in response.headers["content-security-policy"]
        assert service.http.request("DELETE", "/").status_code == 405
        assert service.http.head("/").headers["etag"]
    else:
        assert NOT_BUILT in response.text
    explorer = service.http.get("/explore")
    assert explorer.status_code == (308 if "/explore/" in built else 404)
    if "/explore/" in built:
        assert explorer.headers["location"] == "/explore/"
        assert "'wasm-unsafe-eval'" in service.http.get("/explore/").headers["content-security-policy"]


def test_pages_need_no_token_and_their_requests_do(start):
    service = start()
    service.http.post("/v1/tokens", json={"name": "root", "scopes": ["admin"]}).raise_for_status()
    assert service.http.get("/").status_code == 200
    assert service.http.get("/v1/filters").status_code == 401


def test_pages_of_other_hosts_are_refused_without_tokens(service):
    """A page that another site's name leads to could read the filters."""
    assert service.http.get("/", headers={"host": "evil.example"}).status_code == 403
    assert httpx.get(service.url, headers={"sec-fetch-site": "cross-site"}, timeout=60).status_code == 200
