"""Bloom filters on Redis and Valkey servers, which a fleet of clients shares.

docs/engines/redis.md tells how. Needs a client, redis-py (``pip install bloomery[redis]``).
"""

from bloomery.engines.redis.acknowledged import Verification
from bloomery.engines.redis.async_counting import AsyncRedisCountingFilter
from bloomery.engines.redis.async_filter import AsyncRedisBloomFilter
from bloomery.engines.redis.async_rolling import AsyncRedisRollingFilter
from bloomery.engines.redis.counting import RedisCountingFilter
from bloomery.engines.redis.filter import RedisBloomFilter
from bloomery.engines.redis.planning import Plan
from bloomery.engines.redis.rolling import RedisRollingFilter

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
