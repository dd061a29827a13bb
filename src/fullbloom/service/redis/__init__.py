"""Filters of the service whose cells a Redis server holds: every node serves them.

The registry has what a node needs to open one: its name there, its parameters and its secret. A node keeps
only an open handle, so for these filters all nodes are equal.
"""

from __future__ import annotations

from fullbloom.service.redis.filter import BACKEND, RedisFilter
from fullbloom.service.redis.filters import LOCATION, RedisFilters

__all__ = ["BACKEND", "LOCATION", "RedisFilter", "RedisFilters"]
