"""Modules of optional packages that are not installed, so that pages of engines are built without 500 MB."""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock


class Placeholder(ModuleType):
    """A module with every name; all are placeholders."""

    __path__: list[str] = []  # noqa: RUF012 - what makes a module a package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock(name=name)


class Finder(MetaPathFinder, Loader):
    """Finds every module of one package."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, _path: object, _target: object = None) -> ModuleSpec | None:
        """Find a module of the package, at any depth."""
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] == self.package else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return an empty module."""
        return Placeholder(spec.name)

    def exec_module(self, _module: ModuleType) -> None:
        """Do nothing: names are created on first access."""


def import_documented(name: str) -> ModuleType:
    """Return a module, with placeholders for the optional packages that are missing.

    Later imports find neither the placeholders nor the modules of this package that use them.
    """
    before = {*sys.modules}
    finders: list[Finder] = []
    try:
        while True:
            try:
                return importlib.import_module(name)
            except ModuleNotFoundError as error:
                package = (error.name or "").partition(".")[0]
                if package in ("fullbloom", *(finder.package for finder in finders)):
                    raise
                finders.append(Finder(package))
                sys.meta_path.append(finders[-1])
    finally:
        for finder in finders:
            sys.meta_path.remove(finder)
        if finders:
            for module in sys.modules.keys() - before:
                if isinstance(sys.modules[module], Placeholder) or module.startswith("fullbloom."):
                    del sys.modules[module]
