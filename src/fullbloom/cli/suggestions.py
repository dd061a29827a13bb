"""Suggestions for a wrong option or command."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Other tools' names of a command or an option, and ours.
_COMMANDS = {
    "create": "build",
    "new": "build",
    "make": "build",
    "add": "insert",
    "append": "insert",
    "contains": "check",
    "exists": "check",
    "lookup": "check",
    "query": "check",
    "test": "check",
    "uniq": "dedup",
    "unique": "dedup",
    "distinct": "dedup",
    "union": "merge",
    "stats": "info",
    "inspect": "info",
    "view": "show",
    "draw": "show",
    "cells": "show",
    "bits": "show",
    "server": "serve",
    "start": "serve",
    "size": "plan",
    "diff": "sync",
}
_OPTIONS = {
    "--column": "--select",
    "--columns": "--select",
    "--field": "--select",
    "--key": "--select",
    "--fp": "--fpr",
    "--error": "--fpr",
    "--error-rate": "--fpr",
    "--rate": "--fpr",
    "--probability": "--fpr",
    "--size": "--capacity",
    "--items": "--capacity",
    "--expected": "--capacity",
    "--capacity": "--items",
    "--port": "--http",
    "--host": "--http",
    "--bind": "--http",
    "--listen": "--http",
    "--dir": "--data",
    "--out": "--output",
    "-o": "--output",
    "--need": "--needs",
    "--type": "--kind",
    "--structure": "--kind",
}
_HOW = {"--http": " HOST:PORT", "--select": " COLUMN"}


def suggest_command(word: str, commands: Iterable[str]) -> str | None:
    """Return the command that ``word`` probably means; None if none is similar."""
    known = list(commands)
    meant = _COMMANDS.get(word.lower())
    return meant if meant in known else _find_similar(word.lower(), known)


def suggest_option(word: str, options: Iterable[str]) -> str | None:
    """Return the option that ``word`` probably means, with its value; None if none is similar."""
    known = list(options)
    name = word.partition("=")[0]
    meant = _OPTIONS.get(name.lower())
    found = meant if meant in known else _find_similar(name.lower(), known)
    return None if found is None else found + _HOW.get(found, "")


def _find_similar(word: str, known: list[str]) -> str | None:
    return next(iter(difflib.get_close_matches(word, known, 1, 0.7)), None)
