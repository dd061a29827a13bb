"""Filters of several machines: replicated, partitioned, routed through, and aggregated with.

- ``element``: the interface of a processing element, and a counter of what it sends
- ``local``, ``sockets``: elements that are threads, and elements that are processes
- ``replication``: one filter in all elements, by hypercube exchange

It may import: the standard library, ``fullbloom.errors``, ``fullbloom.theory`` and ``fullbloom._core``.
"""

from __future__ import annotations

from .element import CountingElement, MessageElement, ProcessingElement
from .local import LocalElement, run_local
from .replication import Replicable, replicate
from .sockets import SocketElement

__all__ = [
    "CountingElement",
    "LocalElement",
    "MessageElement",
    "ProcessingElement",
    "Replicable",
    "SocketElement",
    "replicate",
    "run_local",
]
