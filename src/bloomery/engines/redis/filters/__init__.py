"""What all filters that a server holds tell of themselves without asking it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from bloomery.engines.redis.protocol.manifest import Manifest


class _There(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def manifest(self) -> Manifest: ...


class Held:
    """A filter under a name on a server."""

    #: Parameters that its representation shows.
    _SHOWN: ClassVar[tuple[str, ...]] = ("capacity", "fpr")
    _there: _There

    @property
    def name(self) -> str:
        """The filter's name on the server."""
        return self._there.name

    @property
    def manifest(self) -> Manifest:
        """The parameters that stand on the server."""
        return self._there.manifest

    @property
    def capacity(self) -> int:
        """Keys the filter was sized for."""
        return self.manifest.capacity

    def _parameters(self) -> dict[str, Any]:
        """Class, name and parameters, for filters whose load is not asked."""
        stood = self.manifest
        sized = {"backend": stood.backend, "capacity": stood.capacity, "target_fpr": stood.fpr}
        return {"class": type(self).__name__, "name": self.name, **sized, **stood.told()}

    def __repr__(self) -> str:
        """Name the filter; nothing is asked."""
        shown = "".join(f", {field}={getattr(self.manifest, field)}" for field in self._SHOWN)
        return f"{type(self).__name__}({self.name!r}{shown})"
