//! [`FingerprintFilter`]: an xor or a binary fuse filter of `xor_singleheader`, and of its Python package pyfusefilter.
//!
//! Such a filter is built of all its keys at once; nothing can be added.
//!
//! * [`layout`]: what a format says of its cells;
//! * [`shape`]: the cells of a key, and the header that describes them;
//! * [`solving`]: cells whose xor is a fingerprint;
//! * [`lookup`]: one key or many;
//! * [`filter`]: the filter.

mod filter;
mod layout;
mod lookup;
mod shape;
mod solving;
#[cfg(test)]
mod tests;

pub use filter::FingerprintFilter;
pub use layout::FingerprintLayout;
pub use shape::Family;
