//! Filters of other programs: bytes in every format, and the footers of Parquet files.
#![no_main]

use fullbloom_core::foreign::bits::BitFilter;
use fullbloom_core::foreign::fingerprints::{FingerprintFilter, rows};
use fullbloom_core::foreign::formats::{self, Head};
use fullbloom_core::foreign::parquet::footer;
use fullbloom_core::key::Domain;
use fullbloom_fuzz::memory;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: memory::limit(), |data: &[u8]| {
    let len = data.len() as u64;
    let detected = formats::detect(&data[..data.len().min(Head::MOST)], len);
    for &format in formats::ALL {
        let key_type = format.key_types[0];
        let read = BitFilter::read(format, key_type, &mut &*data, len, u64::MAX);
        let is_detected = detected.is_some_and(|found| found.number == format.number);
        // Bytes fit in one format at most, and that one is detected.
        assert_eq!(read.is_ok(), is_detected, "{}", format.name);
        let Ok(mut filter) = read else { continue };
        let mut written = Vec::new();
        assert!(filter.write(&mut written).is_ok());
        assert_eq!(written, data, "{}", format.name);
        let hashing = filter.hashing();
        for (domain, key) in [(Domain::Text, &b"key"[..]), (Domain::Integer, &[7; 8])] {
            let Some(digest) = hashing.digest(domain, key) else { continue };
            let mut found = [2];
            filter.contains_many(&[digest], &mut found);
            assert_eq!(found[0] == 1, filter.contains(digest));
            assert!(filter.add(digest).is_ok() && filter.contains(digest));
        }
    }
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
    if let Some((tail, rest)) = data.split_first_chunk::<8>() {
        let _ = footer::footer_len(tail, rest.len() as u64);
        let file = (rest.len() + 100) as u64;
        for chunk in footer::chunks(rest, file, None).unwrap_or_default() {
            let end = chunk.offset.unwrap_or(4) + chunk.length.unwrap_or(0);
            assert!(end <= file - rest.len() as u64 - 8);
        }
    }
});
