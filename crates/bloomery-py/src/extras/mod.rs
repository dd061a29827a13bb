//! Methods that only some classes have, one file a class; the rest is stamped from the registry.

mod bit_set;
mod bloom;
mod cascade;
mod chain;
mod compact;
mod counting;
mod d_left;
mod deletable;
mod generations;
mod invertible;
mod layered;
mod pairs;
mod quotient;
mod retouched;
mod spatial;
mod stable;
