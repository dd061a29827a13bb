"""The secret of a keyed filter, read from a file."""

from __future__ import annotations

from pathlib import Path

from fullbloom.cli.failures import Refusal

_SECRET_BYTES = 16


def read_secret(path: str | None) -> bytes | None:
    """Read a secret: 16 raw bytes or 32 hexadecimal digits. It is never printed."""
    if path is None:
        return None
    with Path(path).open("rb") as file:
        raw = file.read(2 * _SECRET_BYTES + 64)
    if len(raw) == _SECRET_BYTES:
        return raw
    try:
        secret = bytes.fromhex(raw.strip().decode("ascii"))
    except ValueError:
        secret = b""
    if len(secret) != _SECRET_BYTES:
        raise Refusal(f"{path}: a secret is 16 bytes or 32 hexadecimal digits; this file is neither")
    return secret
