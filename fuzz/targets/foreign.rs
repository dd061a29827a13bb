//! Filters of other programs: bytes in every format, the footers of Parquet files, and the coded sets of BIP 158.
#![no_main]

use fullbloom_core::foreign::bip158::{self, BlockFilter};
use fullbloom_core::foreign::bits::BitFilter;
use fullbloom_core::foreign::fingerprints::{FingerprintFilter, rows};
use fullbloom_core::foreign::formats::{self, Format, Head};
use fullbloom_core::foreign::parquet::footer;
use fullbloom_core::foreign::redisbloom::bloom::Chain;
use fullbloom_core::foreign::redisbloom::cuckoo::Cuckoo;
use fullbloom_core::foreign::redisbloom::dump::{self, Asked, Loader};
use fullbloom_core::foreign::rules::Range;
use fullbloom_core::key::Domain;
use fullbloom_fuzz::memory;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: memory::limit(), |data: &[u8]| {
    let len = data.len() as u64;
    let detected = formats::detect(&data[..data.len().min(Head::MOST)], len);
    for &format in formats::ALL {
        let read = BitFilter::read(format, format.key_types[0], &mut &*data, len, None, u64::MAX);
        let is_detected = detected.is_some_and(|found| found.number == format.number);
        if format.frame.is_detected && !format.rule.is_bare() {
            // Bytes fit in one such format at most, and that one is detected. What is behind the first bytes may lie.
            assert!(read.is_err() || is_detected, "{}", format.name);
            let is_stated_first = format.frame.tail == 0 && format.bits_step >= 8;
            assert!(read.is_ok() || !is_detected || !is_stated_first, "{}", format.name);
        }
        if let Ok(filter) = read {
            check(format, filter, data);
        }
    }
    bare(data);
    check_dump::<Chain>(data);
    check_dump::<Cuckoo>(data);
    fingerprints(data);
    check_footer(data);
    check_block(data);
});

/// What is read is written as it was, and finds what it adds.
fn check(format: &Format, mut filter: BitFilter, data: &[u8]) {
    if filter.check_written().is_ok() {
        let mut written = Vec::new();
        assert!(filter.write(&mut written).is_ok());
        assert_eq!(written, data, "{}", format.name);
    }
    assert!(filter.nbytes() <= data.len() as u64);
    let hashing = filter.hashing();
    check_words(format, &filter, data);
    let mut parts = vec![[0; 2]; hashing.parts()];
    for (domain, key) in [(Domain::Text, &b"key"[..]), (Domain::Integer, &[7; 8])] {
        if !hashing.digest_parts(domain, key, &mut parts) {
            continue;
        }
        let mut found = [2];
        filter.contains_keys(&parts, &mut found);
        assert_eq!(found[0] == 1, filter.contains_key(&parts), "{}", format.name);
        assert!(filter.add_key(&parts).is_ok() && filter.contains_key(&parts), "{}", format.name);
    }
}

/// Integers have the same answers in blocks as one by one: pieces of the input, and others behind its end.
fn check_words(format: &Format, filter: &BitFilter, data: &[u8]) {
    let words: Vec<[u8; 8]> = (0..300u64)
        .map(|i| {
            let word = data.get(i as usize..).and_then(<[u8]>::first_chunk).copied();
            word.unwrap_or_else(|| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
        })
        .collect();
    let mut found = vec![2; words.len()];
    if !filter.contains_words(&words, &mut found) {
        return;
    }
    for (word, found) in words.iter().zip(found) {
        let digest = filter.hashing().digest(Domain::Integer, word);
        assert_eq!(digest.map(|digest| filter.contains(digest)), Some(found == 1), "{}", format.name);
    }
}

/// Filters of fingerprints: what is read is written byte for byte, except what its program never writes.
fn fingerprints(data: &[u8]) {
    let len = data.len() as u64;
    for &format in rows::ALL {
        let key_type = format.keys().types[0];
        let Ok(filter) = FingerprintFilter::read(format, key_type, &mut &*data, len, u64::MAX) else { continue };
        let mut written = Vec::new();
        assert!(filter.write(&mut written).is_ok());
        let cells_end = data.len().min(written.len()) - if format.name == "fuse16" { 4 } else { 0 };
        assert_eq!((written.len(), &written[..cells_end]), (data.len(), &data[..cells_end]), "{}", format.name);
        if let Some(digest) = filter.hashing().digest(Domain::Text, b"key") {
            let mut found = [2];
            filter.contains_many(&[digest], &mut found);
            assert_eq!(found[0] == 1, filter.contains(digest));
        }
    }
}

/// No filter of a footer lies outside of its file.
fn check_footer(data: &[u8]) {
    let Some((tail, rest)) = data.split_first_chunk::<8>() else { return };
    let _ = footer::footer_len(tail, rest.len() as u64);
    let file = (rest.len() + 100) as u64;
    for chunk in footer::chunks(rest, file, None).unwrap_or_default() {
        let end = chunk.offset.unwrap_or(4) + chunk.length.unwrap_or(0);
        assert!(end <= file - rest.len() as u64 - 8);
    }
}

/// Bytes are refused or answer, and a set has what it was built of.
fn check_block(data: &[u8]) {
    if let Ok(filter) = BlockFilter::read(data) {
        assert!(filter.count() <= data.len() as u64);
        assert!(filter.matches((1, 2), &[b"key", b""]).is_ok_and(|found| found.len() == 2));
    }
    let elements: Vec<&[u8]> = data.chunks(7).collect();
    let built = bip158::build((1, 2), &elements).unwrap_or_default();
    let read = BlockFilter::read(&built).and_then(|filter| filter.matches((1, 2), &elements));
    assert!(read.is_ok_and(|found| found.iter().all(|found| *found)));
}

/// Bits alone: the first bytes say how many, and how many hashes.
fn bare(data: &[u8]) {
    let Some((&[less, num_hashes, format], bits)) = data.split_first_chunk::<3>() else { return };
    let bare: Vec<_> = formats::ALL.iter().filter(|format| format.rule.is_bare()).collect();
    let format = bare[usize::from(format) % bare.len()];
    let num_bits = (bits.len() as u64 * 8).saturating_sub(u64::from(less));
    let range = Range { num_bits, num_hashes: num_hashes.into() };
    let len = bits.len() as u64;
    let read = BitFilter::read(format, format.key_types[0], &mut &*bits, len, Some(range), u64::MAX);
    let Ok(mut filter) = read else { return };
    let mut written = Vec::new();
    assert!(filter.write(&mut written).is_ok());
    assert_eq!(written, bits, "{}", format.name);
    let hashing = filter.hashing();
    let mut parts = vec![[0; 2]; hashing.parts()];
    assert!(hashing.digest_parts(Domain::Text, b"key", &mut parts));
    assert!(filter.add_key(&parts).is_ok() && filter.contains_key(&parts));
    assert!(filter.positions(&parts).iter().all(|position| *position < num_bits));
}

/// A dump in one file, and in pieces whose lengths the bytes say.
fn check_dump<T: Asked>(data: &[u8]) {
    let read = dump::read::<T>(&mut &*data, data.len() as u64, u64::MAX);
    if let Ok(mut filter) = read {
        let mut written = Vec::new();
        assert!(dump::write(&filter, &mut written).is_ok());
        assert_eq!(written.len(), data.len());
        let digest = T::HASHING.digest(Domain::Text, b"key").unwrap_or_default();
        if filter.put(digest).is_ok() {
            assert!(filter.has(digest));
        }
    }
    let mut loader = Loader::<T>::new(1 << 20);
    let mut rest = data;
    while let Some((&[number, len], behind)) = rest.split_first_chunk::<2>() {
        let (piece, behind) = behind.split_at(behind.len().min(len.into()));
        if loader.push(number.into(), piece).is_err() {
            return;
        }
        rest = behind;
    }
    let _ = loader.finish();
}
