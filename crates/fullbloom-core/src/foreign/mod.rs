//! Filters in the formats of other programs: their hashes, sizes and bytes, so that a filter of such a program
//! continues here, and back. The registry has no rows for them: their keys are not hashes of 64 bits.
//!
//! * [`formats`]: the table of formats, one file each;
//! * [`rules`]: how each of them turns a key into positions, one file a family;
//! * [`bits`]: a Bloom filter under such a rule;
//! * [`static_filter`]: filters that are built of all their keys at once: [`fingerprints`] and [`golomb`];
//! * [`redisbloom`]: filters that grow, of the service;
//! * [`key_type`]: the keys that a format takes, and their bytes;
//! * [`source`]: bytes that are read once; [`opening`]: any filter in them;
//! * [`parquet`]: where the filters of a Parquet file are.

pub mod bits;
pub mod fingerprints;
pub mod formats;
pub mod golomb;
pub mod key_type;
pub mod opening;
pub mod parquet;
pub mod redisbloom;
pub mod rules;
pub mod source;
pub mod static_filter;
