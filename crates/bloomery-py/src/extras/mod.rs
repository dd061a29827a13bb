//! Methods that only one class has, one file a class; the rest is stamped from the registry.

mod counting;
mod d_left;
mod deletable;
mod retouched;
mod stable;
