//! Numbers of files that the service writes and that no row of the registry is for.

use crate::error::Error;

/// A Bloom filter as `RedisBloom` has it.
pub const REDISBLOOM: u16 = 16_385;
/// A cuckoo filter as `RedisBloom` has it.
pub const REDISBLOOM_CUCKOO: u16 = 16_386;
/// A small text beside the filters.
pub const NOTE: u16 = 16_387;

/// The refusal of a file of a structure for which there is no class: it is the service's, or came later.
pub fn unreadable(variant: u16) -> Error {
    let what = match variant {
        REDISBLOOM => "a RedisBloom filter of the service (kind redisbloom)",
        REDISBLOOM_CUCKOO => "a RedisBloom cuckoo filter of the service (kind redisbloom-cuckoo)",
        NOTE => "a note of the service",
        _ => {
            return Error::format(format!(
                "the file holds structure number {variant}, which this release does not know; use a newer release"
            ));
        }
    };
    Error::format(format!(
        "the file holds {what}, which only the service reads: give it to one with RESTORE name bytes, or PUT \
         /v1/filters/NAME/dump, and ask it there"
    ))
}
