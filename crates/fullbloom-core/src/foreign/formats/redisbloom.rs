//! The dumps of `RedisBloom`: see [`redisbloom`](crate::foreign::redisbloom).

use super::contents::Contents;
use super::format::Format;
use crate::container::{REDISBLOOM, REDISBLOOM_CUCKOO};
use crate::foreign::key_type::KeyType;

/// `BF.SCANDUMP`.
pub const BLOOM: Format = Format {
    number: REDISBLOOM,
    name: "redisbloom",
    program: "redisbloom",
    title: "RedisBloom Bloom filter, pieces of BF.SCANDUMP",
    rule_in_words: "h1 + i h2 of MurmurHash64A in 64 bits",
    key_types: &[KeyType::Bytes],
    key_type_name: "key_type",
    contents: Contents::Layers,
    is_detected: true,
    is_written: true,
    own: None,
    verified: "BF.SCANDUMP and BF.LOADCHUNK of RedisBloom 2.8 and of our service, byte for byte; golden bytes of 2.4",
    limits: "layers of powers of two, or hashed with 32 bits, are refused",
};

/// `CF.SCANDUMP`.
pub const CUCKOO: Format = Format {
    number: REDISBLOOM_CUCKOO,
    name: "redisbloom-cuckoo",
    title: "RedisBloom cuckoo filter, pieces of CF.SCANDUMP",
    rule_in_words: "one byte of MurmurHash64A in one of two buckets",
    contents: Contents::Tables,
    verified: "CF.SCANDUMP and CF.LOADCHUNK of RedisBloom 2.8 and of our service",
    limits: "tables of more than 2^32 slots are refused",
    ..BLOOM
};
