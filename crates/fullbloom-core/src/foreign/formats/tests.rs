use super::*;
use crate::foreign::bits::BitFilter;
use crate::foreign::key_type::KeyType;
use crate::foreign::rules::Range;
use crate::foreign::source::Source;
use crate::key::Domain;

/// Formats of bits whose bytes tell what they are, and are written.
fn list_stating() -> impl Iterator<Item = (&'static Format, &'static BitLayout)> {
    let stating = ALL.iter().copied().filter(|format| format.is_detected && format.is_written);
    stating.filter_map(|format| Some((format, format.bits().ok()?)))
}

#[test]
fn names_and_numbers_are_distinct() -> Result<()> {
    for format in ALL {
        assert_eq!(
            (find_by_name(format.name)?.number, find_by_number(format.number.into()).map(|it| it.name)),
            (format.number, Some(format.name))
        );
        assert_eq!(twin(format).and_then(twin).map(|it| it.number), twin(format).map(|_| format.number));
    }
    assert!(find_by_name("sparc").is_err() && find_by_number(0).is_none());
    Ok(())
}

#[test]
fn what_is_behind_the_bits_is_in_the_head_of_formats_that_are_detected() {
    for format in ALL.iter().filter(|format| format.is_detected) {
        let Ok(layout) = format.bits() else { continue };
        let most = layout.most_bits.div_ceil(8) + layout.tail.len as u64 + 16;
        assert!(layout.tail.len == 0 || most <= Format::HEAD as u64, "{}", format.name);
    }
}

#[test]
fn heads_lead_back_and_lies_are_refused() -> Result<()> {
    for (format, layout) in list_stating() {
        let seed = if layout.is_seeded { 7 } else { 0 };
        let filter = BitFilter::for_capacity(format, format.key_types[0], seed, 1000, 0.01)?;
        let (head, len) = ((layout.head)(&filter.shape()), filter.len_written());
        let mut bytes = Vec::new();
        filter.write(&mut bytes).map_err(|error| Error::Io(error, "test".into()))?;
        assert_eq!(bytes.len() as u64, len);
        assert!(detect(&bytes, len).is_some_and(|found| found.number == format.number), "{}", format.name);
        let read = |bytes, len, most| {
            let source = Source::new(bytes, len).map_err(|error| Error::Io(error, "test".into()))?;
            BitFilter::read(format, filter.key_type(), source, None, most)
        };
        assert!(read(&bytes[..], len, u64::MAX)?.equals(&filter));
        for other in ALL.iter().filter(|other| other.number != format.number) {
            assert!(!other.may_hold(&bytes, len), "{} as {}", format.name, other.name);
        }
        for lie in [0, 1, head.len() as u64, len - 1, len + 1, len + 8, len * 2, u64::MAX] {
            assert!((layout.parse)(&bytes, lie).is_err(), "{} {lie}", format.name);
        }
        for cut in 0..head.len() {
            assert!((layout.parse)(&bytes[..cut], cut as u64).is_err());
        }
        // Without the bits that the head states nothing is allocated that the input does not fill.
        assert!(read(&bytes[..100], len, u64::MAX).is_err());
        assert!(matches!(read(&bytes[..], len, 8), Err(Error::Memory(_))));
    }
    Ok(())
}

#[test]
fn bits_beyond_the_most_of_a_format_are_refused_before_they_are_read() {
    let sizes = ALL.iter().filter_map(|format| format.bits().ok().map(|layout| (*format, layout)));
    for (format, layout) in sizes.filter(|(_, layout)| layout.most_bits > 1 << 30) {
        let (num_bits, num_hashes) = (layout.most_bits + layout.bits_step, 1);
        let (len, shape) = (num_bits / 8, layout.is_bare.then_some(Range { num_bits, num_hashes }));
        // 8 bytes of a number of hashes, and no more: reading on would be another error.
        let source = Source::new(&[1u8, 0, 0, 0, 0, 0, 0, 0][..], len + 8 * u64::from(!layout.is_bare));
        let read = source.map(|source| BitFilter::read(format, format.key_types[0], source, shape, u64::MAX));
        let why = read.map(|read| read.err().map(|error| error.to_string()).unwrap_or_default()).unwrap_or_default();
        assert!(!why.is_empty() && !why.contains("cut short"), "{}: {why}", format.name);
    }
}

fn read(format: &'static Format, bytes: &[u8]) -> Result<BitFilter> {
    BitFilter::read(format, format.key_types[0], Source::of(bytes), None, u64::MAX)
}

fn write_keys(format: &'static Format, seed: u32, shape: (u64, u32), keys: &[&[u8]]) -> Result<Vec<u8>> {
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
        assert_eq!(write_keys(&bip37::ALL, tweak, (24, 5), &keys)?, want);
        assert!(detect(&want, 13).is_some_and(|found| found.number == bip37::ALL.number));
        // The first format accepts any flag, and gives way to that of the flag.
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
    let bytes = write_keys(&ethereum::LOGS_BLOOM, 0, (2048, 3), &[b"test"])?;
    // 0x9c22, 0xff5f and 0x21f0 modulo 2048, in a big-endian number.
    let set: Vec<_> = (0..2048).filter(|bit| bytes[255 - bit / 8] >> (bit % 8) & 1 == 1).collect();
    assert_eq!(set, [0x1f0, 0x422, 0x75f]);
    assert!(BitFilter::with_shape(&ethereum::LOGS_BLOOM, KeyType::Bytes, 0, 2048, 2).is_err());
    assert!(read(&ethereum::LOGS_BLOOM, &bytes[1..]).is_err() && detect(&bytes[..40], 256).is_none());
    Ok(())
}

#[test]
fn bare_bits_of_any_length_lead_back_in_both_orders() -> Result<()> {
    for (format, order) in ALL
        .iter()
        .filter(|format| twin(format).is_some())
        .map(|&format| (format, format.bits().map(|layout| layout.order)))
    {
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
            let read =
                |bytes: &[u8], most| BitFilter::read(format, KeyType::Bytes, Source::of(bytes), Some(shape), most);
            assert!(read(&bytes, len)?.equals(&filter));
            assert!(matches!(read(&bytes, len - 1), Err(Error::Memory(_))));
            assert!(read(&bytes[1..], u64::MAX).is_err() && detect(&bytes, len).is_none());
            assert!(read(&[&bytes[..], &[0]].concat(), u64::MAX).is_err());
            if !num_bits.is_multiple_of(8) {
                let last = bytes.len() - 1;
                bytes[last] |= if order.as_ref().is_ok_and(|order| *order == Order::HighBits) { 1 } else { 0x80 };
                assert!(read(&bytes, u64::MAX).is_err(), "{} {num_bits}", format.name);
            }
        }
    }
    Ok(())
}
