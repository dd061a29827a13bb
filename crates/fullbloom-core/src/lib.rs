//! The Bloom-filter family in pure Rust: no Python, no sockets, no clock.
//!
//! Read the rooms from the bottom up; arrows run one way only:
//!
//! | room | holds | may use |
//! |---|---|---|
//! | [`error`] | the one error type | nothing |
//! | [`growth`] | how far a filter may grow, and who is asked | nothing |
//! | [`isa`] | which vector instructions this machine has | nothing |
//! | [`hash`] | XXH3-64, SipHash-1-3, and SplitMix64 for counters | isa |
//! | `field` | the integers modulo a 64-bit prime, polynomials over them, and their roots | nothing |
//! | [`key`] | canonical bytes of a key, its domain and its hash; batches of keys as hashes | hash |
//! | [`cells`] | bit storage: owned, huge pages, mapped | error, isa |
//! | [`sizing`] | m, k and rates: the laws of all structures | error |
//! | [`scheme`] | hash to cell positions, one numbered scheme a file | isa, key, cells, sizing |
//! | [`parallel`] | batches on several threads: partition, bucket, apply, merge; workers and backoff | isa, key, cells, scheme |
//! | [`container`] | the file: header, sections, checksums | error, key, cells |
//! | [`foreign`] | filters as other programs keep them, bit for bit | error, growth, hash, key, container |
//! | [`registry`] | one row a variant | nothing |
//! | [`structure`] | what every structure has: traits, load, differences, batches, opening | error, growth, key, cells, sizing, parallel, container, registry |
//! | [`bloom`] | the classic family | all of the above |
//! | [`table`] | tables of fingerprints | error, isa, key, cells, scheme, sizing, container, structure, registry |
//! | [`counting`] | counters in place of bits: removal and counts | error, isa, key, cells, scheme, sizing, container, structure, registry |
//! | [`window`] | filters that forget: by count, by time, by decay | error, isa, key, cells, scheme, sizing, container, structure, registry |
//! | [`labelled`] | filters that answer with a depth, a label, a value | error, isa, key, cells, scheme, sizing, container, structure, registry |
//! | [`static_filters`] | made of all their keys at once | error, isa, key, cells, hash, scheme, sizing, parallel, container, structure, registry |
//! | [`exact`] | no false positives, of whole numbers | error, field, isa, key, cells, scheme, sizing, container, structure, registry |
//! | [`reconcile`] | what two sets have not in common, by messages as long as their difference | error, field, isa, key, cells, hash, scheme, sizing, container, structure, registry |
//! | [`chain`] | made of filters: stages of those that grow, levels of cascades | error, growth, isa, key, cells, hash, scheme, sizing, container, structure, registry, bloom, counting, labelled, static_filters, table |
//! | [`wire`] | bits that a server elsewhere holds: commands of a batch as one buffer, replies as answers | error, key, cells, scheme, sizing, bloom, counting |
//! | [`text`] | for the command line: records of a stream, candidate duplicates | error, cells, key, structure |

pub mod bloom;
pub mod cells;
pub mod chain;
pub mod container;
pub mod counting;
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
pub mod sizing;
pub mod static_filters;
pub mod structure;
pub mod table;
pub mod text;
pub mod window;
pub mod wire;

pub use error::{Error, Result};
