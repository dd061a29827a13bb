//! Python objects whose size the input decides: memory that runs out is an error, never PyO3's panic.
//!
//! * [`bytes`]: `bytes`, read and created;
//! * [`lists`]: lists of `bool` and `int`;
//! * [`answers`]: results in the same container type as the keys.

pub(crate) mod answers;
pub(crate) mod bytes;
pub(crate) mod lists;
