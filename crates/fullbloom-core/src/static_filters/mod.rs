//! Static filters: built of all their keys at once, smaller than any filter that grows.
//!
//! ```text
//! keys --records--> distinct, sorted, in shards --a structure's own rule--> cells
//! ```
//!
//! * [`records`](crate::structure::records) collects hashes (and values) in memory or, beyond a limit, in a file; sorts
//!   them, drops repeated ones, and assigns them to shards;
//! * [`shards`]: the number of shards, their table, and building them on several threads;
//! * [`peel`]: solves for cells the xor of which, for each key, is a value;
//! * [`golomb`]: sorted values in codes of their gaps;
//! * [`fuse`], [`xor`]: the cells of a key, and the filters with these geometries; [`fingerprints`]: their common part;
//!   [`bloomier`]: a value with each fingerprint;
//! * [`ribbon`]: parities of neighbouring slots, solved by elimination.
//!
//! The bytes depend only on the set of keys and the seed: not on the order or repetition of keys, on threads or on the
//! memory limit.

pub mod bloomier;
pub mod fingerprints;
pub mod fuse;
pub mod golomb;
pub mod peel;
pub mod ribbon;
pub mod shards;
pub mod xor;

pub use bloomier::BloomierMap;
pub use fuse::BinaryFuseFilter;
pub use golomb::GolombSet;
pub use ribbon::RibbonFilter;
pub use xor::XorFilter;
