//! `RedisBloom`'s filters, bit for bit: a filter that is dumped there and loaded here answers as it did, grows as it
//! would have grown, and is dumped again as the same bytes.
//!
//! * [`bloom`]: the chain of layers behind `BF.*`; a key is two words, [`bloom::hash`];
//! * [`cuckoo`]: the tables behind `CF.*`; a key is one word, [`cuckoo::hash`];
//! * [`cells`]: the bytes of a layer or a table, which may come in pieces;
//! * [`file`]: both in a container, as it stands: its header among the parameters, and a section a layer.
//!
//! A dump is a header and the bytes of all layers, one behind the other, in pieces. A piece goes by the number of the byte
//! behind its last one, counted from 1; the header goes by 1.

pub mod bloom;
pub mod cells;
pub mod cuckoo;
mod fields;
pub mod file;

/// Number of the header among pieces.
pub const HEAD: i64 = 1;
/// Bytes of the largest piece.
pub const PIECE: usize = 16 << 20;
