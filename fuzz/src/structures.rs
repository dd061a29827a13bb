//! Every row of the registry: loading a file, and doing with the structure all it can do.

use fullbloom_core::cells::Memory;
use fullbloom_core::container::{Container, ContainerIndex, Verify, tag};
use fullbloom_core::registry::{FalseNegatives, VARIANTS, Variant};
use fullbloom_core::structure::{Addable, Countable, Declared, Filter, Intersectable, Loadable, Mergeable, Removable};
use fullbloom_core::{Error, Result};

/// The secret of the keyed golden file.
pub const SECRET: &[u8; 16] = b"sixteen secrets!";

/// The structure in `file`, as `loads` has it: every section used, and as long as it should be.
fn load<F: Loadable>(parsed: &ContainerIndex, file: &[u8]) -> Result<F> {
    let mut used = 0;
    let mut memory = |kind, index, words: u64| {
        used += 1;
        let span = parsed.section(kind, index)?;
        if span.len as u64 != words.div_ceil(8).saturating_mul(64) {
            return Err(Error::format("a section has another length"));
        }
        let mut memory = Memory::zeroed(words)?;
        memory.copy_from_bytes(&file[span.offset..span.offset + span.len])?;
        Ok(memory)
    };
    let secret = (parsed.header.secret_fingerprint != 0).then_some(SECRET);
    let filter = F::load(&parsed.header, parsed.header.hasher(secret)?, &mut memory)?;
    filter.check_cells()?;
    if used == parsed.sections.len() { Ok(filter) } else { Err(Error::format("sections that nothing names")) }
}

/// The bytes of the file.
fn bytes(container: &Container<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(container.nbytes());
    let head = container.head().expect("cells in memory, whose checksums nobody doubts");
    container.write_with(&head, &mut bytes).expect("writing to memory");
    bytes
}

/// Whether header, tables and checksums of `file` are accepted.
pub fn is_sound(file: &[u8]) -> bool {
    ContainerIndex::new(file, Verify::Full).is_ok()
}

/// What a structure saves is a file that loads, with the same bytes.
fn reloads<F: Loadable>(filter: &F, when: &str) {
    let written = bytes(&filter.container());
    let parsed = ContainerIndex::new(&written, Verify::Full).unwrap_or_else(|e| panic!("{when}: unreadable: {e}"));
    match load::<F>(&parsed, &written) {
        // Counts beyond half of all numbers, which nobody reaches but a file that lies, are cut to that when read.
        Ok(back) => {
            let beyond = |&(tag, _, value): &(u16, u16, u64)| tag == tag::COUNT && value > u64::MAX >> 1;
            let cut = parsed.header.params.iter().any(beyond);
            assert!(cut || bytes(&back.container()) == written, "{when}: another file after loading");
        }
        Err(Error::Memory(_)) => {}
        Err(error) => panic!("{when}: refused: {error}"),
    }
}

/// The stats of a structure are within their ranges.
fn check_stats<F: Declared>(filter: &F) {
    let (fpr, fill) = (filter.fpr(), filter.fill());
    assert!((0.0..=1.0).contains(&fpr), "fpr {fpr}");
    assert!((0.0..=1.0).contains(&fill), "fill {fill}");
    if let Some((count, sd)) = filter.estimate_count() {
        assert!(count >= 0.0 && sd >= 0.0, "count {count} +- {sd}");
    }
    assert!(filter.nbytes() > 0 && !filter.info().is_empty());
}

/// Keys that are tried on each structure, and those that a batch asks for: few, as inputs are many.
const KEYS: u64 = 4;
const BATCH: i64 = 20;

/// One thing that a structure can do with a hash.
type Ability<F> = fn(&mut F, u64);

/// Does all that the structure in `file` can do. `put` adds a key; true when the structure took it.
fn exercise<F>(parsed: &ContainerIndex, file: &[u8], put: fn(&mut F, u64) -> bool, abilities: &[Ability<F>])
where
    F: Loadable + Declared,
{
    let Ok(mut filter) = load::<F>(parsed, file) else { return };
    check_stats(&filter);
    reloads(&filter, "as loaded");
    let base = u64::from(crc32fast::hash(file));
    let hasher = *filter.hasher();
    let mut copy = filter.try_clone().ok();
    let mut added = Vec::new();
    for i in 0..KEYS {
        let hash = if i % 2 == 0 { hasher.hash_signed(i as i64) } else { hasher.hash_signed((base + i) as i64) };
        if put(&mut filter, hash) {
            assert!(filter.contains_hash(hash), "a key that was just added is not found");
            added.push(hash);
        }
        for ability in abilities {
            ability(&mut filter, hash);
        }
    }
    check_stats(&filter);
    if never_misses(&filter) {
        assert!(added.iter().all(|&hash| filter.contains_hash(hash)), "a key that was added is lost");
    }
    reloads(&filter, "after changes");
    let hashes: Vec<u64> = (0..BATCH).map(|i| hasher.hash_signed(i)).collect();
    let mut found = vec![0; hashes.len()];
    filter.contains_hashes(&hashes, &mut found);
    for (&hash, found) in hashes.iter().zip(found) {
        assert_eq!(found != 0, filter.contains_hash(hash), "batch and single look differ");
    }
    if let Some(copy) = &mut copy {
        assert!(copy.same_as(copy) && bytes(&copy.container()).len() <= file.len() + 4096);
    }
}

/// Adds a key where that takes a key alone.
fn put_key<F: Addable>(filter: &mut F, hash: u64) -> bool {
    let _ = filter.newly_overfull();
    match filter.add_hash(hash) {
        Ok(_) => true,
        Err(Error::Capacity(_) | Error::Memory(_) | Error::Parameter(_)) => false,
        Err(error) => panic!("add: {error}"),
    }
}

fn remove<F: Removable>(filter: &mut F, hash: u64) {
    if hash.is_multiple_of(3) {
        let _ = filter.remove_hash(hash);
    }
}

fn count<F: Countable>(filter: &mut F, hash: u64) {
    assert_eq!(filter.count_hash(hash) > 0, filter.contains_hash(hash), "a key is counted that is not found");
}

/// What the registry says of a structure.
fn can<F: Loadable>(filter: &F, capability: &str) -> bool {
    let id = filter.container().header.variant;
    VARIANTS.iter().any(|row| row.id == id && row.capabilities.contains(&capability))
}

/// Whether it promises to find each key that was added, whatever else happens; a set of bits takes keys out.
fn never_misses<F: Loadable>(filter: &F) -> bool {
    let id = filter.container().header.variant;
    let promised = |row: &&Variant| row.id == id && row.false_negatives == FalseNegatives::Never;
    VARIANTS.iter().find(promised).is_some_and(|row| !row.capabilities.contains(&"remove"))
}

/// With itself, whose keys are all there already: every one is still found.
fn merge<F: Mergeable + Loadable>(filter: &mut F, hash: u64) {
    if !hash.is_multiple_of(5) {
        return;
    }
    let (Ok(other), found) = (filter.try_clone(), filter.contains_hash(hash)) else { return };
    // Sums of a file that lies wrap to nothing; only differences are read from them.
    let sums = can(filter, "decode");
    if filter.merge(&other).is_ok() && found && !sums {
        assert!(filter.contains_hash(hash), "a key is lost in a merge");
    }
}

/// How a row adds.
macro_rules! put {
    (open [key value] $Class:ty) => {
        |filter: &mut $Class, hash| filter.put_hash(hash, 1 + hash % 3).is_ok()
    };
    (open $entry:tt $Class:ty) => {
        put_key::<$Class>
    };
    // Nothing is added to a structure that is built of all its keys.
    (built $entry:tt $Class:ty) => {
        |_: &mut $Class, _| false
    };
}

/// What a capability adds to the exercise.
macro_rules! ability {
    (remove $Class:ty) => {
        remove::<$Class>
    };
    (delete $Class:ty) => {
        remove::<$Class>
    };
    (count $Class:ty) => {
        count::<$Class>
    };
    (merge $Class:ty) => {
        merge::<$Class>
    };
    (label $Class:ty) => {
        |filter: &mut $Class, hash| {
            filter.get_hash(hash);
            filter.label_rates();
        }
    };
    (value $Class:ty) => {
        |filter: &mut $Class, hash| {
            filter.get_hash(hash);
        }
    };
    (intersect $Class:ty) => {
        |filter: &mut $Class, hash| {
            if hash % 4 == 0
                && let Ok(other) = filter.try_clone()
            {
                let _ = (filter.intersection_count(&other), filter.jaccard(&other), filter.intersect(&other));
            }
        }
    };
    (overlap $Class:ty) => {
        |filter: &mut $Class, hash| {
            if hash % 4 == 0
                && let Ok(other) = filter.try_clone()
            {
                let _ = (filter.intersection_count(&other), filter.intersect(&other));
            }
        }
    };
    (retouch $Class:ty) => {
        |filter: &mut $Class, hash| {
            let _ = (filter.note_false_positive(hash), filter.clear_random(0.01, hash), filter.fnr());
        }
    };
    ($other:ident $Class:ty) => {
        |_: &mut $Class, _| {}
    };
}

macro_rules! rows {
    ({} $({
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        adds: $when:ident $entry:tt, can: [$($can:ident)*], $($rest:tt)*
    })*) => {
        /// Loads `file` by the number in its header, and does with it all that the row can do. False where its
        /// header, tables or checksums are refused.
        pub fn check(file: &[u8]) -> bool {
            let Ok(parsed) = ContainerIndex::new(file, Verify::Full) else { return false };
            match parsed.header.variant {
                $($number => {
                    use fullbloom_core::$family::$Class;
                    exercise::<$Class>(&parsed, file, put!($when $entry $Class), &[$(ability!($can $Class)),*]);
                })*
                _ => {}
            }
            true
        }
    };
}
fullbloom_core::variants!(rows! {});
