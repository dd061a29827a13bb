"""Modules of optional packages that are not installed, so that pages of engines are built without 500 MB."""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

from fullbloom.errors import MissingExtra


class _Module(ModuleType):
    """A module with every name; all are placeholders."""

    __path__: list[str] = []  # noqa: RUF012 - what makes a module a package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock(name=name)


class _Finder(MetaPathFinder, Loader):
    """Finds every module of one package."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name: str, _path: object, _target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] == self._package else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, _module: ModuleType) -> None:
        """Do nothing: names are created on first access."""


def import_documented(name: str) -> ModuleType:
    """Return a module, with placeholders for the optional packages that are missing."""
    while True:
        try:
            return importlib.import_module(name)
        except MissingExtra as error:
            package = (error.name or "").partition(".")[0]
            if any(isinstance(finder, _Finder) and finder._package == package for finder in sys.meta_path):  # noqa: SLF001
                raise
            sys.meta_path.append(_Finder(package))
