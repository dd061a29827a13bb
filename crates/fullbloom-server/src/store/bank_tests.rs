//! Banks in the store: pairs and owners survive any end of the process, growth is counted, and files that lie are refused.

use super::tests::{Draws, copy_folder, open_store, run_beside, temporary, visible_state};
use super::*;
use crate::fault::{Code, Result};
use crate::fault_points::{Action, ENOSPC, arm};
use crate::kind::Spec;

fn bank(capacity: u64, options: &[(&str, &str)]) -> Settings {
    let mut spec = Spec { kind: "bank".into(), seed: 5, ..Spec::default() }.with("capacity", capacity);
    options.iter().for_each(|(name, text)| spec.add(name, text));
    Settings::of(spec)
}

/// Words of pairs of `owners` owners.
fn draw(draws: &mut Draws, owners: u64, pairs: usize) -> Vec<u64> {
    (0..pairs).flat_map(|_| [Draws(draws.below(owners)).next(), draws.next()]).collect()
}

fn add(store: &Store, entry: &Entry, words: &[u64]) -> Result<()> {
    let lsn = store.add(entry, words, &mut vec![0; words.len() / 2])?;
    store.log().wait_blocking(lsn.0)
}

fn count_found(entry: &Entry, words: &[u64]) -> usize {
    let mut found = vec![0; words.len() / 2];
    entry.read().contains(words, &mut found);
    found.iter().map(|&byte| usize::from(byte)).sum()
}

#[test]
fn pairs_and_changes_of_owners_recover_bit_for_bit() -> Result<()> {
    let folder = temporary();
    let mut draws = Draws(1);
    let expected = {
        let store = open_store(folder.path())?;
        let (entry, _) = store.create(b"bank", bank(20, &[]))?;
        for round in 0..12 {
            add(&store, &entry, &draw(&mut draws, 30, 200))?;
            let owners: Vec<u64> = (0..4).map(|_| Draws(draws.below(40)).next()).collect();
            let (mut cleared, mut removed) = ([0; 2], [0; 2]);
            store.clear_owners(&entry, &owners[..2], &mut cleared)?;
            let lsn = store.remove_owners(&entry, &owners[2..], &mut removed)?;
            store.log().wait_blocking(lsn.0)?;
            assert!(!entry.read().bank()?.has_owner(owners[3]));
            if round % 5 == 3 {
                store.checkpoint()?;
            }
            // As a kill at this moment would leave it.
            let crashed = copy_folder(folder.path());
            assert!(visible_state(&open_store(crashed.path())?) == visible_state(&store), "{round}");
        }
        visible_state(&store)
    };
    assert!(visible_state(&open_store(folder.path())?) == expected);
    Ok(())
}

#[test]
fn merges_and_copies_beside_added_pairs_recover_bit_for_bit() -> Result<()> {
    let folder = temporary();
    let store = open_store(folder.path())?;
    let (entry, _) = store.create(b"bank", bank(20, &[]))?;
    let (other, _) = store.create(b"other", bank(20, &[]))?;
    let mut draws = Draws(2);
    let mut pairs = draw(&mut draws, 3000, 9000);
    add(&store, &entry, &pairs)?;
    let theirs = draw(&mut draws, 3000, 5000);
    add(&store, &other, &theirs)?;
    assert!(entry.nbytes() > entry::SMALL);
    let mut beside = Vec::new();
    run_beside(
        || {
            let words = draw(&mut draws, 3000, 20);
            add(&store, &entry, &words).unwrap_or_else(|fault| panic!("{fault}"));
            beside.extend(words);
        },
        || {
            store.checkpoint()?;
            store.merge(&entry, &other)?;
            store.checkpoint().map(drop)
        },
    )?;
    pairs.extend(theirs);
    pairs.extend(beside);
    assert_eq!(count_found(&entry, &pairs), pairs.len() / 2);
    assert_eq!(store.nbytes(), entry.read().nbytes() + other.read().nbytes());
    store.log().wait_blocking(store.log().next() - 1)?;
    let expected = visible_state(&store);
    assert!(visible_state(&open_store(copy_folder(folder.path()).path())?) == expected);
    Ok(())
}

#[test]
fn owners_beyond_a_limit_are_refused_and_acknowledged_pairs_stay() -> Result<()> {
    let mut draws = Draws(3);
    let owners: Vec<u64> = (0..100).flat_map(|owner| [Draws(owner).next(), 7]).collect();
    let all = Limits { total_bytes: 20 << 10, ..Limits::default() };
    let one = Limits { filter_bytes: 20 << 10, ..Limits::default() };
    for (limits, options, code) in [
        (Limits::default(), &[("max_owners", "10")][..], Code::Full),
        (one, &[], Code::Limit),
        (all.clone(), &[], Code::Limit),
    ] {
        let folder = temporary();
        let options_of =
            || Options { folder: Some(folder.path().into()), limits: limits.clone(), ..Options::default() };
        let (expected, added) = {
            let store = Store::open(options_of())?;
            let (entry, _) = store.create(b"bank", bank(500, options))?;
            let mut added = Vec::new();
            let fault = owners.chunks(14).try_for_each(|words| {
                add(&store, &entry, words)?;
                added.extend_from_slice(words);
                Ok(())
            });
            assert!(fault.is_err_and(|fault: crate::fault::Fault| fault.code == code));
            // Owners that are there go on.
            let more: Vec<u64> = (0..50).flat_map(|_| [added[0], draws.next()]).collect();
            add(&store, &entry, &more)?;
            added.extend(more);
            assert!(added.len() >= 2 * 50 + 14 && count_found(&entry, &added) == added.len() / 2);
            assert_eq!(store.nbytes(), entry.read().nbytes());
            assert!(store.nbytes() <= limits.filter_bytes.min(limits.total_bytes));
            (visible_state(&store), added)
        };
        let store = Store::open(options_of())?;
        assert_eq!(count_found(&*store.get(b"bank")?, &added), added.len() / 2);
        // What is refused for all filters together may fit at the next start.
        assert!(limits.total_bytes == all.total_bytes || visible_state(&store) == expected);
    }
    Ok(())
}

#[test]
fn words_without_their_pair_and_strict_banks_are_refused_and_nothing_is_logged() -> Result<()> {
    let store = open_store(temporary().path())?;
    let strict = Settings { strict: true, ..bank(500, &[]) };
    assert!(store.create(b"strict", strict).is_err_and(|fault| fault.text.contains("max_fpr=fpr")));
    let (entry, _) = store.create(b"bank", bank(500, &[]))?;
    let (plain, _) =
        store.create(b"plain", Settings::of(Spec { kind: "bloom".into(), ..Spec::default() }.with("capacity", 9)))?;
    let next = store.log().next();
    for words in [&[1][..], &[1, 2, 3]] {
        assert!(store.add(&entry, words, &mut [0]).is_err());
    }
    for fault in [
        store.remove(&entry, &[1, 2], &mut [0]).err(),
        store.add_pairs(&entry, &[1, 2], &[3]).err(),
        store.advance(&entry, 1.0).err(),
        store.clear_owners(&plain, &[1], &mut [0]).err(),
        store.remove_owners(&plain, &[1], &mut [0]).err(),
        store.export_owner(&plain, 1).err(),
        store.owner_info(&plain, 1).err(),
        plain.owners(0, 10).err(),
    ] {
        assert!(fault.is_some_and(|fault| fault.code == Code::Unsupported));
    }
    assert_eq!(store.log().next(), next);
    Ok(())
}

#[test]
fn pages_of_owners_list_each_owner_once_in_order() -> Result<()> {
    let store = Store::open(Options { plain: true, ..Options::default() })?;
    let (entry, _) = store.create(b"bank", bank(10, &[]))?;
    let mut draws = Draws(4);
    add(&store, &entry, &draw(&mut draws, 500, 3000))?;
    let expected: Vec<(u64, u64)> = entry.read().bank()?.each_owner().collect();
    for most in [1, 7, 100, 499, 500, 501, 10_000] {
        let (mut start, mut all) = (0, Vec::new());
        loop {
            let page = entry.owners(start, most)?;
            assert!(page.owners.len() <= most && page.total == expected.len() as u64);
            all.extend(page.owners);
            let Some(next) = page.next else { break };
            start = next;
        }
        assert!(all == expected, "{most}");
    }
    Ok(())
}

#[test]
fn owners_that_come_and_go_between_pages_leave_the_others_in_their_order() -> Result<()> {
    let store = Store::open(Options { plain: true, ..Options::default() })?;
    let (entry, _) = store.create(b"bank", bank(10, &[]))?;
    let mut draws = Draws(6);
    add(&store, &entry, &draw(&mut draws, 500, 3000))?;
    let before: Vec<(u64, u64)> = entry.read().bank()?.each_owner().collect();
    let (mut start, mut all, mut removed) = (0, Vec::new(), Vec::new());
    loop {
        let page = entry.owners(start, 7)?;
        all.extend(page.owners);
        let Some(next) = page.next else { break };
        start = next;
        // The next owner itself goes, and others come: the table grows several times.
        store.remove_owners(&entry, &[next], &mut [0])?;
        removed.push(next);
        add(&store, &entry, &draw(&mut draws, 1 << 40, 50))?;
    }
    let known: Vec<_> = all.iter().filter(|owner| before.contains(owner)).copied().collect();
    let expected: Vec<_> = before.into_iter().filter(|(owner, _)| !removed.contains(owner)).collect();
    assert!(known == expected && removed.len() > 50);
    Ok(())
}

#[test]
fn an_exported_owner_has_the_answers_of_the_bank() -> Result<()> {
    let store = Store::open(Options { plain: true, ..Options::default() })?;
    let (entry, _) = store.create(b"bank", bank(50, &[]))?;
    let mut draws = Draws(5);
    for (owner, keys) in [(1, 30), (2, 400)] {
        let words: Vec<u64> = (0..keys).flat_map(|_| [owner, draws.next()]).collect();
        add(&store, &entry, &words)?;
        let held = store.budget().used();
        let Some((bytes, charged)) = store.export_owner(&entry, owner)? else { unreachable!() };
        drop(charged);
        assert_eq!(store.budget().used(), held);
        let (spec, alone) = store.read_filter(&bytes)?;
        let (alone, info) = (alone?, store.owner_info(&entry, owner)?.unwrap_or_else(|| unreachable!()));
        assert_eq!(spec.kind, if owner == 1 { "bloom" } else { "scalable" });
        assert_eq!((info.num_added, info.fpr), (alone.num_added(), alone.fpr()));
        for _ in 0..2000 {
            let (key, mut ours, mut theirs) = (draws.next(), [0], [0]);
            entry.read().contains(&[owner, key], &mut ours);
            alone.contains(&[key], &mut theirs);
            assert_eq!(ours, theirs);
        }
    }
    assert!(store.export_owner(&entry, 3)?.is_none() && store.owner_info(&entry, 3)?.is_none());
    Ok(())
}

#[test]
fn any_bytes_in_place_of_a_bank_are_refused_or_are_a_bank_that_works() -> Result<()> {
    let store = Store::open(Options { plain: true, ..Options::default() })?;
    let (entry, _) = store.create(b"bank", bank(5, &[]))?;
    let mut draws = Draws(6);
    add(&store, &entry, &draw(&mut draws, 20, 300))?;
    store.remove_owners(&entry, &[Draws(3).next()], &mut [0])?;
    let bytes = visible_state(&store).remove(0).2;
    for round in 0..4000 {
        let mut bytes = bytes.clone();
        match round % 4 {
            0 => bytes.truncate(draws.below(bytes.len() as u64) as usize),
            _ => (0..1 + draws.below(3)).for_each(|_| {
                let at = draws.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << draws.below(8);
            }),
        }
        let Ok((spec, Ok(filter))) = store.read_filter(&bytes) else { continue };
        let (again, _) = store.restore(b"again", Settings::of(spec), filter, true)?;
        let words = draw(&mut draws, 20, 50);
        if !again.keying.is_pairs() || store.add(&again, &words, &mut [0; 50]).is_ok() {
            assert!(!again.keying.is_pairs() || count_found(&again, &words) == 50);
        }
    }
    Ok(())
}

/// Two banks of `owners` owners each, no owner in both.
fn two_banks(store: &Store, owners: u64, options: &[(&str, &str)]) -> Result<(Arc<Entry>, Arc<Entry>)> {
    let [one, other] = [0, owners].map(|first| {
        let words: Vec<u64> = (first..first + owners).flat_map(|owner| [Draws(owner).next(), 7]).collect();
        let (entry, _) = store.create(first.to_string().as_bytes(), bank(20, options))?;
        add(store, &entry, &words).map(|()| entry)
    });
    Ok((one?, other?))
}

#[test]
fn a_merge_that_fails_leaves_no_bytes_counted() -> Result<()> {
    // Below and above the size from which a merge runs beside added keys.
    for owners in [30, 3000] {
        let folder = temporary();
        let store = open_store(folder.path())?;
        let (entry, other) = two_banks(&store, owners, &[("max_owners", &(owners + 9).to_string())])?;
        assert_eq!(entry.nbytes() > entry::SMALL, owners == 3000);
        let before = (store.nbytes(), entry.nbytes());
        for _ in 0..4 {
            assert!(store.merge(&entry, &other).is_err_and(|fault| fault.code == Code::Full));
            assert_eq!((store.nbytes(), entry.nbytes()), before, "{owners}");
        }
    }
    Ok(())
}

#[test]
fn a_merge_without_space_on_the_disk_leaves_no_bytes_counted() -> Result<()> {
    for owners in [30, 3000] {
        let folder = temporary();
        let store = open_store(folder.path())?;
        let (entry, other) = two_banks(&store, owners, &[])?;
        let before = (store.nbytes(), entry.nbytes());
        for point in ["file.create", "file.written"] {
            let full = arm(folder.path(), point, 0, Action::Fail(ENOSPC));
            assert!(store.merge(&entry, &other).is_err(), "{point}");
            assert_eq!((store.nbytes(), entry.nbytes()), before, "{owners} {point}");
            drop(full);
        }
        store.merge(&entry, &other)?;
        assert_eq!(store.nbytes(), entry.read().nbytes() + other.read().nbytes());
        assert!(entry.nbytes() > before.1);
    }
    Ok(())
}

#[test]
fn changes_of_a_dropped_filter_leave_no_bytes_counted() -> Result<()> {
    for owners in [30, 3000] {
        let folder = temporary();
        let store = open_store(folder.path())?;
        let (entry, other) = two_banks(&store, owners, &[])?;
        store.drop_entry(&entry)?;
        assert_eq!(store.nbytes(), other.nbytes());
        // A client that found it before.
        add(&store, &entry, &draw(&mut Draws(9), 1 << 40, 100))?;
        assert_eq!(store.nbytes(), other.nbytes(), "{owners}");
        store.merge(&entry, &other)?;
        assert_eq!(store.nbytes(), other.nbytes(), "{owners}");
        store.clear(&entry)?;
        drop(entry);
        assert_eq!(store.nbytes(), other.nbytes(), "{owners}");
    }
    Ok(())
}

#[test]
fn a_merged_filter_stays_within_the_limit_of_all_filters_after_a_restart() -> Result<()> {
    let folder = temporary();
    let nbytes = {
        let store = open_store(folder.path())?;
        let (entry, other) = two_banks(&store, 300, &[])?;
        store.merge(&entry, &other)?;
        store.nbytes()
    };
    let limits = Limits { total_bytes: nbytes + (10 << 10), ..Limits::default() };
    let store = Store::open(Options { folder: Some(folder.path().into()), limits, ..Options::default() })?;
    let (entry, mut draws) = (store.get(b"0")?, Draws(7));
    let fault = (0..1000).find_map(|_| add(&store, &entry, &draw(&mut draws, 1 << 40, 1)).err());
    assert!(fault.is_some_and(|fault| fault.code == Code::Limit));
    assert!(store.nbytes() > nbytes && store.nbytes() <= nbytes + (10 << 10));
    Ok(())
}
