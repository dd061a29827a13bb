//! Filters in the formats of other programs: their hashes, sizes and bytes, so that a filter of such a program
//! continues here, and back. The registry has no rows for them: their keys are not hashes of 64 bits.
//!
//! * [`formats`]: the table of formats, one file each;
//! * [`rules`]: how each of them turns a key into positions, one file a family;
//! * [`bits`]: a Bloom filter under such a rule;
//! * [`fingerprints`]: filters that are built of all their keys at once;
//! * [`key_type`]: the keys that a format takes, and their bytes;
//! * [`bip158`]: the coded sets of Bitcoin's blocks;
//! * [`parquet`]: where the filters of a Parquet file are;
//! * [`redisbloom`]: filters that grow, of the service.

pub mod bip158;
pub mod bits;
pub mod fingerprints;
pub mod formats;
pub mod key_type;
pub mod parquet;
pub mod redisbloom;
pub mod rules;
