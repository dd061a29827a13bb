//! The parts that all structures share.
//!
//! * [`traits`]: the operations of a structure;
//! * [`algebra`]: operations on two structures of one type;
//! * [`declaration`]: parameters, fields and documentation of a structure, declared once;
//! * [`values`]: types of declared fields;
//! * `memories`: methods that follow from the memories that hold its cells;
//! * [`cell_stats`]: what its cells say, from one count;
//! * [`load`]: its capacity, rate and number of keys;
//! * [`batch`]: many keys at once, on one thread or several;
//! * [`opening`]: reading files and bytes; [`parts`]: a copy in slices;
//! * [`job`]: long work with progress reports, which can be cancelled;
//! * [`records`]: all keys of a structure that is built at once.

pub mod algebra;
pub mod batch;
pub mod cell_stats;
pub(crate) mod conformance;
pub mod declaration;
pub mod job;
pub mod load;
pub(crate) mod memories;
pub mod opening;
pub mod parts;
pub mod records;
pub(crate) mod testing;
pub mod traits;
pub mod values;

pub use crate::key::source::HashSource;
pub use algebra::{Intersectable, Mergeable};
pub use cell_stats::{CellCounts, CellStats};
pub use declaration::Declared;
pub use job::Job;
pub use traits::{
    Addable, Built, Countable, Filter, Loadable, Options, Planned, Positioned, Removable, Sections, Sizable,
};
pub use values::Value;
