//! Filters in the formats of other programs: their hashes, sizes and bytes, so that a filter of such a program
//! continues here, and back. The registry has no rows for them: their keys are not hashes of 64 bits.

pub mod redisbloom;
