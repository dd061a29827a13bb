//! The Arrow PyCapsule interface by hand: three C structures, no Arrow library.
//!
//! * [`ffi`]: the structures of the Arrow C data interface;
//! * [`import`]: columns exported by Polars, pyarrow, pandas, DuckDB and others, chunk by chunk;
//! * `stated`: the numbers that producers state, checked; `column`, `dictionary`, `indices`, `nulls`: where values and
//!   nulls are; [`meaning`]: whether values are keys, hashes or numbers; `rows`: structs and tables, whose rows are tuples;
//! * [`tables`]: columns of a table, and lists, each with its own hashes;
//! * [`export`]: columns of results and hashes.

mod column;
mod dictionary;
pub(crate) mod export;
pub(crate) mod ffi;
pub(crate) mod import;
mod indices;
pub(crate) mod meaning;
pub(crate) mod nulls;
mod rows;
mod stated;
pub(crate) mod tables;

pub(crate) use export::ArrowColumn;
