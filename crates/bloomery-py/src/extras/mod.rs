//! Methods that only some classes have, one file a class; the rest is stamped from the registry.

mod compact;
mod counting;
mod generations;
mod layered;
mod pairs;
mod spatial;
mod stable;
