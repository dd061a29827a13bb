"""Optional packages: an import without its extra names the command that installs it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fullbloom.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["require_extra"]

_PACKAGE = __name__.partition(".")[0]


@contextmanager
def require_extra(extra: str) -> Iterator[None]:
    """Translate the import of a missing package into `MissingExtra`, which names ``extra``.

    Put the imports of optional packages, and of modules that import them, inside. The outermost extra wins,
    because it is the one that the caller imported. A missing module of this package stays what it is.

    >>> with require_extra("duckdb"):
    ...     import not_installed_here
    Traceback (most recent call last):
    fullbloom.errors.MissingExtra: not_installed_here is not installed: pip install 'fullbloom[duckdb]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        name = error.name or ""
        if name.partition(".")[0] == _PACKAGE:
            raise
        cause = error.__cause__ if isinstance(error, MissingExtra) else error
        message = f"{name or 'a package'} is not installed: pip install 'fullbloom[{extra}]'"
        raise MissingExtra(message, name=error.name) from cause
