//! What every structure has.
//!
//! * [`traits`]: what a structure can do; it implements exactly what it can honour;
//! * [`algebra`]: what two structures of one kind tell about each other;
//! * [`declaration`]: what a structure takes, keeps and shows, said once;
//! * [`values`]: what a declared field may be;
//! * `kept`: what follows from the memories in which it keeps its cells;
//! * [`load`]: what it was sized for and how far it is filled;
//! * [`differences`]: why two structures cannot be combined;
//! * [`batch`]: many keys at once, on one thread or several;
//! * [`opening`]: from files and bytes; [`parts`]: a copy in slices;
//! * [`job`]: long work that is watched and can be ended;
//! * [`records`]: all keys of a structure that is made at once.

pub mod algebra;
pub mod batch;
pub(crate) mod conformance;
pub mod declaration;
pub mod differences;
pub mod job;
pub(crate) mod kept;
pub mod load;
pub mod opening;
pub mod parts;
pub mod records;
pub(crate) mod testing;
pub mod traits;
pub mod values;

pub use crate::key::source::HashSource;
pub use algebra::Intersectable;
pub use declaration::{Declared, Mergeable};
pub use job::Job;
pub use traits::{
    Addable, Built, Countable, Filter, Loadable, Options, Planned, Positioned, Removable, Sections, Sizable, Value,
};
