//! Methods that only some classes have, by family; `classes` creates the rest from the registry.

mod bloom;
mod bloomier;
mod cascade;
mod chain;
mod counting;
mod exact;
mod golomb;
mod invertible;
mod labelled;
mod retouched;
mod table;
mod window;
