"""A client of the filter service: the methods of `set`, over HTTP. Needs the extra ``bloomery[client]``.

>>> from bloomery import Client
>>> Client.__name__
'Client'
"""

from __future__ import annotations

from bloomery.client.async_client import AsyncClient, AsyncRemoteFilter
from bloomery.client.requests import ServiceError
from bloomery.client.sync_client import Client, RemoteFilter

__all__ = ["AsyncClient", "AsyncRemoteFilter", "Client", "RemoteFilter", "ServiceError"]
