//! Files of banks: read whole, and mapped with nothing but their header checked.
#![no_main]

use fullbloom_core::Error;
use fullbloom_core::bank::{Exported, FilterBank};
use fullbloom_core::container::file::OpenFile;
use fullbloom_core::container::{ContainerIndex, Verify};
use fullbloom_core::structure::Filter;
use fullbloom_core::structure::opening::OpenOptions;
use fullbloom_fuzz::{file, forms, memory, structures};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

/// Bytes beyond those of the file up to which a bank may grow.
const ROOM: u64 = 1 << 16;
/// Owners of the file that are tried, and others.
const OWNERS: usize = 12;

fuzz_target!(init: memory::limit(), |data: &[u8]| forms::check_each(data, check));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 4 != 0 && file::mutate(&mut data[..size], u64::from(seed)).is_some() {
        return size;
    }
    fuzzer_mutate(data, size, max_size)
});

fn check(data: &[u8]) -> bool {
    let Ok(parsed) = ContainerIndex::new(data, Verify::Full) else { return false };
    let secret = (parsed.header.secret_fingerprint != 0).then_some(*structures::SECRET);
    let options = |verify| OpenOptions { verify, secret, max_bytes: data.len() as u64 + ROOM };
    let path = forms::write(data);
    let mapped = OpenFile::new(&path).and_then(|file| FilterBank::open(&file, &path, &options(Verify::Header)));
    let read = FilterBank::from_bytes(data, &options(Verify::Full));
    assert!(read.is_err() || mapped.is_ok(), "a file that is read cannot be opened");
    if let Ok(mapped) = &mapped {
        check_stats(mapped);
        assert_eq!(mapped.try_clone().is_ok(), read.is_ok(), "only one of a copy and a bank that was read is refused");
    }
    match read {
        Ok(bank) => {
            assert!(mapped.is_ok_and(|mapped| mapped.same_as(&bank)), "mapped and read, a file holds different banks");
            exercise(bank, &options(Verify::Full));
        }
        Err(Error::Format(_) | Error::Memory(_)) => {}
        Err(Error::Parameter(_)) if secret.is_some() => {}
        Err(error) => panic!("another error: {error}"),
    }
    true
}

/// Owners of the bank and some that are not in it, with a key for each.
fn pairs(bank: &FilterBank) -> (Vec<u64>, Vec<u64>) {
    let owners: Vec<u64> = bank.each_owner().map(|(owner, _)| owner).take(OWNERS).chain(0..4).collect();
    let keys = (0..owners.len() as i64).map(|i| bank.hasher().hash_signed(i)).collect();
    (owners, keys)
}

/// Batches answer as single calls, and what is said of owners is sane; of a bank that nobody checked, that there are
/// answers.
fn check_stats(bank: &FilterBank) {
    let (owners, keys) = pairs(bank);
    let mut found = vec![2; owners.len()];
    bank.contains_pairs(&owners, &keys, &mut found);
    for (i, &owner) in owners.iter().enumerate() {
        let _ = (bank.num_keys(owner), bank.num_stages(owner), bank.owner_bytes(owner));
        if bank.is_mapped() {
            let _ = (bank.contains(owner, keys[i]), bank.export(owner).map(|_| ()), bank.owner_fpr(owner).is_ok());
            let _ = bank.owner_estimate(owner).is_ok();
            continue;
        }
        assert_eq!(found[i] == 1, bank.contains(owner, keys[i]), "batch and single look differ");
        let held = match bank.export(owner) {
            Ok(None) => false,
            Ok(Some(Exported::One(filter))) => filter.contains_hash(keys[i]),
            Ok(Some(Exported::Grown(filter))) => filter.contains_hash(keys[i]),
            // A rate that no filter of its own has is found by the filter alone.
            Err(Error::Format(_) | Error::Memory(_)) => continue,
            Err(error) => panic!("export: {error}"),
        };
        assert_eq!(found[i] == 1, held, "an exported owner answers otherwise");
        let fpr = bank.owner_fpr(owner).expect("memory");
        assert!((0.0..=1.0).contains(&fpr), "fpr {fpr}");
        let (count, deviation) = bank.owner_estimate(owner).expect("memory");
        assert!(count >= 0.0 && deviation >= 0.0, "count {count} +- {deviation}");
    }
}

/// The bytes of its file, which are those of the bank in them.
fn reloads(bank: &FilterBank, options: &OpenOptions) {
    let write = |bank: &FilterBank| {
        let container = bank.container();
        let mut bytes = Vec::with_capacity(container.nbytes());
        container.write_with(&container.head().expect("cells in memory"), &mut bytes).expect("memory");
        bytes
    };
    let bytes = write(bank);
    let wide = OpenOptions { max_bytes: u64::MAX, verify: Verify::Full, secret: options.secret };
    match FilterBank::from_bytes(&bytes, &wide) {
        Ok(back) => assert!(write(&back) == bytes, "another file after loading"),
        Err(Error::Memory(_)) => {}
        Err(error) => panic!("its own file is refused: {error}"),
    }
}

/// Does all that a bank can do.
fn exercise(mut bank: FilterBank, options: &OpenOptions) {
    check_stats(&bank);
    reloads(&bank, options);
    let copy = bank.try_clone().ok();
    let (owners, keys) = pairs(&bank);
    let mut new = vec![0; owners.len()];
    match bank.add_pairs(&owners, &keys, Some(&mut new)) {
        Ok(()) => assert!(owners.iter().zip(&keys).all(|(&owner, &key)| bank.contains(owner, key)), "a key is lost"),
        Err(Error::Capacity(_) | Error::Memory(_)) => {}
        Err(error) => panic!("add: {error}"),
    }
    // One owner grows as far as it can.
    for key in 0..60 {
        match bank.add(owners[0], bank.hasher().hash_signed(key)) {
            Ok(_) => assert!(bank.contains(owners[0], bank.hasher().hash_signed(key)), "a key is lost"),
            Err(Error::Capacity(_) | Error::Memory(_)) => break,
            Err(error) => panic!("add: {error}"),
        }
    }
    bank.check_cells().expect("after adding");
    if let Some(mut copy) = copy {
        match copy.merge(&bank) {
            Ok(()) | Err(Error::Capacity(_) | Error::Memory(_)) => copy.check_cells().expect("after merging"),
            Err(error) => panic!("merge: {error}"),
        }
    }
    let is_owner = bank.has_owner(owners[0]);
    assert_eq!(bank.remove_owner(owners[0]).expect("a list of free lines"), is_owner);
    assert!(!bank.has_owner(owners[0]) && !bank.contains(owners[0], keys[0]));
    bank.clear_owner(owners[owners.len() / 2]).expect("a list of free lines");
    bank.check_cells().expect("after removing");
    check_stats(&bank);
    reloads(&bank, options);
}
