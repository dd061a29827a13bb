//! Static filters: made of all their keys at once, smaller than any filter that grows.
//!
//! ```text
//! keys --records--> distinct, sorted, in shards --a structure's own rule--> cells
//! ```
//!
//! * [`records`](crate::structure::records) collects hashes (and what stands beside them) in memory or, beyond a bound, in a file; sorts them,
//!   drops the repeated ones, deals them to shards;
//! * [`shards`]: how many shards, the table that says where each lies, building them on several threads;
//! * [`peel`]: solves for cells of which each key's xor to a value;
//! * [`golomb`]: sorted values in codes of their gaps;
//! * [`fuse`], [`xor`]: where the cells of a key lie, and the filters that are made so; [`fingerprints`]: what these have in
//!   common; [`bloomier`]: a value beside each fingerprint;
//! * [`ribbon`]: parities of neighbouring slots, solved by elimination.
//!
//! The bytes depend on the set of keys and on the seed alone: not on their order, on repetitions, on threads or on the
//! memory that was granted.

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
