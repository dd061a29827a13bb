"""Bloom filters on Redis and Valkey servers, which a fleet of clients shares.

docs/engines/redis.md describes their use. Needs a client, redis-py (``pip install 'fullbloom[redis]'``).
"""

from fullbloom.extras import require_extra

with require_extra("redis"):
    from fullbloom.engines.redis.filters.async_bloom import AsyncRedisBloomFilter
    from fullbloom.engines.redis.filters.async_kinds import (
        AsyncRedisBitmapFilter,
        AsyncRedisCountingFilter,
        AsyncRedisRollingFilter,
    )
    from fullbloom.engines.redis.filters.sync_bloom import RedisBloomFilter
    from fullbloom.engines.redis.filters.sync_kinds import (
        RedisBitmapFilter,
        RedisCountingFilter,
        RedisRollingFilter,
    )
    from fullbloom.engines.redis.protocol.plan import Plan
    from fullbloom.engines.redis.storage.foreign import BitmapVerification
    from fullbloom.engines.redis.storage.verification import Verification

__all__ = [
    "AsyncRedisBitmapFilter",
    "AsyncRedisBloomFilter",
    "AsyncRedisCountingFilter",
    "AsyncRedisRollingFilter",
    "BitmapVerification",
    "Plan",
    "RedisBitmapFilter",
    "RedisBloomFilter",
    "RedisCountingFilter",
    "RedisRollingFilter",
    "Verification",
]
