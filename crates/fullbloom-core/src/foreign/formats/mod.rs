//! The formats of other programs' Bloom filters: one row each, from which opening, describing, converting,
//! documentation and tests derive.

mod bare;
mod bip37;
mod ethereum;
mod format;
mod frame;
mod guava;
mod head;
mod order;
mod packages;
mod parquet;
mod pybloomfiltermmap3;
mod size;
mod spark;

pub use format::{Format, KeyChoice};
pub use frame::Frame;
pub use head::{Head, Shape};
pub use order::Order;

use crate::error::{Error, Result};

/// Bytes of the Parquet filter that begins with `head`, of [`Head::MOST`] bytes, with its header: some writers state them
/// nowhere else.
pub fn parquet_len(head: &[u8]) -> Result<u64> {
    let stated = parquet::stated_len(head).map_err(|why| parquet::SPLIT_BLOCK.refuse(why))?;
    Ok(stated.0 + stated.1 as u64)
}

/// Formats whose bytes state the shape of a filter.
const HEADED: &[&Format] = &[
    &spark::V2,
    &spark::V1,
    &guava::MITZ_64,
    &guava::MITZ_32,
    &parquet::SPLIT_BLOCK,
    &bip37::NONE,
    &packages::PYBLOOM_LIVE,
    &pybloomfiltermmap3::MAPPED,
];

/// Formats that differ from one of those in a byte behind the bits, or whose bytes could be any.
const OTHERS: &[&Format] = &[
    &bip37::ALL,
    &bip37::P2PUBKEY,
    &ethereum::LOGS_BLOOM,
    &packages::RBLOOM,
    &packages::PYPROBABLES,
    &packages::PYPROBABLES_BYTES,
    &packages::FASTBLOOM,
];

/// All formats.
pub const ALL: &[&Format] = &{
    let (headed, bare) = (HEADED.len(), bare::ROWS.len());
    let mut all = [HEADED[0]; HEADED.len() + OTHERS.len() + bare::ROWS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < headed {
            HEADED[at]
        } else if at < headed + bare {
            &bare::ROWS[at - headed]
        } else {
            OTHERS[at - headed - bare]
        };
        at += 1;
    }
    all
};

/// The format with this number.
pub fn numbered(number: u64) -> Option<&'static Format> {
    ALL.iter().copied().find(|format| u64::from(format.number) == number)
}

/// The format with this name.
pub fn named(name: &str) -> Result<&'static Format> {
    ALL.iter().copied().find(|format| format.name == name).ok_or_else(|| {
        let names: Vec<_> = ALL.iter().map(|format| format.name).collect();
        Error::parameter(format!("format must be one of {}, got {name:?}", names.join(", ")))
    })
}

/// The format of `len` bytes that begin with `head`, [`Head::MOST`] of them or all: the lengths that a file states fit in
/// one format at most.
pub fn detect(head: &[u8], len: u64) -> Option<&'static Format> {
    ALL.iter().copied().find(|format| format.frame.is_detected && (format.parse)(head, len).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::bits::BitFilter;
    use crate::foreign::key_type::KeyType;
    use crate::foreign::rules::Range;
    use crate::key::Domain;

    #[test]
    fn heads_lead_back_and_lies_are_refused() -> Result<()> {
        for &format in HEADED.iter().filter(|format| format.frame.is_written) {
            assert_eq!(named(format.name)?.number, format.number);
            let seed = if format.is_seeded { 7 } else { 0 };
            let filter = BitFilter::sized(format, format.key_types[0], seed, 1000, 0.01)?;
            let (head, len) = ((format.head)(&filter.shape()), filter.len_written());
            let mut bytes = Vec::new();
            filter.write(&mut bytes).map_err(|error| Error::Io(error, "test".into()))?;
            assert_eq!(bytes.len() as u64, len);
            let first = &bytes[..Head::MOST.min(bytes.len())];
            assert!(detect(first, len).is_some_and(|found| found.number == format.number), "{}", format.name);
            let read = BitFilter::read(format, filter.key_type(), &mut &bytes[..], len, None, u64::MAX)?;
            assert!(read.equals(&filter));
            for other in ALL.iter().filter(|other| other.frame.is_detected && other.number != format.number) {
                assert!((other.parse)(first, len).is_err(), "{} as {}", format.name, other.name);
            }
            for lie in [0, 1, head.len() as u64, len - 1, len + 1, len + 8, len * 2, u64::MAX] {
                assert!((format.parse)(first, lie).is_err(), "{} {lie}", format.name);
            }
            for cut in 0..head.len() {
                assert!((format.parse)(&first[..cut], cut as u64).is_err());
            }
            // Without the bits that the head states nothing is allocated that the input does not fill.
            assert!(BitFilter::read(format, filter.key_type(), &mut &bytes[..100], len, None, u64::MAX).is_err());
            assert!(matches!(
                BitFilter::read(format, filter.key_type(), &mut &bytes[..], len, None, 8),
                Err(Error::Memory(_))
            ));
        }
        Ok(())
    }

    fn read(format: &'static Format, bytes: &[u8]) -> Result<BitFilter> {
        BitFilter::read(format, format.key_types[0], &mut &*bytes, bytes.len() as u64, None, u64::MAX)
    }

    fn added(format: &'static Format, seed: u32, shape: (u64, u32), keys: &[&[u8]]) -> Result<Vec<u8>> {
        let mut filter = BitFilter::with_shape(format, KeyType::Bytes, seed, shape.0, shape.1)?;
        let hashing = filter.hashing();
        let mut parts = vec![[0; 2]; hashing.parts()];
        for key in keys {
            assert!(hashing.digest_parts(Domain::Text, key, &mut parts));
            filter.add_key(&parts)?;
            assert!(filter.contains_key(&parts));
        }
        let mut bytes = Vec::new();
        filter.write(&mut bytes).map_err(|error| Error::Io(error, "test".into()))?;
        assert!(read(format, &bytes)?.equals(&filter));
        Ok(bytes)
    }

    /// The vectors of Bitcoin Core's `bloom_tests`.
    #[test]
    fn bytes_are_those_of_bitcoin_core() -> Result<()> {
        const KEYS: [u128; 3] = [
            0x9910_8ad8_ed9b_b627_4d39_80ba_b5a8_5c04,
            0xb5a2_c786_d9ef_4658_287c_ed59_14b3_7a1b,
            0xb930_0670_b4c5_366e_95b2_699e_8b18_bc75,
        ];
        const ENDS: [u32; 3] = [0x8f09_50c8, 0x4aa3_2eee, 0xe5f7_29c5];
        let keys: Vec<Vec<u8>> =
            KEYS.iter().zip(ENDS).map(|(key, end)| [&key.to_be_bytes()[..], &end.to_be_bytes()].concat()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        for (tweak, want) in [
            (0, [0x03, 0x61, 0x4e, 0x9b, 5, 0, 0, 0, 0, 0, 0, 0, 1]),
            (2_147_483_649, [0x03, 0xce, 0x42, 0x99, 5, 0, 0, 0, 1, 0, 0, 0x80, 1]),
        ] {
            assert_eq!(added(&bip37::ALL, tweak, (24, 5), &keys)?, want);
            // The flag is behind the bits, so the format that is detected gives way to that of the flag.
            assert!(detect(&want, 13).is_some_and(|found| found.number == bip37::NONE.number));
            assert_eq!(read(&bip37::NONE, &want)?.format().name, "bip37-all");
            assert!(read(&bip37::P2PUBKEY, &want).is_err());
            for (at, lie) in [(0, 2), (0, 4), (4, 0), (4, 51), (12, 3)] {
                let mut bytes = want;
                bytes[at] = lie;
                assert!(read(&bip37::NONE, &bytes).is_err(), "{at} {lie}");
            }
        }
        Ok(())
    }

    #[test]
    fn a_logs_bloom_is_256_bytes_with_three_hashes() -> Result<()> {
        let bytes = added(&ethereum::LOGS_BLOOM, 0, (2048, 3), &[b"test"])?;
        // 0x9c22, 0xff5f and 0x21f0 modulo 2048, in a big-endian number.
        let set: Vec<_> = (0..2048).filter(|bit| bytes[255 - bit / 8] >> (bit % 8) & 1 == 1).collect();
        assert_eq!(set, [0x1f0, 0x422, 0x75f]);
        assert!(BitFilter::with_shape(&ethereum::LOGS_BLOOM, KeyType::Bytes, 0, 2048, 2).is_err());
        assert!(read(&ethereum::LOGS_BLOOM, &bytes[1..]).is_err() && detect(&bytes[..40], 256).is_none());
        Ok(())
    }

    #[test]
    fn bare_bits_of_any_length_lead_back_in_both_orders() -> Result<()> {
        for &format in ALL.iter().filter(|format| format.rule.is_bare() && format.bits_step == 1) {
            assert_eq!(named(format.name)?.number, format.number);
            for num_bits in [2, 7, 8, 63, 64, 65, 1000, 4099] {
                let shape = Range { num_bits, num_hashes: 3 };
                let mut filter = BitFilter::with_shape(format, KeyType::Bytes, 0, num_bits, 3)?;
                let hashing = filter.hashing();
                let mut parts = vec![[0; 2]; hashing.parts()];
                for key in ["a", "b", "hello"] {
                    assert!(hashing.digest_parts(Domain::Text, key.as_bytes(), &mut parts));
                    filter.add_key(&parts)?;
                    assert!(filter.contains_key(&parts) && !filter.add_key(&parts)?);
                }
                let mut bytes = Vec::new();
                filter.write(&mut bytes).map_err(|error| Error::Io(error, "test".into()))?;
                let len = num_bits.div_ceil(8);
                assert_eq!((bytes.len() as u64, filter.len_written()), (len, len));
                let read = |bytes: &[u8], most| {
                    BitFilter::read(format, KeyType::Bytes, &mut &*bytes, bytes.len() as u64, Some(shape), most)
                };
                assert!(read(&bytes, len)?.equals(&filter));
                assert!(matches!(read(&bytes, len - 1), Err(Error::Memory(_))));
                assert!(read(&bytes[1..], u64::MAX).is_err() && detect(&bytes, len).is_none());
                assert!(read(&[&bytes[..], &[0]].concat(), u64::MAX).is_err());
                if !num_bits.is_multiple_of(8) {
                    let last = bytes.len() - 1;
                    bytes[last] |= if format.order == Order::HighBits { 1 } else { 0x80 };
                    assert!(read(&bytes, u64::MAX).is_err(), "{} {num_bits}", format.name);
                }
            }
        }
        Ok(())
    }
}
