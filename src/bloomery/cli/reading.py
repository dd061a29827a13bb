"""How the input is read, as the options of a command say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def has_records(args: argparse.Namespace) -> bool:
    """Tell whether records are read: with a chosen key, by several threads, or for the last of a key."""
    if getattr(args, "hex", False) or getattr(args, "sha1_of", False):
        return False
    return bool(args.select) or args.threads > 1 or getattr(args, "keep", "first") == "last"
