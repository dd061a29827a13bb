//! Tables of fingerprints: structures that store a short image of each key rather than bits of a
//! common pool, and so can take keys out again.
//!
//! * [`cuckoo`]: two buckets a key, moved until there is room; [`buckets`] lays them out, [`shape`]
//!   holds their law, [`places`] says where a key may lie, [`moves`] makes room, `cuckoo_stored` is
//!   the file;
//! * [`dynamic`]: cuckoo tables of one shape in stages, opened as keys come;
//! * [`quotient`]: fingerprints in sorted runs, found by rank and select;
//! * [`prefix`]: one bin a key, of which the smallest fingerprints stay; [`bins`] lays them out,
//!   [`prefix_shape`] sizes them.

pub mod bins;
pub mod buckets;
pub mod cuckoo;
mod cuckoo_stored;
pub mod dynamic;
pub mod moves;
pub mod places;
pub mod prefix;
pub mod prefix_shape;
pub mod quotient;
pub mod shape;

pub use cuckoo::CuckooFilter;
pub use dynamic::DynamicCuckooFilter;
pub use prefix::PrefixFilter;
pub use prefix_shape::PrefixShape;
pub use quotient::QuotientFilter;
pub use shape::CuckooShape;
