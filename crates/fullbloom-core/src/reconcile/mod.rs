//! Reconciliation: the differences of two sets, by messages as long as the differences.
//!
//! * [`cell`]: a sum of keys that reveals the last key in it;
//! * [`peel`]: removing keys from cells until none is left; [`DecodedKeys`], the result;
//! * [`invertible`]: a table of such cells, for a known number of differences;
//! * [`walk`] and [`rateless`]: a stream of them, for any number of differences;
//! * [`characteristic`]: values of a polynomial, for a known number of differences, in the fewest bytes;
//! * [`strata`]: an estimate of the number of differences.

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
pub use peel::DecodedKeys;
