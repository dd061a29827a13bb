//! Filters of other programs: bytes in every format of the table, in pieces, in containers of ours, and the footers of Parquet
//! files.
#![no_main]

use fullbloom_core::Error;
use fullbloom_core::container::header::MAGIC;
use fullbloom_core::container::{ContainerIndex, FOREIGN, FOREIGN_STATIC, REDISBLOOM, REDISBLOOM_CUCKOO, Verify};
use fullbloom_core::foreign::bits::BitFilter;
use fullbloom_core::foreign::formats::{self, Format};
use fullbloom_core::foreign::opening::{Description, Foreign};
use fullbloom_core::foreign::parquet::footer::{self, Chunks};
use fullbloom_core::foreign::redisbloom::bloom::Chain;
use fullbloom_core::foreign::redisbloom::cuckoo::Cuckoo;
use fullbloom_core::foreign::redisbloom::dump::{self, Loader, Membership};
use fullbloom_core::foreign::rules::Range;
use fullbloom_core::foreign::source::Source;
use fullbloom_core::foreign::static_filter::StaticFilter;
use fullbloom_core::key::Domain;
use fullbloom_fuzz::{file, forms, memory};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

/// Bytes up to which a filter may grow.
const ROOM: u64 = 1 << 20;
/// Of the block of every filter that has one.
const BLOCK_HASH: [u8; 32] = [7; 32];

fuzz_target!(init: memory::limit(), |data: &[u8]| {
    if data.starts_with(&MAGIC) {
        forms::check_each(data, check_container);
        return;
    }
    let detected = formats::detect(data, data.len() as u64);
    for &format in formats::ALL.iter().filter(|format| !format.is_bare()) {
        let block_hash = format.needs_block_hash().then_some(BLOCK_HASH);
        let read = read(format, data, Description { block_hash, ..Description::default() });
        if let Ok(filter) = read {
            // Bytes opened as BIP 37 may have any flag, and are of the format of that flag.
            let number = if let Foreign::Bits(filter) = &filter { filter.format().number } else { format.number };
            let is_detected = detected.is_some_and(|found| found.number == number);
            // Bytes fit in one such format at most, and that one is detected. What is behind the first bytes may lie.
            assert!(is_detected || !format.is_detected, "{}", format.name);
            check(filter, data);
        }
    }
    check_bare(data);
    check_pieces::<Chain>(data);
    check_pieces::<Cuckoo>(data);
    check_footer(data);
    check_parquet_len(data);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 4 != 0 && data[..size].starts_with(&MAGIC) && file::mutate(&mut data[..size], u64::from(seed)).is_some() {
        return size;
    }
    fuzzer_mutate(data, size, max_size)
});

fn read(format: &'static Format, data: &[u8], described: Description<'_>) -> Result<Foreign, Error> {
    let key_type = Some(format.key_types[0].name());
    Description { format: Some(format), key_type, max_bytes: Some(ROOM), ..described }.read(Source::of(data))
}

/// What is read is written as it was, and finds what it adds; nothing is larger than its bytes.
fn check(filter: Foreign, data: &[u8]) {
    match filter {
        Foreign::Bits(filter) => check_bits(filter, data),
        Foreign::Static(filter) => check_static(&filter, data),
        Foreign::Layers(filter) => check_dump(filter, data),
        Foreign::Tables(filter) => check_dump(filter, data),
    }
}

fn collect_bytes(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(write(&mut bytes).is_ok());
    bytes
}

fn check_bits(mut filter: BitFilter, data: &[u8]) {
    let name = filter.format().name;
    if filter.check_written().is_ok() {
        assert_eq!(collect_bytes(|out| filter.write(out)), data, "{name}");
    }
    assert!(filter.nbytes() <= data.len() as u64);
    check_words(&filter, data);
    let hashing = filter.hashing();
    let mut parts = vec![[0; 2]; hashing.parts()];
    for (domain, key) in [(Domain::Text, &b"key"[..]), (Domain::Integer, &[7; 8])] {
        if !hashing.digest_parts(domain, key, &mut parts) {
            continue;
        }
        let mut found = [2];
        filter.contains_keys(&parts, &mut found);
        assert_eq!(found[0] == 1, filter.contains_key(&parts), "{name}");
        assert!(filter.add_key(&parts).is_ok() && filter.contains_key(&parts), "{name}");
        assert!(filter.positions(&parts).iter().all(|position| *position < filter.num_bits()), "{name}");
    }
    let copy = filter.try_clone();
    assert!(copy.is_ok_and(|copy| copy.equals(&filter) && filter.is_subset(&copy).is_ok_and(|is| is)), "{name}");
}

/// Integers have the same answers in blocks as one by one: pieces of the input, and others behind its end.
fn check_words(filter: &BitFilter, data: &[u8]) {
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
        assert_eq!(digest.map(|digest| filter.contains(digest)), Some(found == 1), "{}", filter.format().name);
    }
}

/// What is read is written byte for byte, except bytes behind the cells that the program never writes.
fn check_static(filter: &StaticFilter, data: &[u8]) {
    let name = filter.format().name;
    let bytes = collect_bytes(|out| filter.write(out));
    let cells_end = bytes.len() - usize::from(filter.fingerprints().is_some_and(|filter| filter.width() == 16)) * 4;
    let cells_end = cells_end.min(data.len());
    assert_eq!((bytes.len(), &bytes[..cells_end]), (data.len(), &data[..cells_end]), "{name}");
    assert!(filter.nbytes() <= data.len() as u64 && filter.num_keys().unwrap_or(0) <= data.len() as u64 * 8);
    if let Some(digest) = filter.hashing().digest(Domain::Text, b"key") {
        let mut found = [2];
        filter.contains_many(&[digest], &mut found);
        assert_eq!(found[0] == 1, filter.contains(digest), "{name}");
    }
    assert!(filter.try_clone().is_ok_and(|copy| copy.equals(filter)), "{name}");
}

fn check_dump<T: Membership>(mut filter: T, data: &[u8]) {
    assert_eq!(collect_bytes(|out| dump::write(&filter, out)), data);
    let keys: Vec<_> = (0..40u32).filter_map(|i| T::HASHING.digest(Domain::Text, &i.to_le_bytes())).collect();
    for &key in &keys {
        let before = filter.runs().map(|run| run.len() as u64).sum::<u64>();
        if filter.put(key).is_err() {
            break;
        }
        assert!(filter.has(key));
        let after = filter.runs().map(|run| run.len() as u64).sum::<u64>();
        assert!(after <= ROOM.max(before), "{before} {after}");
    }
}

/// Bits alone: the first bytes say how many, how many hashes, and which rule.
fn check_bare(data: &[u8]) {
    let Some((&[less, num_hashes, which], bits)) = data.split_first_chunk::<3>() else { return };
    let bare: Vec<_> = formats::ALL.iter().copied().filter(|format| format.is_bare()).collect();
    let format = bare[usize::from(which) % bare.len()];
    let num_bits = (bits.len() as u64 * 8).saturating_sub(u64::from(less));
    let shape = Some(Range { num_bits, num_hashes: num_hashes.into() });
    if let Ok(filter) = read(format, bits, Description { shape, ..Description::default() }) {
        check(filter, bits);
    }
}

/// A dump in pieces whose lengths the bytes say.
fn check_pieces<T: Membership>(data: &[u8]) {
    let mut loader = Loader::<T>::new(ROOM);
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

/// No filter of a footer lies outside of its file, and each column of a name is among all of them.
fn check_footer(data: &[u8]) {
    let Some((tail, rest)) = data.split_first_chunk::<8>() else { return };
    let _ = footer::footer_len(tail, rest.len() as u64);
    let file = (rest.len() + 100) as u64;
    let Ok(chunks) = Chunks::new(rest.to_vec(), file, None) else { return };
    let (end, mut first, mut same) = (chunks.end, None, 0);
    for chunk in chunks {
        assert!(chunk.offset.unwrap_or(4) + chunk.length.unwrap_or(0) <= end);
        let name = first.get_or_insert_with(|| chunk.column.clone());
        same += usize::from(*name == chunk.column);
    }
    let named = first.map(|name| Chunks::new(rest.to_vec(), file, Some(name)).map_or(0, Iterator::count));
    assert_eq!(named.unwrap_or(0), same);
}

/// The length that the header of a Parquet filter states is one of which a filter can be.
fn check_parquet_len(data: &[u8]) {
    if let Ok(len) = formats::parquet_len(&data[..data.len().min(32)])
        && len == data.len() as u64
    {
        assert!(formats::detect(data, len).is_some_and(|format| format.name == "parquet"));
    }
}

/// A file of ours is refused, or what it holds is saved as the same bytes; returns whether header and checksums are sound.
fn check_container(data: &[u8]) -> bool {
    let Ok(parsed) = ContainerIndex::new(data, Verify::Full) else { return false };
    let most = data.len() as u64 + ROOM;
    match parsed.header.variant {
        FOREIGN => check_saved(BitFilter::from_file(data, most), data, |filter, out| {
            filter.container().write_with(&filter.container().head().unwrap_or_default(), out)
        }),
        FOREIGN_STATIC => check_saved(StaticFilter::from_file(data, most), data, |filter, out| {
            filter.container().write_with(&filter.container().head().unwrap_or_default(), out)
        }),
        REDISBLOOM => check_saved(dump::from_file::<Chain>(data, most), data, |filter, out| {
            filter.container().write_with(&filter.container().head().unwrap_or_default(), out)
        }),
        REDISBLOOM_CUCKOO => check_saved(dump::from_file::<Cuckoo>(data, most), data, |filter, out| {
            filter.container().write_with(&filter.container().head().unwrap_or_default(), out)
        }),
        _ => {}
    }
    true
}

fn check_saved<T>(read: Result<T, Error>, data: &[u8], save: impl Fn(&T, &mut Vec<u8>) -> std::io::Result<()>) {
    match read {
        // What else such a file has is left out: of the parameters of other structures, say.
        Ok(filter) => assert!(collect_bytes(|out| save(&filter, out)).len() <= data.len() + 64),
        Err(Error::Format(_) | Error::Memory(_)) => {}
        Err(error) => panic!("another error: {error}"),
    }
}
