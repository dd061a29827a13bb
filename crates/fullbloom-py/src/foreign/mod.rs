//! Filters of other programs as classes.
//!
//! * [`filter`]: bits; [`sets`]: two of them; [`fingerprints`]: filters that are built of all their keys at once;
//!   [`dumps`], [`pieces`]: the filters of RedisBloom;
//! * [`arguments`]: format, type of keys and the others; [`sources`]: files and bytes; [`opening`]: any filter in them;
//! * [`batch`]: many keys; [`keys`]: one; [`job`], [`target`]: what is done with them, and what does it;
//!   [`records`]: lines and rows for the command line;
//! * [`formats`]: the table of formats;
//! * [`parquet`]: where the filters of a Parquet file are.

pub(crate) mod arguments;
mod batch;
mod dumps;
mod filter;
mod fingerprints;
mod formats;
mod job;
mod keys;
pub(crate) mod opening;
pub(crate) mod parquet;
mod pieces;
pub(crate) mod records;
mod sets;
pub(crate) mod sources;
mod target;

pub(crate) use dumps::{ForeignCuckooFilter, ForeignScalableFilter};
pub(crate) use filter::ForeignFilter;
pub(crate) use fingerprints::ForeignStaticFilter;
pub(crate) use formats::{foreign_formats, foreign_positions};
pub(crate) use opening::{detect_foreign, open_foreign};
