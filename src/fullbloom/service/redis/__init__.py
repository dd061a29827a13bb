"""Filters of the service whose cells a Redis server holds: every node answers for them.

The registry has what a node needs to open one: its name there, its parameters and its secret. A node keeps no
more of it than an open handle, so nodes are copies of each other as far as these filters go.
"""

from __future__ import annotations

from fullbloom.service.redis.asked import Asked
from fullbloom.service.redis.described import BACKEND
from fullbloom.service.redis.filters import LIVES, RedisFilters

__all__ = ["BACKEND", "LIVES", "Asked", "RedisFilters"]
