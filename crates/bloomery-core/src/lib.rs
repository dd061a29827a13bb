//! The Bloom-filter family in pure Rust: no Python, no sockets, no clock.
//!
//! Read the rooms from the bottom up; arrows run one way only:
//!
//! | room | holds | may use |
//! |---|---|---|
//! | [`error`] | the one error type | nothing |
//! | [`room`] | vectors whose length the input decides | error |
//! | [`isa`] | which vector instructions this machine has | nothing |
//! | [`source`] | a batch of keys as hashes on demand | nothing |
//! | [`team`] | work shared among threads | nothing |
//! | [`hash`] | XXH3-64, SipHash-1-3, and SplitMix64 for counters | isa |
//! | [`key`] | canonical bytes of a key, its domain and its hash | hash |
//! | [`cells`] | bit storage: owned, huge pages, mapped | error, isa |
//! | [`scheme`] | hash to cell positions, one numbered scheme a file | isa, source, team, cells |
//! | [`sizing`] | m, k and rates, one law a layout | error |
//! | [`container`] | the file: header, sections, checksums | error, key, cells |
//! | [`filter`] | what every structure can do, as traits | error, source, key, cells, container |
//! | [`batch`] | many keys at once, on one thread or several | team, filter |
//! | [`load`] | what a structure was sized for and how far it is filled | error, sizing, container |
//! | [`compat`] | why two structures cannot be combined | error, key |
//! | [`registry`] | one row a variant | nothing |
//! | [`growing`] | chains of stages, of any structure that can be one | error, key, cells, sizing, container, filter, batch, registry |
//! | [`bloom`] | the classic family | all of the above |
//! | [`table`] | tables of fingerprints | error, isa, source, key, cells, scheme, sizing, container, filter, load, compat, registry, batch |
//! | [`counting`] | counters in place of bits: removal and counts | error, isa, source, key, cells, scheme, sizing, container, filter, load, compat, registry, batch |
//! | [`window`] | filters that forget: by count, by time, by decay | error, isa, source, key, cells, scheme, sizing, container, filter, load, compat, registry, batch |
//! | [`labelled`] | filters that answer with a depth, a label, a value | error, isa, source, key, cells, scheme, sizing, container, filter, load, compat, registry, batch |
//! | [`stages`] | the structures that a growing filter can be a chain of | error, key, cells, container, filter, batch, registry, growing, bloom, counting, labelled, table |
//! | [`lines`] | records of a text stream, for the command line | error, room, key, filter, batch |
//! | [`suspects`] | the exact second look at what a filter dropped | error, room, key, batch, lines |

pub mod batch;
pub mod bloom;
pub mod cells;
pub mod compat;
pub mod container;
pub mod counting;
pub mod error;
pub mod filter;
pub mod growing;
pub mod hash;
pub mod isa;
pub mod key;
pub mod labelled;
pub mod lines;
pub mod load;
pub mod registry;
pub mod room;
pub mod scheme;
pub mod sizing;
pub mod source;
pub mod stages;
pub mod suspects;
pub mod table;
pub mod team;
pub mod window;

pub use error::{Error, Result};
