//! Tables of fingerprints: structures that store a short image of each key rather than bits of a
//! common pool, and so can take keys out again.
//!
//! * [`cuckoo`]: two buckets a key, moved until there is room; [`buckets`] lays them out, [`shape`]
//!   holds their law, [`places`] says where a key may lie, [`moves`] makes room;
//! * [`quotient`]: fingerprints in sorted runs, found by rank and select;
//! * [`prefix`]: one bin a key, of which the smallest fingerprints stay; [`bins`] lays them out,
//!   [`prefix_shape`] sizes them.

pub mod bins;
pub mod buckets;
pub mod cuckoo;
pub mod moves;
pub mod places;
pub mod prefix;
pub mod prefix_shape;
pub mod quotient;
pub mod shape;

pub use cuckoo::CuckooFilter;
pub use prefix::PrefixFilter;
pub use prefix_shape::PrefixShape;
pub use quotient::QuotientFilter;
pub use shape::CuckooShape;
