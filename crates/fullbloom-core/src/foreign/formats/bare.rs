//! Bits alone, without a header, under the rules of tutorials: two formats a rule, one for each order of the bits of a
//! byte. Such bytes state nothing, so nothing detects them, and the caller says how many bits and hashes there are.

use std::f64::consts::LN_2;

use super::contents::Contents;
use super::format::Format;
use super::layout::BitLayout;
use super::numbers::{MOST_BITS, MOST_HASHES};
use super::order::Order;
use super::tail::Tail;
use crate::foreign::key_type::KeyType;
use crate::foreign::rules::Rule;
use crate::foreign::rules::digests::{Algorithm, Cut};
use crate::foreign::rules::halves::Sum;

const MOST_INT: u64 = i32::MAX as u64;

const fn row(number: u16, name: &'static str, rule: Rule, title: &'static str, in_words: &'static str) -> Format {
    let (most_bits, most_hashes) = match rule {
        Rule::Halves(Sum::Wide) => (MOST_BITS, MOST_HASHES),
        Rule::Halves(Sum::Wrapped) => (1 << 32, MOST_HASHES),
        Rule::Digest(algorithm, Cut::Slices) => (1 << 32, algorithm.slices()),
        Rule::Digest(..) => (MOST_BITS, MOST_HASHES),
        _ => (MOST_INT, MOST_HASHES),
    };
    let size: fn(u64, f64) -> Option<(u64, u32)> = match rule {
        Rule::Digest(Algorithm::Md5, Cut::Slices) => |n, p| size(n, p, Algorithm::Md5.slices(), 1 << 32),
        Rule::Digest(Algorithm::Sha1, Cut::Slices) => |n, p| size(n, p, Algorithm::Sha1.slices(), 1 << 32),
        Rule::Digest(Algorithm::Sha256, Cut::Slices) => |n, p| size(n, p, Algorithm::Sha256.slices(), 1 << 32),
        Rule::Halves(Sum::Wrapped) => |n, p| size(n, p, MOST_HASHES, 1 << 32),
        Rule::Halves(Sum::Wide) | Rule::Digest(..) => |n, p| size(n, p, MOST_HASHES, MOST_BITS),
        _ => |n, p| size(n, p, MOST_HASHES, MOST_INT),
    };
    Format {
        number,
        name,
        program: "bits",
        title,
        rule_in_words: in_words,
        key_types: &[KeyType::Bytes],
        key_type_name: "key_type",
        contents: Contents::Bits(BitLayout {
            rule,
            is_bare: true,
            is_seeded: false,
            bits_step: 1,
            most_bits,
            most_hashes,
            order: if number & 1 == 0 { Order::Little } else { Order::HighBits },
            parse: BitLayout::BARE,
            head: |_| Vec::new(),
            tail: Tail::NONE,
            size,
        }),
        is_detected: false,
        is_written: true,
        own: None,
        verified: "a program of the rule in the tests, both directions",
        limits: "",
    }
}

/// What the names of formats end with whose first bit of a byte is its highest one.
pub(super) const MSB: &str = "-msb";

/// Both formats of each rule.
macro_rules! rows {
    ($($number:literal $name:literal $rule:expr, $title:literal, $in_words:literal;)*) => {
        /// The formats.
        pub(super) const ROWS: &[Format] = &[$(
            row($number, $name, $rule, $title, $in_words),
            row($number + 1, concat!($name, "-msb"), $rule, concat!($title, ", highest bit first"), $in_words),
        )*];
    };
}

rows! {
    64 "fnv1a-go" Rule::Halves(Sum::Wide), "bits by FNV-1a in Go, sums in uint64",
        "low + i (high | 1) of FNV-1a, in 64 bits";
    66 "fnv1a-go-32" Rule::Halves(Sum::Wrapped), "bits by FNV-1a in Go, sums in uint32",
        "low + i (high | 1) of FNV-1a, in 32 bits";
    68 "fnv1a-java" Rule::Halves(Sum::Masked), "bits by FNV-1a in Java, sum & Integer.MAX_VALUE",
        "low + i (high | 1) of FNV-1a, the low 31 bits";
    70 "fnv1a-java-abs" Rule::Halves(Sum::Absolute), "bits by FNV-1a in Java, Math.abs(sum % bits)",
        "low + i (high | 1) of FNV-1a, an int without its sign";
    72 "fnv1a-java-floor" Rule::Halves(Sum::Floor), "bits by FNV-1a in Java, Math.floorMod(sum, bits)",
        "low + i (high | 1) of FNV-1a, an int by floorMod";
    74 "fnv1a-java-not" Rule::Halves(Sum::Complement), "bits by FNV-1a in Java, sum < 0 ? ~sum : sum",
        "low + i (high | 1) of FNV-1a, an int, complemented if negative";
    76 "md5-double" Rule::Digest(Algorithm::Md5, Cut::Double), "bits by double hashing of MD5",
        "h1 + i h2, the first and the second 8 bytes of MD5, big-endian";
    78 "sha1-double" Rule::Digest(Algorithm::Sha1, Cut::Double), "bits by double hashing of SHA-1",
        "h1 + i h2, the first and the second 8 bytes of SHA-1, big-endian";
    80 "sha256-double" Rule::Digest(Algorithm::Sha256, Cut::Double), "bits by double hashing of SHA-256",
        "h1 + i h2, the first and the second 8 bytes of SHA-256, big-endian";
    82 "md5-slices" Rule::Digest(Algorithm::Md5, Cut::Slices), "bits by slices of MD5",
        "the words of 32 bits of MD5, big-endian";
    84 "sha1-slices" Rule::Digest(Algorithm::Sha1, Cut::Slices), "bits by slices of SHA-1",
        "the words of 32 bits of SHA-1, big-endian";
    86 "sha256-slices" Rule::Digest(Algorithm::Sha256, Cut::Slices), "bits by slices of SHA-256",
        "the words of 32 bits of SHA-256, big-endian";
    88 "md5-seeded" Rule::Digest(Algorithm::Md5, Cut::Seeded), "bits by MD5 of \"i:key\"",
        "MD5 of \"i:key\" as one number";
    90 "sha1-seeded" Rule::Digest(Algorithm::Sha1, Cut::Seeded), "bits by SHA-1 of \"i:key\"",
        "SHA-1 of \"i:key\" as one number";
    92 "sha256-seeded" Rule::Digest(Algorithm::Sha256, Cut::Seeded), "bits by SHA-256 of \"i:key\"",
        "SHA-256 of \"i:key\" as one number";
}

/// `k = max(1, round(-log2 p))`, or the most that the rule has, and the fewest bits for it: `-k n / ln(1 - p^(1/k))`.
fn size(capacity: u64, fpr: f64, most_hashes: u32, most_bits: u64) -> Option<(u64, u32)> {
    let hashes = (-fpr.ln() / LN_2).round().clamp(1.0, f64::from(most_hashes));
    let bits = (-hashes * capacity as f64 / (-fpr.powf(1.0 / hashes)).ln_1p()).ceil();
    (bits <= most_bits as f64).then_some(((bits as u64).max(2), hashes as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_the_rate_with_few_hashes() {
        assert_eq!(size(10_000_000, 0.01, 64, MOST_BITS), Some((95_929_548, 7)));
        assert_eq!(size(10_000_000, 0.01, 4, MOST_BITS), Some((105_227_047, 4)));
        assert_eq!(size(1 << 40, 1e-9, 64, MOST_BITS), None);
    }
}
