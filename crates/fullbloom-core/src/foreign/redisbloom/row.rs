//! [`Row`]: what the table of formats says of `RedisBloom`'s filters.

use crate::container::{REDISBLOOM, REDISBLOOM_CUCKOO};

/// A row. Keys are texts as UTF-8, and bytes.
pub struct Row {
    /// The number of its files among ours.
    pub number: u16,
    /// Its public name.
    pub name: &'static str,
    /// The program.
    pub title: &'static str,
    /// Which cells a key takes, for people.
    pub rule_in_words: &'static str,
    /// How reading and writing were checked.
    pub verified: &'static str,
    /// What is not supported.
    pub limits: &'static str,
}

/// `BF.SCANDUMP`.
pub const BLOOM: Row = Row {
    number: REDISBLOOM,
    name: "redisbloom",
    title: "RedisBloom Bloom filter, pieces of BF.SCANDUMP",
    rule_in_words: "h1 + i h2 of MurmurHash64A in 64 bits",
    verified: "BF.SCANDUMP and BF.LOADCHUNK of RedisBloom 2.8 and of our service, byte for byte; golden bytes of 2.4",
    limits: "layers of powers of two, or hashed with 32 bits, are refused",
};

/// `CF.SCANDUMP`.
pub const CUCKOO: Row = Row {
    number: REDISBLOOM_CUCKOO,
    name: "redisbloom-cuckoo",
    title: "RedisBloom cuckoo filter, pieces of CF.SCANDUMP",
    rule_in_words: "one byte of MurmurHash64A in one of two buckets",
    verified: "CF.SCANDUMP and CF.LOADCHUNK of RedisBloom 2.8 and of our service",
    limits: "tables of more than 2^32 slots are refused",
};

/// Both.
pub const ROWS: [&Row; 2] = [&BLOOM, &CUCKOO];
