//! Acknowledged changes survive any end of the process: every kind, random histories, checkpoints in between.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::cells::Account;
use super::*;
use crate::fault::{Code, Result};
use crate::kind::Spec;
use crate::log::Durability;
use fullbloom_core::registry::VARIANTS;

/// A generator with the same sequence in every run of the tests.
pub(super) struct Draws(pub(super) u64);

impl Draws {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

pub(super) fn open_store(folder: &Path) -> Result<Store> {
    Store::open(Options {
        folder: Some(folder.to_owned()),
        durability: Durability::Always,
        plain: true,
        ..Options::default()
    })
}

pub(super) fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().unwrap_or_else(|error| unreachable!("no temporary folder: {error}"))
}

/// Runs `work` while another thread repeats `beside`.
pub(super) fn run_beside<T>(mut beside: impl FnMut() + Send, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                beside();
            }
        });
        let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        done.store(true, Ordering::Release);
        worked.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A copy of a folder as a crash would leave it: files in the worst order, the log last.
pub(super) fn copy_folder(from: &Path) -> tempfile::TempDir {
    let copy = temporary();
    let io = |done: std::io::Result<()>| done.unwrap_or_else(|error| unreachable!("{error}"));
    for part in ["", "filters", "log"] {
        io(fs::create_dir_all(copy.path().join(part)));
        for entry in fs::read_dir(from.join(part)).into_iter().flatten().flatten() {
            if entry.path().is_file() {
                io(fs::copy(entry.path(), copy.path().join(part).join(entry.file_name())).map(drop));
            }
        }
    }
    copy
}

/// The visible state of a store.
pub(super) fn visible_state(store: &Store) -> Vec<(String, Option<u64>, Vec<u8>)> {
    let mut all: Vec<_> = store
        .entries()
        .iter()
        .map(|entry| {
            let filter = entry.read();
            let mut bytes = Vec::new();
            let container = filter.container();
            let head = container.head().unwrap_or_default();
            let _ = container.write_with(&head, &mut bytes);
            (entry.name(), entry.expires(), bytes)
        })
        .collect();
    all.sort();
    all
}

/// A spec of each kind that can be created empty; kinds that store numbers also accept hashes.
fn specs() -> Vec<Spec> {
    let keyed = VARIANTS.iter().filter(|row| row.is_open(&["key"]));
    keyed
        .map(|row| {
            let capacity = if row.role == "growing" { "initial_capacity" } else { "capacity" };
            Spec { kind: row.name.into(), seed: 5, ..Spec::default() }.with(capacity, 500)
        })
        .collect()
}

#[test]
fn every_kind_recovers_bit_for_bit() -> Result<()> {
    let folder = temporary();
    let before = {
        let store = open_store(folder.path())?;
        let mut draws = Draws(1);
        for row in VARIANTS.iter().filter(|row| row.is_open(&["key", "value"])) {
            let spec = Spec { kind: row.name.into(), ..Spec::default() }.with("capacity", 500);
            let (entry, _) = store.create(row.name.as_bytes(), Settings::of(spec))?;
            store.add_pairs(&entry, &[draws.next(), draws.next()], &[1, 2])?;
        }
        let window = Spec { kind: "rolling".into(), ..Spec::default() }.with("capacity", 500).with("window", 60);
        let (entry, _) = store.create(b"window", Settings::of(window))?;
        for now in [0.0, 25.0, 70.0] {
            store.advance(&entry, now)?;
            store.add(&entry, &[draws.next()], &mut [0])?;
        }
        for (i, spec) in specs().into_iter().enumerate() {
            let (entry, _) = store.create(format!("f{i}").as_bytes(), Settings::of(spec))?;
            for round in 0..3 {
                let hashes: Vec<u64> = (0..100).map(|_| draws.next()).collect();
                store.add(&entry, &hashes, &mut [0; 100])?;
                if round == 0 && i % 2 == 0 {
                    store.checkpoint()?;
                }
                match store.remove(&entry, &hashes[..10], &mut [0; 10]) {
                    Err(fault) if fault.code != Code::Unsupported => return Err(fault),
                    _ => {}
                }
            }
        }
        visible_state(&store)
    };
    let after = visible_state(&open_store(folder.path())?);
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(&after) {
        assert!(before == after, "{}", before.0);
    }
    Ok(())
}

#[test]
fn any_history_recovers_from_a_crash_at_any_time() -> Result<()> {
    let folder = temporary();
    let store = open_store(folder.path())?;
    let mut draws = Draws(2);
    let kinds: Vec<Spec> =
        specs().into_iter().filter(|spec| ["bloom", "counting", "cuckoo", "scalable"].contains(&&*spec.kind)).collect();
    for step in 0..600 {
        let name = format!("n{}", draws.below(6)).into_bytes();
        let other = format!("n{}", draws.below(6)).into_bytes();
        let last = match (draws.below(14), store.get(&name)) {
            (0, Ok(_)) => store.drop_filter(&name)?,
            (1, Ok(_)) => store.rename(&name, &other).map(Some)?,
            (2, Ok(entry)) => Some(store.set_expiry(&entry, Some(now() + 1_000_000 + draws.below(9)))?),
            (3, Ok(entry)) => Some(store.clear(&entry)?),
            (4, Ok(entry)) => match store.get(&other) {
                Ok(other) if other.id != entry.id => store.merge(&entry, &other).ok(),
                _ => None,
            },
            (5, Ok(entry)) => {
                let copy = entry.read().duplicate()?;
                Some(store.restore(&other, entry.settings.clone(), copy, true)?.1)
            }
            (6, _) => {
                store.checkpoint()?;
                None
            }
            (7 | 8, Ok(entry)) => {
                let hashes: Vec<u64> = (0..draws.below(20)).map(|_| draws.below(400)).collect();
                store.remove(&entry, &hashes, &mut vec![0; hashes.len()]).ok()
            }
            (_, Ok(entry)) => {
                let hashes: Vec<u64> = (0..draws.below(50)).map(|_| draws.below(400)).collect();
                store.add(&entry, &hashes, &mut vec![0; hashes.len()]).ok()
            }
            (_, Err(_)) => {
                let spec = kinds[draws.below(kinds.len() as u64) as usize].clone();
                Some(store.create(&name, Settings::of(spec))?.1)
            }
        };
        last.map_or(Ok(()), |Lsn(number)| store.log().wait_blocking(number))?;
        if step % 23 == 0 {
            // A change that failed in part is logged, too, but no client waited for it.
            store.log().wait_blocking(store.log().next() - 1)?;
            let crashed = copy_folder(folder.path());
            let (ours, theirs) = (visible_state(&store), visible_state(&open_store(crashed.path())?));
            assert_eq!(
                ours.iter().map(|f| &f.0).collect::<Vec<_>>(),
                theirs.iter().map(|f| &f.0).collect::<Vec<_>>(),
                "step {step}"
            );
            assert!(ours == theirs, "step {step}");
            // And again from what recovery left.
            assert!(visible_state(&open_store(crashed.path())?) == ours, "step {step}, again");
        }
    }
    Ok(())
}

#[test]
fn a_log_truncated_at_any_byte_recovers_a_prefix_of_the_history() -> Result<()> {
    let folder = temporary();
    let mut states = vec![];
    {
        let store = open_store(folder.path())?;
        let (entry, lsn) = store
            .create(b"a", Settings::of(Spec { kind: "counting".into(), ..Spec::default() }.with("capacity", 100)))?;
        store.log().wait_blocking(lsn.0)?;
        for key in 0..8 {
            states.push(visible_state(&store));
            let lsn = store.add(&entry, &[key, key + 1], &mut [0; 2])?;
            store.log().wait_blocking(lsn.0)?;
        }
        states.push(visible_state(&store));
    }
    let copy = copy_folder(folder.path());
    let log = copy.path().join("log");
    let (_, path) = crate::log::segment::list(&log)?.pop().unwrap_or_default();
    let bytes = fs::read(&path).unwrap_or_default();
    // If everything is known to have been synced, a missing end is not the result of a crash.
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap_or_default();
    let refusal = open_store(copy.path()).err().unwrap_or_else(|| unreachable!());
    assert!(refusal.text.contains(".log: damaged at byte"), "{refusal}");
    let mut reached = 0;
    for cut in crate::log::segment::HEADER..=bytes.len() {
        fs::remove_dir_all(&log)
            .and_then(|()| fs::create_dir(&log))
            .and_then(|()| fs::write(&path, &bytes[..cut]))
            .unwrap_or_default();
        let now = visible_state(&open_store(copy.path())?);
        assert!(visible_state(&open_store(copy.path())?) == now, "cut {cut}, again");
        let at = if now.is_empty() {
            0
        } else {
            1 + states.iter().position(|state| *state == now).unwrap_or(usize::MAX - 1)
        };
        assert!(at >= reached && at <= states.len(), "cut {cut}: {at} after {reached}");
        reached = at;
    }
    assert_eq!(reached, states.len());
    Ok(())
}

/// Two filters of this capacity, with the last byte of one file changed.
fn create_damaged(capacity: u64, suffix: &str) -> Result<(tempfile::TempDir, std::path::PathBuf)> {
    let folder = temporary();
    let store = open_store(folder.path())?;
    for name in ["a", "b"] {
        let spec = Spec { kind: "bloom".into(), ..Spec::default() }.with("capacity", capacity);
        store.create(name.as_bytes(), Settings::of(spec))?;
    }
    store.checkpoint()?;
    drop(store);
    let files = fs::read_dir(folder.path().join("filters")).into_iter().flatten().flatten().map(|e| e.path());
    let path = files.filter(|path| path.to_string_lossy().ends_with(suffix)).min().unwrap_or_default();
    let mut bytes = fs::read(&path).unwrap_or_default();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&path, bytes).unwrap_or_default();
    Ok((folder, path))
}

#[test]
fn damage_is_refused_by_name_or_skipped_by_salvage() -> Result<()> {
    for (capacity, suffix) in [(100_000, ".bloom"), (100, ".bundle")] {
        let (folder, path) = create_damaged(capacity, suffix)?;
        let fault = open_store(folder.path()).err().unwrap_or_else(|| unreachable!());
        assert!(fault.text.contains("--salvage") && fault.text.contains(suffix), "{fault}");
        let salvage = Options { salvage: true, folder: Some(folder.path().to_owned()), ..Options::default() };
        let store = Store::open(salvage)?;
        assert_eq!((store.len(), store.skipped.len()), (1, 1));
        drop(store);
        assert_eq!(open_store(folder.path())?.len(), 1);
        assert!(folder.path().join("damaged").join(path.file_name().unwrap_or_default()).is_file());
    }
    Ok(())
}

#[test]
fn a_damaged_file_that_the_log_names_is_skipped_by_salvage() -> Result<()> {
    let folder = temporary();
    {
        let store = open_store(folder.path())?;
        for name in ["a", "b"] {
            let spec = Spec { kind: "bloom".into(), seed: 5, ..Spec::default() }.with("capacity", 100);
            store.create(name.as_bytes(), Settings::of(spec))?;
        }
        store.merge(store.get(b"a")?.as_ref(), store.get(b"b")?.as_ref())?;
    }
    let files = fs::read_dir(folder.path().join("filters")).into_iter().flatten().flatten();
    files.for_each(|file| fs::write(file.path(), b"no filter").unwrap_or_default());
    let fault = open_store(folder.path()).err().unwrap_or_else(|| unreachable!());
    assert!(fault.text.contains(".bloom") && fault.text.contains("--salvage"), "{fault}");
    let salvage = Options { salvage: true, folder: Some(folder.path().to_owned()), ..Options::default() };
    assert_eq!(Store::open(salvage)?.entries().iter().map(|entry| entry.name()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(open_store(folder.path())?.len(), 1);
    Ok(())
}

#[test]
fn small_filters_share_few_files_however_often_they_change() -> Result<()> {
    let folder = temporary();
    let store = open_store(folder.path())?;
    let mut draws = Draws(4);
    let entries = (0..40).map(|number| {
        let spec = Spec { kind: "bloom".into(), ..Spec::default() }.with("capacity", 100);
        Ok(store.create(format!("f{number}").as_bytes(), Settings::of(spec))?.0)
    });
    let entries = entries.collect::<Result<Vec<_>>>()?;
    for entry in &entries {
        store.add(entry, &[draws.next()], &mut [0])?;
        store.checkpoint()?;
        assert!(fs::read_dir(folder.path().join("filters")).into_iter().flatten().count() <= 18);
    }
    let before = visible_state(&store);
    drop((entries, store));
    assert!(visible_state(&open_store(folder.path())?) == before);
    Ok(())
}

#[test]
fn a_merge_during_a_checkpoint_survives_a_crash() -> Result<()> {
    let folder = temporary();
    let store = open_store(folder.path())?;
    let mut draws = Draws(6);
    let spec = Spec { kind: "bloom".into(), seed: 5, ..Spec::default() }.with("capacity", 1000);
    let (entry, _) = store.create(b"a", Settings::of(spec.clone()))?;
    let (other, _) = store.create(b"o", Settings::of(spec))?;
    let large = Spec { kind: "bloom".into(), ..Spec::default() }.with("capacity", 1_000_000);
    let others = ["b", "c", "d", "e"].map(|name| store.create(name.as_bytes(), Settings::of(large.clone())));
    for round in 0..20 {
        // All changed, so that the checkpoint writes them, this one before or after the others.
        store.add(&entry, &[draws.next()], &mut [0])?;
        for other in others.iter().flatten() {
            store.add(&other.0, &[draws.next()], &mut [0])?;
        }
        store.add(&other, &[draws.next()], &mut [0])?;
        let pause = std::time::Duration::from_micros(draws.below(10_000));
        let merged = std::thread::scope(|scope| {
            let checkpoint = scope.spawn(|| store.checkpoint());
            std::thread::sleep(pause);
            let merged = store.merge(&entry, &other);
            checkpoint.join().unwrap_or_else(|_| unreachable!()).and(merged)
        });
        store.log().wait_blocking(merged?.0)?;
        let crashed = copy_folder(folder.path());
        assert!(visible_state(&open_store(crashed.path())?) == visible_state(&store), "round {round}");
    }
    Ok(())
}

#[test]
fn file_numbers_continue_after_a_restart() -> Result<()> {
    let folder = temporary();
    let spec = Spec { kind: "bloom".into(), seed: 5, ..Spec::default() }.with("capacity", 1000);
    for start in 0..3 {
        let store = open_store(folder.path())?;
        if start == 0 {
            store.create(b"a", Settings::of(spec.clone()))?;
            let (other, _) = store.create(b"o", Settings::of(spec.clone()))?;
            store.add(&other, &[1], &mut [0])?;
        }
        // No checkpoint has recorded the files that merges write in the manifest.
        store.merge(store.get(b"a")?.as_ref(), store.get(b"o")?.as_ref())?;
        store.log().wait_blocking(store.log().next() - 1)?;
    }
    Ok(())
}

#[test]
fn limits_are_checked_before_allocation() -> Result<()> {
    let limits = Limits { filter_bytes: 1 << 20, total_bytes: 3 << 20, filters: 3, ..Limits::default() };
    let store = Store::open(Options { limits, ..Options::default() })?;
    let bloom =
        |capacity: u64| Settings::of(Spec { kind: "bloom".into(), ..Spec::default() }.with("capacity", capacity));
    for capacity in [1 << 40, 1 << 62, u64::MAX, 10_000_000] {
        let fault = store.create(b"big", bloom(capacity)).err().unwrap_or_else(|| unreachable!("{capacity}"));
        assert!(matches!(fault.code, Code::Limit | Code::Invalid), "{capacity}: {fault}");
    }
    for name in [b"a", b"b", b"c"] {
        store.create(name, bloom(700_000))?;
    }
    assert_eq!(store.create(b"d", bloom(10)).err().map(|fault| fault.code), Some(Code::Limit));
    store.drop_filter(b"a")?;
    store.create(b"d", bloom(10))?;
    assert_eq!(store.create(b"d", bloom(10)).err().map(|fault| fault.code), Some(Code::Exists));
    for name in ["", "a b", "../x", "a/b", "\u{e4}", &"x".repeat(129)] {
        assert_eq!(
            store.create(name.as_bytes(), bloom(10)).err().map(|fault| fault.code),
            Some(Code::Invalid),
            "{name}"
        );
    }
    Ok(())
}

#[test]
fn a_growing_filter_stays_within_the_cap() -> Result<()> {
    let limits = Limits { filter_bytes: 1 << 16, ..Limits::default() };
    let store = Store::open(Options { limits, ..Options::default() })?;
    let (entry, _) = store.create(b"g", Settings::of(Spec { kind: "scalable".into(), ..Spec::default() }))?;
    let mut draws = Draws(3);
    let fault = (0..1000).find_map(|_| {
        let hashes: Vec<u64> = (0..1000).map(|_| draws.next()).collect();
        store.add(&entry, &hashes, &mut vec![0; 1000]).err()
    });
    assert!(matches!(fault.map(|fault| fault.code), Some(Code::Limit | Code::Full)));
    assert!(store.nbytes() <= 1 << 16);
    Ok(())
}

#[test]
fn a_filter_dropped_while_its_replacement_is_checked_does_not_count() -> Result<()> {
    let store = Store::open(Options::default())?;
    let spec = Spec { kind: "bloom".into(), ..Spec::default() }.with("capacity", 10);
    let (entry, _) = store.create(b"a", Settings::of(spec))?;
    store.drop_filter(b"a")?;
    store.check_limits(1, Some(&entry))
}

#[test]
fn reserved_bytes_become_those_of_a_filter_in_one_step() {
    let cells = Cells::default();
    cells.bound(10);
    let account = Account::new(10);
    let room = cells.reserve(10).unwrap_or_else(|| unreachable!("10 of 10 bytes are free"));
    room.pass_to(&account);
    account.join(&cells);
    assert!(cells.nbytes() == 10 && cells.reserve(1).is_none());
    drop(account);
    assert_eq!(cells.nbytes(), 0);
}

#[test]
fn no_checkpoint_is_due_after_one_that_counted_more_bytes() -> Result<()> {
    let folder = temporary();
    let store = open_store(folder.path())?;
    // The bytes were read before a checkpoint, and what it counted afterwards.
    store.checkpoint_bytes_logged.store(store.log().nbytes() + 1, Ordering::Relaxed);
    assert!(!store.is_due());
    Ok(())
}
