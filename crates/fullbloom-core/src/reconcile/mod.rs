//! Reconciliation: what two sets have not in common, by messages as long as their difference.
//!
//! * [`cell`]: a sum of keys that gives a key back when one is left in it;
//! * [`peel`]: taking keys out of cells until none is left; [`Decoded`], what came out;
//! * [`invertible`]: a table of such cells, for a number of differences known beforehand;
//! * [`walk`] and [`rateless`]: a stream of them, for any number of differences;
//! * [`characteristic`]: values of a polynomial, for a number of differences known beforehand, in the fewest bytes;
//! * [`strata`]: how many differences there are.

pub mod cell;
pub mod characteristic;
pub mod invertible;
pub mod peel;
pub mod rateless;
pub mod strata;
#[cfg(test)]
mod tests;
pub mod walk;

pub use invertible::InvertibleBloomFilter;
pub use peel::Decoded;
