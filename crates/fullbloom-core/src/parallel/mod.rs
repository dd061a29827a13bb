//! Batches on several threads.
//!
//! Lookups: [`workers`] take parts of the keys from a queue. Adds: the words of a filter are partitioned among workers,
//! each of which applies its bucket of every round of keys ([`rounds`]); buckets contain keys ([`lines`], by
//! [`compact`]) or positions ([`probes`]). A waiting worker backs off ([`workers`]).

mod compact;
pub mod lines;
pub mod probes;
mod rounds;
pub mod workers;
