//! A damaged folder is refused by name, or the store is intact: every file is removed, emptied, truncated and flipped
//! in turn. With `--salvage` the rest is recovered. Folders of older releases open.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fullbloom_core::key::KeyDomains;

use super::kill_tests::rounds;
use super::tests::{Draws, copy_folder, open_store, temporary, visible_state};
use super::*;
use crate::fault::{Code, Fault, Result};
use crate::fault_points::{Action, ENOSPC, arm};
use crate::kind::Spec;
use crate::log::segment::{self, Header};
use crate::log::{Durability, Record};

fn bloom(capacity: u64) -> Settings {
    Settings::of(Spec { kind: "bloom".into(), seed: 5, ..Spec::default() }.with("capacity", capacity))
}

fn add(store: &Store, name: &[u8], hashes: &[u64]) -> Result<()> {
    let entry = store.get(name)?;
    let lsn = store.add(&entry, hashes, &mut vec![0; hashes.len()])?;
    store.log().wait_blocking(lsn.0)
}

fn has(store: &Store, name: &[u8], hashes: &[u64]) -> usize {
    let mut found = vec![0; hashes.len()];
    store.get(name).map(|entry| entry.read().contains(hashes, &mut found)).unwrap_or_default();
    found.iter().filter(|&&one| one == 1).count()
}

fn reopen(folder: &Path, change: impl FnOnce(&mut Options)) -> Result<Store> {
    let mut options =
        Options { folder: Some(folder.to_owned()), durability: Durability::Always, plain: true, ..Options::default() };
    change(&mut options);
    Store::open(options)
}

/// A store with large, small and keyed filters, changes after a checkpoint, and `segments` segments of them.
fn fill_store(folder: &Path, segments: u64) -> Result<Store> {
    let store = open_store(folder)?;
    let mut draws = Draws(7);
    store.create(b"small", bloom(100))?;
    store.create(b"large", bloom(20_000))?;
    let mut keyed = bloom(100);
    keyed.spec.keyed = true;
    store.create(b"keyed", keyed.clone())?;
    add(&store, b"small", &[1, 2])?;
    if segments > 0 {
        store.checkpoint()?;
    }
    for segment in 0..segments.max(1) {
        for name in ["small", "large", "keyed"] {
            add(&store, name.as_bytes(), &[draws.next(), draws.next()])?;
        }
        keyed.spec.seed += 1;
        let (_, lsn) = store.create(format!("late{segment}").as_bytes(), keyed.clone())?;
        store.log().wait_blocking(lsn.0)?;
        if segment + 1 < segments {
            // A checkpoint that fails leaves another segment.
            let full = arm(folder, "manifest.create", 0, Action::Fail(ENOSPC));
            assert!(store.checkpoint().is_err());
            drop(full);
        }
    }
    Ok(store)
}

/// The files of a folder, by their paths in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for part in ["", "filters", "log"] {
        let entries = fs::read_dir(folder.join(part)).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path()).filter(|path| path.is_file());
        found.extend(paths.filter_map(|path| Some(path.strip_prefix(folder).ok()?.to_owned())));
    }
    found.sort();
    found
}

/// The bytes of a file after each fault; `None` if it is removed.
fn faults(bytes: &[u8], draws: &mut Draws) -> Vec<(String, Option<Vec<u8>>)> {
    let len = bytes.len() as u64;
    let mut all = vec![("removed".to_string(), None), ("emptied".to_string(), Some(Vec::new()))];
    for _ in 0..if len == 0 { 0 } else { 5 * rounds(1) } {
        let at = draws.below(len);
        all.push((format!("cut at {at}"), Some(bytes[..at as usize].to_vec())));
        let mut flipped = bytes.to_vec();
        flipped[at as usize] ^= 1 << draws.below(8);
        all.push((format!("flipped at {at}"), Some(flipped)));
    }
    all
}

#[test]
fn every_file_removed_emptied_truncated_or_flipped_is_refused_by_name_or_harmless() -> Result<()> {
    let mut draws = Draws(50);
    // Killed before the first checkpoint, after one, and with segments that no manifest knows; stopped.
    for (case, segments, stopped) in [("new", 0, false), ("killed", 1, false), ("full", 3, false), ("stopped", 1, true)]
    {
        let folder = temporary();
        let store = fill_store(folder.path(), segments)?;
        if stopped {
            store.checkpoint()?;
            store.log().close();
        }
        let expected = visible_state(&store);
        let original = copy_folder(folder.path());
        drop(store);
        for file in files(original.path()) {
            let bytes = fs::read(original.path().join(&file)).unwrap();
            for (fault, changed) in faults(&bytes, &mut draws) {
                let copy = copy_folder(original.path());
                let path = copy.path().join(&file);
                match changed {
                    None => fs::remove_file(&path),
                    Some(bytes) => fs::write(&path, bytes),
                }
                .unwrap();
                let what = format!("{case}: {} {fault}", file.display());
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                match open_store(copy.path()) {
                    Ok(store) => assert!(visible_state(&store) == expected, "{what}: it opens, and is not whole"),
                    Err(refusal) => {
                        assert!(refusal.text.contains(&*name), "{what}: {refusal}");
                        let skipped = reopen(copy.path(), |options| options.salvage = true);
                        let skipped = skipped.unwrap_or_else(|fault| panic!("{what}: --salvage: {fault}"));
                        assert!(!skipped.skipped.is_empty(), "{what}");
                        let (left, before) = (visible_state(&skipped), files(original.path()).len());
                        drop(skipped);
                        let again =
                            open_store(copy.path()).unwrap_or_else(|fault| panic!("{what}, afterwards: {fault}"));
                        assert!(visible_state(&again) == left, "{what}, afterwards");
                        // Whatever was skipped, no filter file vanished without a copy.
                        let kept = fs::read_dir(copy.path().join("damaged")).into_iter().flatten().count();
                        assert!(kept > 0 || fault == "removed" || before == 0, "{what}: nothing was kept");
                    }
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_lost_manifest_loses_no_filter_file() -> Result<()> {
    let folder = temporary();
    let store = fill_store(folder.path(), 1)?;
    store.checkpoint()?;
    drop(store);
    let before = fs::read_dir(folder.path().join("filters")).into_iter().flatten().count();
    fs::remove_file(folder.path().join("manifest")).unwrap();
    let refusal = open_store(folder.path()).err().unwrap();
    assert!(refusal.text.contains("manifest") && refusal.text.contains("--salvage"), "{refusal}");
    let store = reopen(folder.path(), |options| options.salvage = true)?;
    store.checkpoint()?;
    let kept = fs::read_dir(folder.path().join("damaged")).into_iter().flatten().flatten();
    let kept = kept.filter(|file| file.path().extension().is_some_and(|end| end == "bloom" || end == "bundle"));
    assert!(kept.count() == before && before > 1);
    Ok(())
}

#[test]
fn salvage_recovers_records_after_damage() -> Result<()> {
    let folder = temporary();
    let keys: Vec<u64> = (0..500).map(|key| Draws(key).next()).collect();
    let store = open_store(folder.path())?;
    store.create(b"a", bloom(100_000))?;
    keys.iter().try_for_each(|key| add(&store, b"a", &[*key]))?;
    drop(store);
    let (_, path) = segment::list(&folder.path().join("log"))?.pop().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert!(open_store(folder.path()).is_err());
    let store = reopen(folder.path(), |options| options.salvage = true)?;
    assert_eq!(has(&store, b"a", &keys), 499);
    assert_eq!(store.skipped.len(), 1);
    Ok(())
}

#[test]
fn folders_of_the_first_layout_open_and_accept_changes() -> Result<()> {
    for (name, all) in [("v1", 100), ("v1-without-manifest", 50)] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/folders").join(name);
        let folder = copy_folder(&source);
        let expected = {
            let store = open_store(folder.path())?;
            let words = |name: &str| {
                let mut words = Vec::new();
                let entry = store.get(name.as_bytes()).unwrap_or_else(|_| panic!("{name}"));
                (0..all).for_each(|key| entry.keying.push(format!("key-{key}").as_bytes(), &mut words));
                words
            };
            for (name, keys) in
                [("renamed", all), ("copy", all), ("keyed", all), ("grows", all), ("counted", all), ("large", 50)]
            {
                assert_eq!(has(&store, name.as_bytes(), &words(name)[..keys]), keys, "{name}");
            }
            let counted = store.get(b"counted")?;
            let mut counts = [0; 10];
            counted.read().count(&words("counted")[..10], &mut counts)?;
            assert!(counts.iter().all(|&count| count >= 2));
            assert_eq!(store.get(b"large")?.expires(), Some(4_102_444_800_000));
            assert!(store.get(b"gone").is_err() && store.get(b"plain").is_err());
            add(&store, b"renamed", &[1])?;
            visible_state(&store)
        };
        let store = open_store(folder.path())?;
        assert!(visible_state(&store) == expected);
        store.checkpoint()?;
        drop(store);
        assert!(visible_state(&open_store(folder.path())?) == expected);
    }
    Ok(())
}

#[test]
fn a_lower_limit_loses_no_acknowledged_change() -> Result<()> {
    let folder = temporary();
    let keys: Vec<u64> = (0..20_000).map(|key| Draws(key).next()).collect();
    let store = open_store(folder.path())?;
    store.create(b"g", Settings::of(Spec { kind: "scalable".into(), seed: 5, ..Spec::default() }))?;
    keys.chunks(500).try_for_each(|some| add(&store, b"g", some))?;
    drop(store);
    for checkpoint in [false, true] {
        let copy = copy_folder(folder.path());
        let store = reopen(copy.path(), |options| options.limits.filter_bytes = 4096)?;
        assert_eq!(has(&store, b"g", &keys), keys.len(), "after a checkpoint: {checkpoint}");
        // From here on the limit applies.
        let more: Vec<u64> = (0..100_000).map(|key| Draws(key ^ 77).next()).collect();
        let refusal = add(&store, b"g", &more).err().map(|fault| fault.code);
        assert!(matches!(refusal, Some(Code::Full | Code::Limit)), "{refusal:?}");
        // What was refused in part is refused again, under any limit.
        store.log().wait_blocking(store.log().next() - 1)?;
        let again = reopen(copy_folder(copy.path()).path(), |_| {})?;
        assert!(visible_state(&again) == visible_state(&store));
        open_store(folder.path())?.checkpoint()?;
    }
    Ok(())
}

#[test]
fn a_record_that_cannot_be_replayed_is_refused_by_name() -> Result<()> {
    let records: [Record<'_>; 3] = [
        Record::Add { id: 99, domains: KeyDomains::TEXT, hashes: &[1] },
        Record::Piece { id: 1, number: 1, bytes: b"piece" },
        Record::Create {
            id: 9,
            line: "x 1 any 0 - no-such-kind seed=1 keyed=false".into(),
            whole: None,
            expires: None,
        },
    ];
    for record in records {
        let folder = temporary();
        drop(fill_store(folder.path(), 1)?);
        let logs = folder.path().join("log");
        let (first, path) = segment::list(&logs)?.pop().unwrap();
        let header = segment::header_of(&path, first).unwrap();
        let mut bytes = Header::bytes(&header).to_vec();
        let mut block = vec![0; segment::BLOCK];
        record.write(&mut block);
        header.seal(&mut block, first, 0, 1);
        bytes.extend(block);
        fs::write(&path, bytes).unwrap();
        fs::remove_file(logs.join("synced")).unwrap();
        let refusal = open_store(folder.path()).err().unwrap_or_else(|| panic!("{record:?} is swallowed"));
        assert!(refusal.text.contains("--salvage") && refusal.text.contains(".log: record"), "{refusal}");
        let store = reopen(folder.path(), |options| options.salvage = true)?;
        assert_eq!((store.skipped.len(), store.len()), (1, 3), "{record:?}");
    }
    Ok(())
}

#[test]
fn with_everysec_writes_do_not_wait_for_a_sync() -> Result<()> {
    let folder = temporary();
    let store = reopen(folder.path(), |options| options.durability = Durability::EverySecond)?;
    store.create(b"a", bloom(1000))?;
    let paused = arm(folder.path(), "log.sync", 0, Action::Pause);
    add(&store, b"a", &[1])?;
    paused.wait();
    add(&store, b"a", &[2])?;
    // The sync does not end before this loop.
    let end = std::time::Instant::now() + Duration::from_secs(120);
    loop {
        let crashed = open_store(copy_folder(folder.path()).path())?;
        if has(&crashed, b"a", &[1, 2]) == 2 {
            break;
        }
        assert!(std::time::Instant::now() < end, "the log waits for the disk");
        std::thread::sleep(Duration::from_millis(10));
    }
    paused.release();
    Ok(())
}

#[test]
fn a_failed_sync_ends_acknowledgements_in_every_mode() -> Result<()> {
    const EIO: i32 = 5;
    for durability in [Durability::Always, Durability::EverySecond] {
        let folder = temporary();
        let store = reopen(folder.path(), |options| options.durability = durability)?;
        store.create(b"a", bloom(1000))?;
        let failing = arm(folder.path(), "log.sync", 0, Action::Fail(EIO));
        let first = add(&store, b"a", &[1]);
        failing.wait();
        drop(failing);
        assert!(durability == Durability::EverySecond || first.is_err());
        while store.log().trouble().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let refusal = add(&store, b"a", &[2]).err().unwrap_or_else(|| panic!("acknowledged"));
        assert!(refusal.code == Code::ReadOnly && refusal.text.contains("restarted"), "{refusal}");
        assert!(store.checkpoint().is_err());
    }
    Ok(())
}

#[test]
fn a_backup_needs_no_log_and_a_missing_file_is_noticed() -> Result<()> {
    let (folder, target) = (temporary(), temporary());
    let store = fill_store(folder.path(), 1)?;
    store.backup(target.path())?;
    let expected = visible_state(&store);
    for start in 0..3 {
        let copy = open_store(target.path())?;
        assert!(visible_state(&copy) == expected, "start {start}");
    }
    fs::remove_file(target.path().join("manifest")).unwrap();
    let refusal = open_store(target.path()).err().map(|fault: Fault| fault.text).unwrap_or_default();
    assert!(refusal.contains("manifest"), "{refusal}");
    Ok(())
}

#[test]
fn a_start_syncs_what_it_replays() -> Result<()> {
    let folder = temporary();
    drop(fill_store(folder.path(), 0)?);
    let failing = arm(folder.path(), "log.replayed", 0, Action::Fail(ENOSPC));
    assert!(open_store(folder.path()).is_err());
    drop(failing);
    open_store(folder.path()).map(drop)
}

#[test]
fn a_closed_log_accepts_no_change() -> Result<()> {
    for durability in [Durability::Always, Durability::EverySecond, Durability::Off] {
        let folder = temporary();
        let store = reopen(folder.path(), |options| options.durability = durability)?;
        let (entry, _) = store.create(b"a", bloom(1000))?;
        let paused = arm(folder.path(), "change.applied", 0, Action::Pause);
        let late = std::thread::scope(|scope| {
            let late = scope.spawn(|| store.add(&entry, &[1], &mut [0]));
            // It was admitted before the log was closed.
            paused.wait();
            store.log().close();
            paused.release();
            late.join().unwrap_or_else(|_| unreachable!("no thread panics"))
        });
        assert!(late.is_err_and(|fault| fault.code == Code::ReadOnly), "{durability:?}");
        let refusal = store.add(&entry, &[2], &mut [0]).err().unwrap_or_else(|| panic!("acknowledged"));
        assert!(refusal.code == Code::ReadOnly && refusal.text.contains("stopping"), "{refusal}");
        assert_eq!(has(&store, b"a", &[2]), 0);
    }
    Ok(())
}

#[test]
fn a_checkpoint_without_a_new_segment_says_why_and_is_tried_once() -> Result<()> {
    let folder = temporary();
    let store = fill_store(folder.path(), 0)?;
    let full = arm(folder.path(), "segment.create", 0, Action::Fail(ENOSPC));
    let refusal = store.checkpoint().err().unwrap_or_else(|| panic!("it has a segment"));
    assert!(refusal.text.contains("No space left"), "{refusal}");
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(full.count_reached(), 1);
    drop(full);
    store.checkpoint().map(drop)
}

#[test]
fn a_failed_sync_remains_the_reason_after_a_full_disk() -> Result<()> {
    const EIO: i32 = 5;
    let folder = temporary();
    let store = reopen(folder.path(), |options| options.durability = Durability::EverySecond)?;
    let (entry, _) = store.create(b"a", bloom(1000))?;
    let paused = arm(folder.path(), "change.applied", 0, Action::Pause);
    std::thread::scope(|scope| {
        let late = scope.spawn(|| store.add(&entry, &[1], &mut [0]));
        paused.wait();
        let failing = arm(folder.path(), "log.sync", 0, Action::Fail(EIO));
        // Refused if the sync of the first filter has failed already.
        let _ = store.create(b"b", bloom(1000));
        while store.log().trouble().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let full = arm(folder.path(), "log.write", 0, Action::Fail(ENOSPC));
        let written = store.log().nbytes();
        paused.release();
        full.wait();
        drop((full, failing));
        // The writing thread tries again.
        while store.log().nbytes() == written {
            std::thread::sleep(Duration::from_millis(1));
        }
        late.join().unwrap_or_else(|_| unreachable!("no thread panics")).map(drop)
    })?;
    assert!(store.log().trouble().is_some_and(|why| why.contains("restarted")));
    Ok(())
}
