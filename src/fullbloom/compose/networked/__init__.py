"""Filters of several machines: replicated, partitioned, routed through, and aggregated with.

- ``element``: the interface of a processing element, and a counter of what it sends
- ``local``, ``sockets``: elements that are threads, and elements that are processes; ``handshake`` is how
  these meet
- ``aggregation``: sums over the values of many nodes without double counting
- ``attenuated``, ``routing``: filters by distance for each link of a network, and queries that follow them;
  ``advertisements`` exchanges them between elements
- ``duplicates``: keys that occur in two elements, by single-shot filters; ``packets``, ``rice`` and
  ``key_bytes`` are its messages
- ``replication``: one filter in all elements, by hypercube exchange
- ``compatibility``: whether the filters of two elements can be merged

It may import: the standard library, ``fullbloom.errors``, ``fullbloom.theory``, ``fullbloom.registry`` and
``fullbloom._core``.
"""

from __future__ import annotations

from .advertisements import announce_hashes, exchange_advertisements
from .aggregation import AggregationNode, Offer, Receipt, exchange_values
from .attenuated import AttenuatedFilter, Router
from .duplicates import DuplicateReport, Round, find_duplicates
from .element import CountingElement, MessageElement, ProcessingElement
from .local import LocalElement, run_local
from .replication import Replicable, replicate
from .routing import AttenuatedNetwork, Route, UpdateCost
from .sockets import SocketElement

__all__ = [
    "AggregationNode",
    "AttenuatedFilter",
    "AttenuatedNetwork",
    "CountingElement",
    "DuplicateReport",
    "LocalElement",
    "MessageElement",
    "Offer",
    "ProcessingElement",
    "Receipt",
    "Replicable",
    "Round",
    "Route",
    "Router",
    "SocketElement",
    "UpdateCost",
    "announce_hashes",
    "exchange_advertisements",
    "exchange_values",
    "find_duplicates",
    "replicate",
    "run_local",
]
