//! Faults at any moment. A process that is killed at any fault point keeps what it acknowledged, and nothing else
//! except the change in progress: each point in turn, in a child process, compared with an in-memory store that made
//! the same changes.

use super::tests::{Draws, copy_folder, open_store, temporary, visible_state};
use super::*;
use crate::fault::Result;
use crate::fault_points::{Action, Child, ENOSPC, POINTS, arm};
use crate::kind::Spec;

/// The steps of one workload; in the middle the store is closed and opened again.
const STEPS: u64 = DRAWN + 4;
/// The steps that are drawn. The last steps merge large filters, which not every seed draws.
const DRAWN: u64 = 48;
/// A time after the end of the tests, in milliseconds since 1970: 2100.
const FAR: u64 = 4_102_444_800_000;

/// The visible state of a store.
type VisibleState = Vec<(String, Option<u64>, Vec<u8>)>;

/// Runs one step, which depends only on the steps before it; its change is acknowledged when this returns.
fn step(store: &Store, draws: &mut Draws, number: u64) -> Result<()> {
    if number >= DRAWN {
        let lsn = merge_large(store, number - DRAWN)?;
        return store.log().wait_blocking(lsn.0);
    }
    let name = format!("n{}", draws.below(4)).into_bytes();
    let other = format!("n{}", draws.below(4)).into_bytes();
    let (what, key) = (draws.below(15), draws.next());
    // A refused change (a full filter, kinds that do not merge) may be made in part, and is logged as well.
    let _ = match (what, store.get(&name)) {
        (0, Ok(_)) => store.drop_filter(&name),
        (1, Ok(_)) => {
            let expires = (key % 3 == 0).then_some(Some(FAR));
            let wanted = RenameOptions { to: &other, conflict: Conflict::Replace, versions: None, expires };
            store.rename_with(&name, &wanted).map(Some)
        }
        (2, Ok(entry)) => store.set_expiry(&entry, Some(FAR + key % 9)).map(Some),
        (3, Ok(entry)) => store.clear(&entry).map(Some),
        (4, Ok(entry)) => {
            let source = store.get(&other).unwrap_or_else(|_| entry.clone());
            store.merge(&entry, &source).map(Some)
        }
        (5, Ok(entry)) => {
            let copy = entry.read().duplicate()?;
            store.restore(&other, entry.settings.clone(), copy, true).map(|(_, lsn)| Some(lsn))
        }
        (6, _) => store.set_note(b"note", &key.to_le_bytes(), None, NoteExpiry::Never).map(|done| done.lsn),
        (7, Ok(entry)) if !entry.keying.is_pairs() => store.remove(&entry, &[key % 400], &mut [0]).map(Some),
        (7, Ok(entry)) if key % 3 == 0 => store.remove_owners(&entry, &[key % 7, key % 5], &mut [0; 2]).map(Some),
        (7, Ok(entry)) => store.clear_owners(&entry, &[key % 7, key % 5], &mut [0; 2]).map(Some),
        (_, Ok(entry)) if entry.keying.is_pairs() => {
            // Few owners, so that some of them grow.
            let pairs: Vec<[u64; 2]> = (0..1 + key % 20).map(|_| [draws.below(7), draws.next()]).collect();
            store.add(&entry, pairs.as_flattened(), &mut vec![0; pairs.len()]).map(Some)
        }
        (_, Ok(entry)) => {
            let hashes: Vec<u64> = (0..1 + key % 20).map(|_| draws.below(400)).collect();
            store.add(&entry, &hashes, &mut vec![0; hashes.len()]).map(Some)
        }
        (_, Err(_)) => {
            let kind = ["bloom", "counting", "cuckoo", "scalable", "bank"][(key % 5) as usize];
            // A large filter has its own file, others are in bundles. Owners of a bank have few keys.
            let capacity = if kind == "bank" {
                10
            } else if what == 14 {
                100_000
            } else {
                500
            };
            let named = if kind == "scalable" { "initial_capacity" } else { "capacity" };
            let spec = Spec { kind: kind.into(), seed: 5, ..Spec::default() }.with(named, capacity);
            store.create_with_expiry(&name, Settings::of(spec), (key % 5 == 0).then_some(FAR)).map(|(_, lsn)| Some(lsn))
        }
    };
    store.log().wait_blocking(store.log().next() - 1)?;
    if number % 12 == 7 {
        store.checkpoint()?;
    }
    Ok(())
}

/// Creates two large filters, adds to one and merges it into the other: one of these changes.
fn merge_large(store: &Store, change: u64) -> Result<Lsn> {
    let spec = Spec { kind: "bloom".into(), seed: 5, ..Spec::default() }.with("capacity", 100_000);
    match change {
        0 => store.create(b"into", Settings::of(spec)).map(|(_, lsn)| lsn),
        1 => store.create(b"from", Settings::of(spec)).map(|(_, lsn)| lsn),
        2 => store.add(store.get(b"from")?.as_ref(), &[1, 2], &mut [0; 2]),
        _ => store.merge(store.get(b"into")?.as_ref(), store.get(b"from")?.as_ref()),
    }
}

/// Runs all steps in a folder and calls `each` after each of them.
fn work(folder: &std::path::Path, seed: u64, mut each: impl FnMut(u64)) -> Result<()> {
    let mut draws = Draws(seed);
    for half in [0..STEPS / 2, STEPS / 2..STEPS] {
        let store = open_store(folder)?;
        for number in half {
            step(&store, &mut draws, number)?;
            each(number);
        }
    }
    Ok(())
}

/// The expected state after each step, and before the first one.
fn expect_states(seed: u64) -> Result<Vec<VisibleState>> {
    let store = Store::open(Options { plain: true, ..Options::default() })?;
    let (mut draws, mut states) = (Draws(seed), vec![visible_state(&store)]);
    for number in 0..STEPS {
        step(&store, &mut draws, number)?;
        states.push(visible_state(&store));
    }
    Ok(states)
}

/// The number of kills at each point: `FULLBLOOM_KILLS` if it is set.
pub(super) fn rounds(short: u64) -> u64 {
    std::env::var("FULLBLOOM_KILLS").ok().and_then(|text| text.parse().ok()).filter(|&n| n > 0).unwrap_or(short)
}

#[test]
#[ignore = "the child of the tests below: ended at a point"]
fn child() -> Result<()> {
    let this = Child::this();
    work(&this.folder, this.seed, |number| this.report(&number.to_string()))
}

#[test]
fn a_store_killed_at_any_point_has_what_it_acknowledged_and_no_more() -> Result<()> {
    let mut draws = Draws(40);
    for round in 0..rounds(1) {
        let seed = 100 + round;
        let states = expect_states(seed)?;
        let folder = temporary();
        let counted: Vec<_> = POINTS.iter().map(|point| arm(folder.path(), point, 0, Action::Count)).collect();
        work(folder.path(), seed, |_| ())?;
        let counts: Vec<u64> = counted.iter().map(|armed| armed.count_reached()).collect();
        drop(counted);
        for (point, count) in POINTS.iter().zip(counts) {
            assert!(count > 0, "no step of seed {seed} reaches {point}");
            let (folder, skip) = (temporary(), draws.below(count));
            let (reported, ended) = Child::start("store::kill_tests::child", folder.path(), seed, point, skip);
            let case = format!("{point} after {skip} times, seed {seed}, {} steps acknowledged", reported.len());
            assert!(ended, "{case}: it was not reached");
            for again in ["", ", again"] {
                let now =
                    visible_state(&open_store(folder.path()).unwrap_or_else(|fault| panic!("{case}{again}: {fault}")));
                let next = &states[(reported.len() + 1).min(STEPS as usize)];
                assert!(now == states[reported.len()] || now == *next, "{case}{again}");
            }
        }
    }
    Ok(())
}

/// The points at which a disk refuses a write.
const WRITES: &[&str] = &[
    "segment.create",
    "segment.created",
    "segment.written",
    "segment.synced",
    "log.write",
    "log.written",
    "file.create",
    "file.created",
    "file.written",
    "files.sync",
    "manifest.create",
    "manifest.created",
    "manifest.written",
    "manifest.synced",
];

#[test]
fn a_store_whose_disk_is_full_at_any_point_has_what_it_acknowledged() -> Result<()> {
    let spec = Spec { kind: "counting".into(), seed: 5, ..Spec::default() }.with("capacity", 10_000);
    let mut draws = Draws(41);
    for _ in 0..rounds(1) {
        for point in WRITES {
            let folder = temporary();
            let store = open_store(folder.path())?;
            let (entry, lsn) = store.create(b"a", Settings::of(spec.clone()))?;
            store.log().wait_blocking(lsn.0)?;
            let mut added = Vec::new();
            for phase in 0..3 {
                let full = (phase == 1).then(|| arm(folder.path(), point, draws.below(2), Action::Fail(ENOSPC)));
                for _ in 0..2 + draws.below(3) {
                    let key = draws.below(1000);
                    let done = store.add(&entry, &[key], &mut [0]).and_then(|lsn| store.log().wait_blocking(lsn.0));
                    added.extend(done.ok().map(|()| key));
                    for _ in 0..draws.below(3) {
                        // Refused, or it only records where the log begins: both are harmless.
                        let _ = store.checkpoint();
                    }
                }
                drop(full);
                // The disk has space again: the log tries every half second.
                while store.log().trouble().is_some() {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
            }
            let crashed =
                open_store(copy_folder(folder.path()).path()).unwrap_or_else(|fault| panic!("{point}: {fault}"));
            let entry = crashed.get(b"a")?;
            for key in &added {
                let (mut count, least) = ([0], added.iter().filter(|other| *other == key).count() as u64);
                entry.read().count(&[*key], &mut count)?;
                assert!(count[0] >= least, "{point}: {} of {least} acknowledged", count[0]);
            }
        }
    }
    Ok(())
}

#[test]
fn a_checkpoint_between_a_record_and_its_number_keeps_the_change() -> Result<()> {
    let folder = temporary();
    let store = open_store(folder.path())?;
    let spec = Spec { kind: "bloom".into(), seed: 5, ..Spec::default() }.with("capacity", 1000);
    let (entry, _) = store.create(b"a", Settings::of(spec))?;
    store.checkpoint()?;
    let paused = arm(folder.path(), "change.appended", 0, Action::Pause);
    std::thread::scope(|scope| {
        let added = scope.spawn(|| store.add(&entry, &[7], &mut [0]).and_then(|lsn| store.log().wait_blocking(lsn.0)));
        paused.wait();
        let checkpoint = scope.spawn(|| store.checkpoint());
        std::thread::sleep(std::time::Duration::from_millis(100));
        paused.release();
        let gone = |_| unreachable!("no thread panics");
        checkpoint.join().unwrap_or_else(gone)?;
        added.join().unwrap_or_else(|_| unreachable!())
    })?;
    let (crashed, mut found) = (open_store(copy_folder(folder.path()).path())?, [0]);
    crashed.get(b"a")?.read().contains(&[7], &mut found);
    assert_eq!(found, [1]);
    Ok(())
}
