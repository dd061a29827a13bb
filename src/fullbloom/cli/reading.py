"""How the input is read, as the options of a command say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from fullbloom.cli.io.records import Records


def has_records(args: argparse.Namespace) -> bool:
    """Tell whether records are read: with a chosen key, by several threads, or for the last of a key."""
    if getattr(args, "hex", False) or getattr(args, "sha1_of", False):
        return False
    return bool(args.select) or args.threads > 1 or getattr(args, "keep", "first") == "last"


def tell_faults(args: argparse.Namespace, records: Records) -> None:
    """Say how many records were left out, and what is wrong with the first."""
    if records.faults:
        from fullbloom.cli.report import note

        s = "" if records.faults == 1 else "s"
        note(args, f"{records.faults:,} record{s} left out; the first: {records.first_fault}")
