"""Bloom filters on Redis and Valkey servers, which a fleet of clients shares.

docs/engines/redis.md describes their use. Needs a client, redis-py (``pip install 'fullbloom[redis]'``).
"""

from fullbloom.extras import require_extra

with require_extra("redis"):
    from fullbloom.engines.redis.filters.async_bitmap import AsyncRedisBitmapFilter
    from fullbloom.engines.redis.filters.async_bloom import AsyncRedisBloomFilter
    from fullbloom.engines.redis.filters.async_counting import AsyncRedisCountingFilter
    from fullbloom.engines.redis.filters.async_rolling import AsyncRedisRollingFilter
    from fullbloom.engines.redis.filters.sync_bitmap import RedisBitmapFilter
    from fullbloom.engines.redis.filters.sync_bloom import RedisBloomFilter
    from fullbloom.engines.redis.filters.sync_counting import RedisCountingFilter
    from fullbloom.engines.redis.filters.sync_rolling import RedisRollingFilter
    from fullbloom.engines.redis.protocol.bitmap import BitmapVerification
    from fullbloom.engines.redis.protocol.plan import Plan
    from fullbloom.engines.redis.protocol.verify import Verification

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
