//! Methods that only some classes have, one file a class; the rest is stamped from the registry.

mod bit_set;
mod bloom;
mod bloomier;
mod cascade;
mod chain;
mod compact;
mod counting;
mod d_left;
mod deletable;
mod generations;
mod golomb;
mod invertible;
mod layered;
pub(crate) mod pairs;
mod quotient;
mod retouched;
mod spatial;
mod stable;
mod zone;
