//! The formats of other programs' filters: one row each, from which opening, describing, converting, documentation, tests and
//! the service's kinds derive. One file a program; [`bare`] has those of bits alone.

mod bare;
mod bip158;
mod bip37;
mod contents;
mod ethereum;
mod fastbloom_rs;
mod format;
mod guava;
mod head;
mod layout;
mod numbers;
mod order;
mod parquet;
mod pybloom_live;
mod pybloomfiltermmap3;
mod pyprobables;
mod rbloom;
pub mod redisbloom;
mod size;
mod spark;
mod tail;
#[cfg(test)]
mod tests;
mod xor_singleheader;

pub use contents::Contents;
pub use format::{Format, OwnLayout};
pub use head::{Head, Shape};
pub use layout::BitLayout;
pub use order::Order;
pub use tail::Tail;

use crate::error::{Error, Result};

/// Bytes of the Parquet filter that begins with `head`, of 32 bytes, with its header: some writers state them nowhere else.
pub fn parquet_len(head: &[u8]) -> Result<u64> {
    let stated = parquet::parse_len(head).map_err(|why| parquet::SPLIT_BLOCK.refuse(why))?;
    Ok(stated.0 + stated.1 as u64)
}

/// Formats but those of bits alone, in the order in which bytes are compared with them. Those whose bytes begin with a magic
/// number or a version come first, those that only state lengths last.
const STATING: &[&Format] = &[
    &spark::V2,
    &spark::V1,
    &guava::MITZ_64,
    &guava::MITZ_32,
    &parquet::SPLIT_BLOCK,
    &redisbloom::BLOOM,
    &redisbloom::CUCKOO,
    &xor_singleheader::XOR8,
    &xor_singleheader::XOR16,
    &xor_singleheader::FUSE8,
    &xor_singleheader::FUSE16,
    &bip37::NONE,
    &bip37::ALL,
    &bip37::P2PUBKEY,
    &bip158::BLOCK,
    &ethereum::LOGS_BLOOM,
    &rbloom::RBLOOM,
    &fastbloom_rs::FASTBLOOM,
    &pybloom_live::PYBLOOM_LIVE,
    &pybloomfiltermmap3::MAPPED,
    &pyprobables::TEXTS,
    &pyprobables::BYTES,
];

/// All formats.
pub const ALL: &[&Format] = &{
    let mut all = [STATING[0]; STATING.len() + bare::ROWS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < STATING.len() { STATING[at] } else { &bare::ROWS[at - STATING.len()] };
        at += 1;
    }
    all
};

/// The format with this number.
pub fn find_by_number(number: u64) -> Option<&'static Format> {
    ALL.iter().copied().find(|format| u64::from(format.number) == number)
}

/// The format with this name.
pub fn find_by_name(name: &str) -> Result<&'static Format> {
    ALL.iter().copied().find(|format| format.name == name).ok_or_else(|| {
        let names: Vec<_> = ALL.iter().map(|format| format.name).collect();
        Error::parameter(format!("format must be one of {}, got {name:?}", names.join(", ")))
    })
}

/// The format of the same bits with the other order within a byte, of formats that have both.
pub fn twin(format: &Format) -> Option<&'static Format> {
    let stem = format.name.strip_suffix(bare::MSB);
    ALL.iter().copied().find(|other| match stem {
        Some(stem) => other.name == stem,
        None => other.name.strip_suffix(bare::MSB) == Some(format.name),
    })
}

/// The format of `len` bytes that begin with `head`, [`Format::HEAD`] of them or all: the lengths that a file states fit in
/// one format at most.
pub fn detect(head: &[u8], len: u64) -> Option<&'static Format> {
    ALL.iter().copied().find(|format| format.may_hold(head, len))
}
