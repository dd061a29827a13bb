//! The Arrow PyCapsule interface by hand: three C structures, no Arrow library.
//!
//! * [`ffi`]: the structures of the Arrow C data interface;
//! * [`import`]: columns lent by Polars, pyarrow, pandas, DuckDB and the rest;
//! * [`export`]: columns of answers and hashes.

pub(crate) mod export;
pub(crate) mod ffi;
pub(crate) mod import;

pub(crate) use export::ArrowColumn;
