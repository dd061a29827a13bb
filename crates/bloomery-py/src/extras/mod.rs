//! Methods that only one class has, one file a class; the rest is stamped from the registry.

mod bloom;
mod counting;
mod quotient;
mod stable;
