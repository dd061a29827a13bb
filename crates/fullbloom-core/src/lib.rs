//! The Bloom-filter family in pure Rust: no Python, no sockets, no clock.
//!
//! Dependencies point one way only; `scripts/check_crates.py` checks this table:
//!
//! | module | holds | may use |
//! |---|---|---|
//! | [`error`] | the one error type | nothing |
//! | [`growth`] | limits on the growth of a filter | nothing |
//! | [`isa`] | detection of vector instructions | nothing |
//! | [`hash`] | XXH3-64, SipHash-1-3, and SplitMix64 for counters | isa |
//! | `field` | the integers modulo a 64-bit prime, polynomials over them, and their roots | nothing |
//! | [`key`] | canonical bytes, domains and hashes of keys; batches of keys as hashes | hash |
//! | [`cells`] | bit storage: owned, huge pages, mapped | error, isa |
//! | [`sizing`] | m, k and rates: the laws of all structures | error |
//! | [`scheme`] | hash to cell positions, one numbered scheme a file | isa, key, cells, sizing |
//! | [`parallel`] | batches on several threads: partition, bucket, apply, merge; workers and backoff | isa, key, cells, scheme |
//! | [`container`] | the file: header, sections, checksums | error, key, cells |
//! | [`foreign`] | filters in the formats of other programs, bit for bit | error, growth, hash, key, cells, sizing, scheme, container |
//! | [`registry`] | one row a variant | nothing |
//! | [`structure`] | the common parts of structures: traits, load, declarations, batches, opening | error, growth, key, cells, sizing, parallel, container, registry |
//! | [`bloom`] | the classic family | all of the above |
//! | [`signature`] | signatures of rows, sliced by bits | error, key, cells, hash, scheme, sizing, container |
//! | [`table`] | tables of fingerprints | error, isa, key, cells, scheme, sizing, container, structure, registry |
//! | [`counting`] | counters in place of bits: removal and counts | error, isa, key, cells, scheme, sizing, container, structure, registry |
//! | [`window`] | filters that forget by count, time or decay | error, isa, key, cells, scheme, sizing, container, structure, registry |
//! | [`labelled`] | filters that return a depth, a label or a value | error, isa, key, cells, scheme, sizing, container, structure, registry |
//! | [`static_filters`] | filters built of all their keys at once | error, isa, key, cells, hash, scheme, sizing, parallel, container, structure, registry |
//! | [`exact`] | sets of integers without false positives | error, field, isa, key, cells, scheme, sizing, container, structure, registry |
//! | [`reconcile`] | the differences of two sets, by messages as long as the differences | error, field, isa, key, cells, hash, scheme, sizing, container, structure, registry |
//! | [`chain`] | structures made of filters: growing filters and cascades | error, growth, isa, key, cells, hash, scheme, sizing, container, structure, registry, bloom, counting, labelled, static_filters, table |
//! | [`entries`] | operations by what an entry consists of, for all structures | error, structure, registry, bloom, counting, window, labelled, table, static_filters, exact, reconcile, chain |
//! | [`bank`] | millions of small filters in one memory | error, growth, isa, key, cells, scheme, sizing, parallel, container, structure, bloom, chain |
//! | [`wire`] | filters in strings of a Redis server: commands of a batch as one buffer, replies as answers | error, key, cells, scheme, sizing, bloom, counting |
//! | [`text`] | for the command line: records of a stream, candidate duplicates | error, cells, key, foreign, structure |

pub mod bank;
pub mod bloom;
pub mod cells;
pub mod chain;
pub mod container;
pub mod counting;
pub mod entries;
pub mod error;
pub mod exact;
mod field;
pub mod foreign;
pub mod growth;
pub mod hash;
pub mod isa;
pub mod key;
pub mod labelled;
pub mod parallel;
pub mod reconcile;
pub mod registry;
pub mod scheme;
pub mod signature;
pub mod sizing;
pub mod static_filters;
pub mod structure;
pub mod table;
pub mod text;
pub mod window;
pub mod wire;

pub use error::{Error, Result};
