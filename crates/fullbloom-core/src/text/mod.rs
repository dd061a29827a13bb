//! Text for the command line: records of a stream, and the exact second look at what a filter dropped.

mod candidates;
mod records;
pub mod select;
mod through;

pub use candidates::CandidateDuplicates;
pub use records::{LINES, Tally, add, add_marked, check, collect, hashed};
