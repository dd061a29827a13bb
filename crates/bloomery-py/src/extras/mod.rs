//! Methods that only some classes have, one file a class; the rest is stamped from the registry.

mod bloom;
mod compact;
mod counting;
mod generations;
mod layered;
pub(crate) mod pairs;
mod quotient;
mod spatial;
mod stable;
