"""What every constructor takes: the seed, and the secret of a keyed filter."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fullbloom.cli.failures import Refusal

if TYPE_CHECKING:
    from fullbloom.cli.options import FilterOptions

_SECRET_BYTES = 16
T = TypeVar("T", bound="FilterOptions")


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


def draw(options: T, *, keyed: bool) -> T:
    """Return the options with a random seed, or ``keyed`` with a secret, unless they have one already.

    With the public hash, whoever writes the lines can make any one of them look like a repetition.
    """
    if options.seed is not None or options.secret_file is not None:
        return options
    if keyed:
        return replace(options, secret=os.urandom(_SECRET_BYTES))
    return replace(options, seed=int.from_bytes(os.urandom(8), "little"))


def hashing(options: FilterOptions) -> dict[str, Any]:
    """Return the keywords of the key hash that constructors take."""
    secret = secret_from(options.secret_file) if options.secret is None else options.secret
    return {"seed": options.seed or 0, "secret": secret}
