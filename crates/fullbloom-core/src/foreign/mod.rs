//! Filters as other programs keep them: their hashes, sizes and bytes, so that what one of them has made goes on here,
//! and back. They are no rows of the registry: their keys do not come as hashes of 64 bits.

pub mod redisbloom;
