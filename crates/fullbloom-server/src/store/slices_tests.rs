//! Copies and merges while keys are added: a copy equals the filter at its record, and no acknowledged key is lost.

use fullbloom_core::key::KeyDomains;
use std::collections::BTreeMap;
use std::thread;

use super::kill_tests::rounds;
use super::tests::{Draws, copy_folder, open_store, run_beside, temporary, visible_state};
use super::*;
use crate::fault::Result;
use crate::fault_points::{Action, Child, arm};
use crate::kind::{Kind, Spec};

fn kind(name: &'static str) -> Spec {
    Spec { kind: name.into(), seed: 5, ..Spec::default() }
}

/// Kinds that are copied in slices, one of which grows, and in which adding only sets cells.
pub(super) fn specs() -> Vec<Spec> {
    let bloom = |layout: &'static str| kind("bloom").with("capacity", 60_000).with("layout", layout);
    let mut specs: Vec<Spec> = ["classic", "blocked", "two-block"].map(bloom).into();
    specs.push(kind("scalable").with("initial_capacity", 30_000));
    specs.push(kind("redisbloom").with("capacity", 60_000));
    specs.extend(["classic", "blocked"].map(|layout| kind("counting").with("capacity", 30_000).with("layout", layout)));
    specs
}

/// Kinds in which cells also become free, or that are copied at once.
pub(super) fn other_specs() -> Vec<Spec> {
    let sliced = ["variable-increment", "deletable", "retouched", "layered", "rolling", "aging", "invertible"];
    let at_once = ["spectral", "cuckoo", "d-left", "quotient", "stable", "prefix", "redisbloom-cuckoo"];
    let names = sliced.into_iter().chain(at_once);
    let mut specs: Vec<Spec> = names.map(|name| kind(name).with("capacity", 60_000)).collect();
    // Generations expire all the time.
    specs.push(kind("rolling").with("capacity", 8_000).with("fpr", "1e-4"));
    specs.push(kind("compact").with("capacity", 60_000));
    specs.push(kind("bank").with("capacity", 50));
    specs
}

fn bytes_of(filter: &dyn Kind) -> Vec<u8> {
    let (container, mut bytes) = (filter.container(), Vec::new());
    let head = container.head().unwrap_or_default();
    let _ = container.write_with(&head, &mut bytes);
    bytes
}

pub(super) fn in_memory() -> Result<Store> {
    Store::open(Options { plain: true, ..Options::default() })
}

/// A change of a filter: usually another key.
fn step(store: &Store, entry: &Entry, number: u64) -> Result<Lsn> {
    let kind: &str = &entry.settings.spec.kind;
    if number.is_multiple_of(499) && kind != "redisbloom" && kind != "redisbloom-cuckoo" {
        return store.clear(entry);
    }
    let target =
        if number.is_multiple_of(3) { entry.at(None).with_domains(KeyDomains::HASHED) } else { entry.at(None) };
    // Few keys, where they can be removed, so that most of those removed are present.
    let removes = entry.read().check_removes().is_ok();
    let key = if removes { Draws(number % 256).next() } else { number };
    if removes && number.is_multiple_of(5) {
        return store.remove(target, &[key], &mut [0]);
    }
    if kind == "compact" {
        return store.add_pairs(target, &[key], &[1 + number % 7]);
    }
    store.add(target, &[key, key.rotate_left(32)][..entry.keying.width()], &mut [0])
}

/// The first keys of a filter.
fn add_first(store: &Store, entry: &Entry) -> Result<Lsn> {
    let words: Vec<u64> = (0..36_000u64).map(|key| Draws(key).next()).collect();
    let keys = words.len() / entry.keying.width();
    if entry.settings.spec.kind == "compact" {
        return store.add_pairs(entry, &words, &vec![1; keys]);
    }
    store.add(entry, &words, &mut vec![0; keys])
}

#[test]
fn a_copy_is_the_filter_at_the_record_that_it_names() -> Result<()> {
    for (at, spec) in specs().into_iter().chain(other_specs()).enumerate() {
        let store = in_memory()?;
        let (entry, _) = store.create(b"a", Settings::of(spec.clone()))?;
        add_first(&store, &entry)?;
        let (mut changes, mut draws) = (BTreeMap::new(), Draws(at as u64));
        let change = || {
            let key = draws.next();
            // A refused change changes nothing.
            changes.extend(step(&store, &entry, key).map(|lsn| (lsn.0, key)));
            if key % 16 == 0 {
                thread::sleep(std::time::Duration::from_micros(100));
            }
        };
        let copies =
            run_beside(change, || (0..20).map(|_| entry.snapshot(store.budget())).collect::<Result<Vec<_>>>())?;
        // The same changes again, one by one.
        let again = in_memory()?;
        let (other, _) = again.create(b"a", Settings::of(spec.clone()))?;
        add_first(&again, &other)?;
        for copy in copies {
            let later = changes.split_off(&(copy.lsn + 1));
            for key in std::mem::replace(&mut changes, later).into_values() {
                step(&again, &other, key)?;
            }
            let same = bytes_of(copy.filter()) == bytes_of(other.read().as_ref());
            assert!(same, "{} at record {}", spec.line(), copy.lsn);
        }
    }
    Ok(())
}

/// A kind that is copied in slices, and kinds that are copied at once.
fn merged_specs() -> [Spec; 4] {
    ["bloom", "counting", "cuckoo", "d-left"]
        .map(|kind| Spec { kind: kind.into(), seed: 5, ..Spec::default() }.with("capacity", 60_000))
}

#[test]
fn keys_added_during_a_merge_survive() -> Result<()> {
    // Fingerprints of small numbers would be equal.
    let key = |number: u64| Draws(number).next();
    let [k1, k2, k3, k4, k5, k6] = [1, 2, 3, 4, 5, 6].map(key);
    let points = ["file.create", "file.written", "files.sync", "files.synced"];
    for (spec, point) in merged_specs().iter().flat_map(|spec| points.map(|point| (spec.clone(), point))) {
        let folder = temporary();
        let store = open_store(folder.path())?;
        let (into, _) = store.create(b"into", Settings::of(spec.clone()))?;
        let (from, _) = store.create(b"from", Settings::of(spec.clone()))?;
        store.add(&into, &[k1, k2], &mut [0; 2])?;
        store.add(&from, &[k2, k3], &mut [0; 2])?;
        let paused = arm(folder.path(), point, 0, Action::Pause);
        thread::scope(|scope| {
            let merge = scope.spawn(|| store.merge(&into, &from));
            paused.wait();
            // Neither waits for the merge.
            let mut new = [9; 3];
            store.add(&into, &[k1, k4, k3], &mut new)?;
            store.add(into.at(None).with_domains(KeyDomains::HASHED), &[k5], &mut [0])?;
            assert_eq!(new, [0, 1, 1], "{point}");
            paused.release();
            let lsn = merge.join().unwrap_or_else(|_| unreachable!("no thread panics"))?;
            store.log().wait_blocking(lsn.0)
        })?;
        let mut found = [0; 6];
        into.read().contains(&[k1, k2, k3, k4, k5, k6], &mut found);
        assert_eq!(found, [1, 1, 1, 1, 1, 0], "{point}");
        // As if they had been added after the merge.
        let other = in_memory()?;
        let [(one, _), (two, _)] =
            [other.create(b"1", Settings::of(spec.clone()))?, other.create(b"2", Settings::of(spec))?];
        other.add(&one, &[k1, k2], &mut [0; 2])?;
        other.add(&two, &[k2, k3], &mut [0; 2])?;
        other.merge(&one, &two)?;
        other.add(&one, &[k1, k4, k3], &mut [0; 3])?;
        other.add(one.at(None).with_domains(KeyDomains::HASHED), &[k5], &mut [0])?;
        assert!(bytes_of(into.read().as_ref()) == bytes_of(one.read().as_ref()), "{point}");
        let crashed = open_store(copy_folder(folder.path()).path())?;
        assert!(visible_state(&crashed) == visible_state(&store), "{point}");
        // A checkpoint afterwards includes it, and so does another merge.
        store.checkpoint()?;
        store.log().wait_blocking(store.merge(&into, &from)?.0)?;
        assert!(visible_state(&open_store(copy_folder(folder.path()).path())?) == visible_state(&store), "{point}");
    }
    Ok(())
}

/// Merges while these numbers of keys are added, one batch before each round; returns the number of batches that the
/// merge repeats in the log.
fn merge_beside(batches: &[usize]) -> Result<u64> {
    let spec = kind("bloom").with("capacity", 4_000_000);
    let folder = temporary();
    let store = open_store(folder.path())?;
    let (into, _) = store.create(b"into", Settings::of(spec.clone()))?;
    let (from, _) = store.create(b"from", Settings::of(spec))?;
    let absent = Draws(BEFORE).next();
    store.add(&from, &[absent], &mut [0])?;
    let mut draws = Draws(1);
    let records = thread::scope(|scope| -> Result<u64> {
        let mut round = arm(folder.path(), "merge.round", 0, Action::Pause);
        let merge = scope.spawn(|| store.merge(&into, &from));
        let mut before = 0;
        for (at, batch) in batches.iter().enumerate() {
            round.wait();
            let words: Vec<u64> = (0..*batch).map(|_| draws.next()).collect();
            before = store.add(&into, &words, &mut vec![0; *batch])?.0;
            let action = if at + 1 < batches.len() { Action::Pause } else { Action::Count };
            std::mem::replace(&mut round, arm(folder.path(), "merge.round", 0, action)).release();
        }
        let lsn = merge.join().unwrap_or_else(|_| unreachable!("no thread panics"))?;
        store.log().wait_blocking(lsn.0)?;
        // Behind the batches come the record of the merge, and those of the repeated batches.
        Ok(lsn.0 - before - 1)
    })?;
    let (mut again, mut found) = (Draws(1), [0]);
    for _ in 0..batches.iter().sum() {
        into.read().contains(&[again.next()], &mut found);
        assert_eq!(found, [1], "an acknowledged key is lost");
    }
    into.read().contains(&[absent], &mut found);
    assert_eq!(found, [1], "a merged key is lost");
    assert!(visible_state(&open_store(copy_folder(folder.path()).path())?) == visible_state(&store));
    Ok(records)
}

#[test]
fn a_merge_repeats_no_more_keys_than_two_journals_hold() -> Result<()> {
    assert_eq!(merge_beside(&[5_000; 2])?, 2);
    let batch = super::journal::MOST * 3 / 4;
    assert_eq!(merge_beside(&[batch; 2])?, 2);
    // Beyond the limit nothing is repeated: the filters were merged while changes waited.
    assert_eq!(merge_beside(&[batch; 3])?, 0);
    Ok(())
}

#[test]
fn a_merge_includes_other_changes_made_in_the_meantime() -> Result<()> {
    let spec = Spec { kind: "bloom".into(), seed: 5, ..Spec::default() }.with("capacity", 60_000);
    let folder = temporary();
    let store = open_store(folder.path())?;
    let (into, _) = store.create(b"into", Settings::of(spec.clone()))?;
    let (from, _) = store.create(b"from", Settings::of(spec.clone()))?;
    store.add(&into, &[1], &mut [0])?;
    store.add(&from, &[2], &mut [0])?;
    let paused = arm(folder.path(), "files.sync", 0, Action::Pause);
    thread::scope(|scope| {
        let merge = scope.spawn(|| store.merge(&into, &from));
        paused.wait();
        store.clear(&into)?;
        store.add(&into, &[3], &mut [0])?;
        paused.release();
        merge.join().unwrap_or_else(|_| unreachable!("no thread panics"))
    })?;
    let mut found = [0; 3];
    into.read().contains(&[1, 2, 3], &mut found);
    assert_eq!((found, into.read().num_added()), ([0, 1, 1], 2));
    Ok(())
}

/// The keys before those that are added during merges.
const BEFORE: u64 = 1 << 40;

#[test]
#[ignore = "the child of the test below: ended at a point"]
fn merging() -> Result<()> {
    let this = Child::this();
    let store = open_store(&this.folder)?;
    let spec = Spec { kind: "bloom".into(), seed: 5, ..Spec::default() }.with("capacity", 60_000);
    let (into, _) = store.create(b"into", Settings::of(spec.clone()))?;
    let (from, _) = store.create(b"from", Settings::of(spec))?;
    let mut key = 0;
    let add = || {
        key += 1;
        if store.add(&into, &[Draws(key).next()], &mut [0]).and_then(|lsn| store.log().wait_blocking(lsn.0)).is_ok() {
            this.report(&key.to_string());
        }
    };
    run_beside(add, || {
        for round in 0..12 {
            store.add(&from, &[Draws(BEFORE + round).next()], &mut [0])?;
            store.log().wait_blocking(store.merge(&into, &from)?.0)?;
            this.report(&(BEFORE + round).to_string());
            if round % 3 == 2 {
                store.checkpoint()?;
            }
        }
        Ok(())
    })
}

#[test]
fn a_kill_during_a_merge_keeps_the_keys_added_in_the_meantime() -> Result<()> {
    let points = [
        "file.created",
        "file.written",
        "files.sync",
        "files.synced",
        "change.applied",
        "log.append",
        "log.write",
        "log.written",
        "log.sync",
        "log.synced",
        "checkpoint.rotated",
        "checkpoint.written",
        "manifest.renamed",
        "checkpoint.removed",
    ];
    let (mut draws, mut kills, mut acknowledged) = (Draws(77), 0, 0);
    for _ in 0..rounds(1) {
        for point in points {
            let folder = temporary();
            let skip = match point {
                "manifest.renamed" | "checkpoint.rotated" | "checkpoint.written" => draws.below(3),
                _ => draws.below(11),
            };
            let (said, ended) = Child::start("store::slices_tests::merging", folder.path(), 0, point, skip);
            kills += u64::from(ended);
            let keys: Vec<u64> =
                said.iter().filter_map(|line| line.parse().ok()).map(|key| Draws(key).next()).collect();
            acknowledged += keys.len();
            for again in ["", ", again"] {
                let store =
                    open_store(folder.path()).unwrap_or_else(|fault| panic!("{point} after {skip}{again}: {fault}"));
                let mut found = vec![0; keys.len()];
                if let Ok(into) = store.get(b"into") {
                    into.read().contains(&keys, &mut found);
                }
                let lost = found.iter().filter(|found| **found == 0).count();
                assert_eq!(lost, 0, "{point} after {skip}{again}: of {} acknowledged", keys.len());
            }
        }
    }
    assert!(kills > 10 && acknowledged > 30, "{kills} kills, {acknowledged} keys");
    Ok(())
}
