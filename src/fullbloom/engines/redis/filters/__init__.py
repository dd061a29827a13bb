"""The filters, for threads and for asyncio, and what they have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from fullbloom.engines.redis.protocol.manifest import Manifest


class _Storage(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def manifest(self) -> Manifest: ...


class StoredFilter:
    """A filter that a server stores under a name; nothing here sends a request."""

    #: Parameters that the representation shows.
    _SHOWN: ClassVar[tuple[str, ...]] = ("capacity", "fpr")
    _storage: _Storage

    @property
    def name(self) -> str:
        """The filter's name on the server."""
        return self._storage.name

    @property
    def manifest(self) -> Manifest:
        """The parameters that the server stores."""
        return self._storage.manifest

    @property
    def capacity(self) -> int:
        """Keys the filter was sized for."""
        return self.manifest.capacity

    def _parameters(self) -> dict[str, Any]:
        """Class, name and parameters, without the present load."""
        manifest = self.manifest
        sized = {"backend": manifest.backend, "capacity": manifest.capacity, "target_fpr": manifest.fpr}
        return {"class": type(self).__name__, "name": self.name, **sized, **manifest.describe()}

    def __repr__(self) -> str:
        """Show the name and the main parameters."""
        shown = "".join(f", {field}={getattr(self.manifest, field)}" for field in self._SHOWN)
        return f"{type(self).__name__}({self.name!r}{shown})"
