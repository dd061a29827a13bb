"""A client of the filter service: the methods of `set`, over HTTP. Needs the extra ``bloomery[client]``.

>>> from bloomery import Client
>>> Client.__name__
'Client'
"""

from __future__ import annotations

from bloomery.client.api import AsyncClient, AsyncRemoteFilter, Client, RemoteFilter
from bloomery.client.requests import ServiceError

__all__ = ["AsyncClient", "AsyncRemoteFilter", "Client", "RemoteFilter", "ServiceError"]
