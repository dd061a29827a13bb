"""Bloom filters on Redis and Valkey servers, which a fleet of clients shares.

docs/engines/redis.md tells how. Needs a client, redis-py (``pip install bloomery[redis]``).
"""

from bloomery.engines.redis.filters.async_bloom import AsyncRedisBloomFilter
from bloomery.engines.redis.filters.async_counting import AsyncRedisCountingFilter
from bloomery.engines.redis.filters.async_rolling import AsyncRedisRollingFilter
from bloomery.engines.redis.filters.sync_bloom import RedisBloomFilter
from bloomery.engines.redis.filters.sync_counting import RedisCountingFilter
from bloomery.engines.redis.filters.sync_rolling import RedisRollingFilter
from bloomery.engines.redis.protocol.plan import Plan
from bloomery.engines.redis.protocol.verify import Verification

__all__ = [
    "AsyncRedisBloomFilter",
    "AsyncRedisCountingFilter",
    "AsyncRedisRollingFilter",
    "Plan",
    "RedisBloomFilter",
    "RedisCountingFilter",
    "RedisRollingFilter",
    "Verification",
]
