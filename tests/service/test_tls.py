"""TLS on both ports, by one certificate."""

from __future__ import annotations

import shutil
import ssl
import subprocess

import httpx
import pytest
import redis


@pytest.mark.long
def test_both_ports_accept_only_tls(start, tmp_path):
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-keyout", str(key), "-out", str(cert), "-days", "1", "-subj", "/CN=localhost"]
    words += [
        "-addext",
        "subjectAltName=DNS:localhost,IP:127.0.0.1",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
    ]
    subprocess.run(words, check=True, capture_output=True)
    service = start("--tls-cert", str(cert), "--tls-key", str(key))
    assert service.url.startswith("https://")
    trusting = ssl.create_default_context(cafile=str(cert))
    assert httpx.get(f"{service.url}/healthz", verify=trusting, timeout=60).json() == {"status": "ok"}
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{service.url}/healthz", timeout=60)
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http{service.url.removeprefix('https')}/healthz", timeout=60)
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.load_verify_locations(str(cert))
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{service.url}/healthz", verify=old, timeout=60)
    host, _, port = service.resp.rpartition(":")
    with redis.Redis(host, int(port), ssl=True, ssl_ca_certs=str(cert)) as client:
        assert client.execute_command("BF.ADD", "seen", "ada") == 1
    with pytest.raises(redis.RedisError), redis.Redis(host, int(port), socket_timeout=60) as client:
        client.ping()
