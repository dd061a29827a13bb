"""A client of the filter service: the methods of `set`, over HTTP. Needs the extra ``fullbloom[client]``.

>>> from fullbloom import Client
>>> Client.__name__
'Client'
"""

from __future__ import annotations

from fullbloom.extras import require_extra

with require_extra("client"):
    from fullbloom.client.async_client import AsyncClient, AsyncRemoteFilter
    from fullbloom.client.requests import ServiceError
    from fullbloom.client.sync_client import Client, RemoteFilter

__all__ = ["AsyncClient", "AsyncRemoteFilter", "Client", "RemoteFilter", "ServiceError"]
