//! The formats of other programs' Bloom filters: one row each, from which opening, describing, converting,
//! documentation and tests derive.

mod bare;
mod format;
mod guava;
mod head;
mod order;
mod parquet;
mod size;
mod spark;

pub use format::Format;
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
const HEADED: &[&Format] = &[&spark::V2, &spark::V1, &guava::MITZ_64, &guava::MITZ_32, &parquet::SPLIT_BLOCK];

/// All formats.
pub const ALL: &[&Format] = &{
    let mut all = [HEADED[0]; HEADED.len() + bare::ROWS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < HEADED.len() { HEADED[at] } else { &bare::ROWS[at - HEADED.len()] };
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
    ALL.iter().copied().find(|format| (format.parse)(head, len).is_ok())
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
        for &format in HEADED {
            assert_eq!(named(format.name)?.number, format.number);
            let seed = if format.is_seeded { 7 } else { 0 };
            let filter = BitFilter::sized(format, format.key_types[0], seed, 1000, 0.01)?;
            let (head, len) = ((format.head)(&filter.shape()), filter.len_written());
            let mut bytes = Vec::new();
            filter.write(&mut bytes).map_err(|error| Error::Io(error, "test".into()))?;
            assert_eq!(bytes.len() as u64, len);
            let first = &bytes[..Head::MOST];
            assert!(detect(first, len).is_some_and(|found| found.number == format.number), "{}", format.name);
            let read = BitFilter::read(format, filter.key_type(), &mut &bytes[..], len, None, u64::MAX)?;
            assert!(read.equals(&filter));
            for other in ALL.iter().filter(|other| other.number != format.number) {
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

    #[test]
    fn bare_bits_of_any_length_lead_back_in_both_orders() -> Result<()> {
        for &format in ALL.iter().filter(|format| format.rule.is_bare()) {
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
