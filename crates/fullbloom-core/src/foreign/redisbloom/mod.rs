//! `RedisBloom`'s filters, bit for bit: a filter that is dumped there and loaded here gives the same answers, grows in
//! the same way, and is dumped again as the same bytes.
//!
//! * [`bloom`]: the chain of layers behind `BF.*`; a key is two words, [`bloom::hash`];
//! * [`cuckoo`]: the tables behind `CF.*`; a key is one word, [`cuckoo::hash`];
//! * [`cells`]: the bytes of a layer or a table, which may arrive in pieces;
//! * [`dump`]: a dump as a stream of pieces, and as one file;
//! * [`lookup`]: many keys at a time; [`merging`]: two filters, and none of their keys;
//! * [`file`]: both in a container: the header among the parameters, and a section a layer.
//!
//! A dump is a header and the bytes of all layers, in order, in pieces. The number of a piece is that of the byte after
//! its last one, counted from 1; the header has number 1.

pub mod bloom;
pub mod cells;
pub mod cuckoo;
pub mod dump;
mod dumpable;
mod fields;
pub mod file;
mod load;
mod lookup;
mod merging;
mod reasons;

/// Number of the header among pieces.
pub const HEAD: i64 = 1;
/// Bytes of the largest piece.
pub const PIECE: usize = 16 << 20;
