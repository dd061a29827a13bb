//! Files of signature indexes: read whole, and mapped with nothing but their header checked.
#![no_main]

use fullbloom_core::Error;
use fullbloom_core::container::file::OpenFile;
use fullbloom_core::container::{ContainerIndex, Verify};
use fullbloom_core::signature::SignatureIndex;
use fullbloom_core::signature::file::Conditions;
use fullbloom_core::signature::query::Query;
use fullbloom_fuzz::{file, forms, memory, structures};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

/// Bits of a block that is allocated to add a row.
const MOST_BITS: u64 = 1 << 26;

fuzz_target!(init: memory::limit(), |data: &[u8]| forms::check_each(data, check));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 4 != 0 && file::mutate(&mut data[..size], u64::from(seed)).is_some() {
        return size;
    }
    fuzzer_mutate(data, size, max_size)
});

fn check(data: &[u8]) -> bool {
    let Ok(parsed) = ContainerIndex::new(data, Verify::Full) else { return false };
    let secret = (parsed.header.secret_fingerprint != 0).then_some(structures::SECRET);
    let wanted = |verify| Conditions { verify, secret, max_bytes: data.len() as u64 };
    let path = forms::write(data);
    let mapped = OpenFile::new(&path).and_then(|file| SignatureIndex::open(&file, &path, wanted(Verify::Header)));
    let read = SignatureIndex::from_file(data, wanted(Verify::Full));
    if let Ok(mapped) = &mapped {
        check_stats(mapped);
        assert!(mapped.is_empty() || mapped.is_read_only());
    }
    match read {
        Ok(index) => {
            assert!(
                mapped.is_ok_and(|mapped| mapped.equals(&index)),
                "mapped and read, a file holds different indexes"
            );
            exercise(index, wanted(Verify::Full));
        }
        Err(Error::Format(_) | Error::Memory(_)) => {}
        Err(Error::Parameter(_)) if secret.is_some() => {}
        Err(error) => panic!("another error: {error}"),
    }
    true
}

/// The numbers of the candidates, which are rows of the index in order.
fn candidates(index: &SignatureIndex, query: &Query) -> Vec<u64> {
    let mut found = Vec::new();
    index.each_candidate(query, |row| found.push(row));
    assert!(found.is_sorted_by(|one, next| one < next) && found.last().is_none_or(|&last| last < index.len()));
    let share = index.expected_share(query);
    assert!(share.is_finite() && share >= 0.0, "share {share}");
    found
}

/// The hashes of a document, or of a row's values.
fn terms(index: &SignatureIndex, count: usize) -> Vec<u64> {
    (0..count as i64).map(|i| index.hasher().hash_signed(i)).collect()
}

/// The stats of an index are within their ranges.
fn check_stats(index: &SignatureIndex) {
    let fill = index.fill();
    assert!((0.0..=1.0).contains(&fill) || index.is_read_only(), "fill {fill}");
    candidates(index, &index.query(&terms(index, 3)));
    let values: Vec<(usize, u64)> = terms(index, index.shape().columns().len()).into_iter().enumerate().collect();
    candidates(index, &index.query_columns(&values));
    if index.len() < 1 << 20 {
        assert_eq!(candidates(index, &index.query(&[])).len() as u64, index.len());
    }
}

/// What an index saves is a file of the same bytes when it is read.
fn reloads(index: &SignatureIndex, wanted: Conditions<'_>) {
    let write = |index: &SignatureIndex| {
        let mut bytes = Vec::new();
        let written = index.with_container(|container| {
            container.write_with(&container.head()?, &mut bytes).map_err(|e| Error::Io(e, "memory".into()))
        });
        written.map(|()| bytes)
    };
    let Ok(bytes) = write(index) else { return };
    match SignatureIndex::from_file(&bytes, Conditions { max_bytes: u64::MAX, ..wanted }) {
        Ok(back) => {
            assert!(back.equals(index), "another index after loading");
            assert!(write(&back).is_ok_and(|again| again == bytes), "another file after loading");
        }
        Err(Error::Memory(_)) => {}
        Err(error) => panic!("its own file is refused: {error}"),
    }
}

/// Does all that an index can do.
fn exercise(mut index: SignatureIndex, wanted: Conditions<'_>) {
    check_stats(&index);
    reloads(&index, wanted);
    let Ok(copy) = index.try_clone() else { return };
    assert!(copy.equals(&index));
    // An index without rows may state blocks as large as all memory.
    let shape = index.shape();
    let bits = shape.ranks().iter().fold(shape.private(), |sum, width| sum.saturating_add(width.num_bits));
    if bits.saturating_mul(shape.block_rows()) > MOST_BITS {
        return;
    }
    let document = terms(&index, 3);
    match index.add_document(&document) {
        Ok(row) => {
            assert_eq!(row + 1, index.len());
            assert!(candidates(&index, &index.query(&document)).contains(&row), "a document is lost");
        }
        Err(Error::Capacity(_) | Error::Memory(_)) => {}
        Err(error) => panic!("add: {error}"),
    }
    let values = terms(&index, index.shape().columns().len());
    match index.add_values(&values.iter().copied().map(Some).collect::<Vec<_>>()) {
        Ok(row) => {
            let asked: Vec<(usize, u64)> = values.into_iter().enumerate().collect();
            assert!(candidates(&index, &index.query_columns(&asked)).contains(&row), "a row is lost");
        }
        Err(Error::Capacity(_) | Error::Memory(_)) => {}
        Err(error) => panic!("add: {error}"),
    }
    assert!(copy.len() <= index.len());
    check_stats(&index);
    reloads(&index, wanted);
}
