//! Where the filters of a Parquet file are: its footer, read from hostile bytes.
//!
//! * [`footer`]: the places of filters, by row group and column;
//! * `thrift`: the compact protocol in which the footer is written.
//!
//! A filter itself is a row of [`formats`](super::formats).

pub mod footer;
mod thrift;
