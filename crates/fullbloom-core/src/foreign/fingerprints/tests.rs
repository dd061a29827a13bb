use super::*;
use crate::error::{Error, Result};
use crate::foreign::formats::{self, Contents, Format};
use crate::foreign::key_type::KeyType;
use crate::foreign::source::Source;
use crate::foreign::static_filter::StaticFilter;
use crate::hash::splitmix::mix;

fn all() -> impl Iterator<Item = &'static Format> {
    formats::ALL.iter().copied().filter(|format| matches!(format.contents, Contents::Fingerprints(_)))
}

fn build(format: &'static Format, count: u64) -> Result<(FingerprintFilter, Vec<u64>)> {
    let keys: Vec<u64> = (0..count).map(mix).collect();
    Ok((FingerprintFilter::build(format, KeyType::Word, keys.clone())?, keys))
}

fn write(filter: &FingerprintFilter) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    filter.write(&mut bytes).map_err(|error| Error::Io(error, "test".into()))?;
    Ok(bytes)
}

fn read(format: &'static Format, bytes: &[u8]) -> Result<FingerprintFilter> {
    FingerprintFilter::read(format, KeyType::Word, Source::of(bytes), u64::MAX)
}

#[test]
fn keys_are_found_and_others_at_the_rate_of_the_width() -> Result<()> {
    for format in all() {
        for count in [1, 2, 3, 10, 100, 1000, 50_000] {
            let (filter, keys) = build(format, count)?;
            assert!(keys.iter().all(|key| filter.contains([*key, 0])), "{} {count}", format.name);
            let digests: Vec<_> = (0..100_000u64).map(|i| [mix(i), 0]).collect();
            let mut found = vec![0; digests.len()];
            filter.contains_many(&digests, &mut found);
            assert!(digests.iter().zip(&found).all(|(digest, found)| filter.contains(*digest) == (*found == 1)));
            let false_ones = found.iter().skip(count as usize).map(|&found| f64::from(found)).sum::<f64>();
            // Six standard deviations of a binomial count.
            let mean = (100_000 - count) as f64 * filter.fpr();
            assert!((false_ones - mean).abs() < 6.0 * mean.sqrt() + 6.0, "{} {count} {false_ones}", format.name);
        }
    }
    Ok(())
}

#[test]
fn order_and_repetition_of_keys_change_nothing() -> Result<()> {
    for format in all() {
        let (filter, mut keys) = build(format, 1000)?;
        keys.reverse();
        keys.extend_from_within(..500);
        assert!(FingerprintFilter::build(format, KeyType::Word, keys)?.equals(&filter));
    }
    Ok(())
}

#[test]
fn bytes_lead_back_and_lies_are_refused() -> Result<()> {
    for format in all() {
        let (filter, _) = build(format, 300)?;
        let bytes = write(&filter)?;
        assert_eq!(bytes.len() as u64, filter.len_written());
        assert!(read(format, &bytes)?.equals(&filter));
        assert_eq!(formats::detect(&bytes, bytes.len() as u64).map(|found| found.name), Some(format.name));
        for len in 0..bytes.len() {
            assert!(read(format, &bytes[..len]).is_err(), "{} {len}", format.name);
        }
        assert!(read(format, &[&bytes[..], &[0]].concat()).is_err());
        // Every field but the seed and, of a fuse filter, the number of keys.
        let fields = if format.name.starts_with("xor") { 8..16 } else { 12..28 };
        for at in fields {
            for bit in 0..8 {
                let mut lie = bytes.clone();
                lie[at] ^= 1 << bit;
                assert!(read(format, &lie).is_err(), "{} byte {at} bit {bit}", format.name);
            }
        }
        let short = FingerprintFilter::read(format, KeyType::Word, Source::of(&bytes), 8);
        assert!(matches!(short, Err(Error::Memory(_))));
    }
    Ok(())
}

#[test]
fn files_restore_filters_of_every_format() -> Result<()> {
    for format in all() {
        let filter = StaticFilter::Fingerprints(build(format, 100)?.0);
        let (container, mut bytes) = (filter.container(), Vec::new());
        container.write_with(&container.head()?, &mut bytes).map_err(|error| Error::Io(error, "test".into()))?;
        assert!(StaticFilter::from_file(&bytes, 1 << 20)?.equals(&filter));
        assert!(matches!(StaticFilter::from_file(&bytes, 8), Err(Error::Memory(_))));
        for len in 0..bytes.len() {
            assert!(StaticFilter::from_file(&bytes[..len], 1 << 20).is_err());
        }
    }
    Ok(())
}

#[test]
fn filters_of_no_key_are_those_of_the_program() -> Result<()> {
    for format in all() {
        let empty = FingerprintFilter::build(format, KeyType::Word, Vec::new());
        assert_eq!(empty.is_ok(), format.name.starts_with("fuse"));
    }
    Ok(())
}

#[test]
fn the_number_of_keys_is_recorded_or_estimated() -> Result<()> {
    for format in all() {
        for count in [10, 100, 1000, 50_000] {
            let (keys, deviation) = build(format, count)?.0.approx_count();
            assert!((keys - count as f64).abs() <= 2.0 * deviation, "{} {count}: {keys} {deviation}", format.name);
        }
    }
    Ok(())
}
