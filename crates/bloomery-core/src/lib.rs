//! The Bloom-filter family in pure Rust: no Python, no sockets, no clock.
//!
//! Read the rooms from the bottom up; arrows run one way only:
//!
//! | room | holds | may use |
//! |---|---|---|
//! | [`error`] | the one error type | nothing |
//! | [`hash`] | XXH3-64 and SipHash-1-3 | nothing |
//! | [`key`] | canonical bytes of a key, its domain and its hash | hash |
//! | [`cells`] | bit storage: owned, huge pages, mapped | error |
//! | [`scheme`] | hash to cell positions, one numbered scheme a file | cells |
//! | [`sizing`] | m, k and rates, one law a layout | nothing |
//! | [`container`] | the file: header, sections, checksums | error, cells |
//! | [`filter`] | what every structure can do, as traits | key, container |
//! | [`bloom`] | the classic family and its growing form | all of the above |
//! | [`batch`] | many keys at once, on one thread or several | filter |
//! | [`lines`] | records of a text stream, for the command line | filter |
//! | [`suspects`] | the exact second look at what a filter dropped | lines |
//! | [`registry`] | one row a variant | bloom |

pub mod batch;
pub mod bloom;
pub mod cells;
pub mod container;
pub mod error;
pub mod filter;
pub mod hash;
pub mod key;
pub mod lines;
pub mod registry;
pub mod scheme;
pub mod sizing;
pub mod suspects;

pub use error::{Error, Result};
