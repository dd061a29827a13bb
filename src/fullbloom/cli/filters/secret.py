"""What every constructor takes: the seed, and the secret of a keyed filter."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fullbloom.cli.failures import Refusal

if TYPE_CHECKING:
    import argparse

_SECRET_BYTES = 16


def secret_from(path: str | None) -> bytes | None:
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


def draw(args: argparse.Namespace, *, keyed: bool) -> None:
    """Choose how a new filter hashes where no option does: by a random seed, or ``keyed`` by a secret.

    With the public hash, whoever writes the lines can make any one of them look like a repetition.
    """
    if args.seed is None and args.secret_file is None:
        if keyed:
            args.secret = os.urandom(_SECRET_BYTES)
        else:
            args.seed = int.from_bytes(os.urandom(8), "little")


def hashing(args: argparse.Namespace) -> dict[str, Any]:
    """Return the keywords that tell how a filter hashes."""
    drawn = getattr(args, "secret", None)
    return {"seed": args.seed or 0, "secret": secret_from(args.secret_file) if drawn is None else drawn}
