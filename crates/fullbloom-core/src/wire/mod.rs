//! Filters in strings of a server: commands for a batch of hashes as one buffer, and its replies as answers. Bytes in,
//! bytes out: nothing here opens a socket.
//!
//! The server is a Redis or compatible with it (RESP2, RESP3). A filter is one string or several, its *shards*:
//!
//! * [`cut`]: the bytes of the filter in each shard;
//! * [`command`]: commands as bytes;
//! * [`reply`]: replies, from pieces of any length;
//! * [`cells`]: a shape as strings: the requests for a hash, and the meaning of the reply;
//! * [`exchange`]: commands for one server, their replies, and where they end early;
//! * [`plain`]: many hashes as such commands; [`whole`]: those of a short shard as one string of bits;
//! * [`counters`], [`counted`]: the same for counters, which are never changed twice;
//! * [`text`]: one short string, read along with the keys of a batch;
//! * `groups`: the hashes of a batch by shard.
//!
//! A server counts the bits of a byte from the other end than a filter does: bit p of a filter is bit `p & !7 | 7 - (p
//! & 7)` of a string. So a string of lines has, byte for byte, the cells of the filter in memory. Layouts without lines
//! are for simple clients, who read bit p by its number: their strings have the bits of each byte reversed.

pub mod cells;
pub mod command;
pub mod counted;
pub mod counters;
pub mod cut;
pub mod exchange;
mod groups;
pub mod plain;
pub mod reply;
#[cfg(test)]
mod tests;
pub mod text;
pub mod whole;

pub use cells::Cells;
pub use counters::Counters;
pub use cut::Shard;
pub use exchange::Exchange;
