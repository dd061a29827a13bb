use super::slot::UNMIX;
use super::*;
use crate::hash::splitmix::mix;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry::Vacant;

#[test]
fn entries_are_found_until_they_are_removed() {
    let (mut table, mut model) = (Directory::empty(), BTreeMap::new());
    let mut state = 7u64;
    for step in 0..20_000u32 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let owner = (state >> 33) % 3000;
        let owner = if owner.is_multiple_of(2) { owner } else { owner.wrapping_mul(0x9e37_79b9_7f4a_7c15) };
        if step % 3 == 2 {
            let at = table.find(owner);
            assert_eq!(at.is_some(), model.remove(&owner).is_some());
            at.into_iter().for_each(|at| table.remove_at(at).unwrap());
        } else if let Vacant(place) = model.entry(owner) {
            table.insert(Entry { owner, line: step, count: step ^ 5 }).unwrap();
            place.insert(step);
        }
        if step % 500 == 0 {
            assert!(table.check(true) && table.is_indexed());
        }
    }
    assert_eq!(table.len(), model.len() as u64);
    for owner in 0..3000u64 {
        let want = model.get(&owner).map(|&line| Entry { owner, line, count: line ^ 5 });
        assert_eq!(table.get(owner), want);
    }
    let mut owners: Vec<u64> = table.iter().map(|entry| entry.owner).collect();
    owners.sort_unstable();
    assert!(owners.iter().eq(model.keys()));
}

#[test]
fn entries_of_one_owner_stay_in_order() {
    let mut table = Directory::empty();
    for stage in 1..=5 {
        for owner in 0..500 {
            table.insert(Entry { owner, line: owner as u32 * 10 + stage, count: stage }).unwrap();
        }
    }
    assert!(table.check(false) && !table.check(true) && table.is_indexed());
    for owner in 0..500 {
        let lines: Vec<u32> = table.of(owner).map(|entry| entry.line).collect();
        assert!(lines.iter().copied().eq((1..=5).map(|stage| owner as u32 * 10 + stage)));
    }
}

#[test]
fn large_tables_are_at_least_eight_tenths_full() {
    let mut table = Directory::empty();
    for i in 0..40_000u64 {
        table.insert(Entry { owner: i.wrapping_mul(0x9e37_79b9_7f4a_7c15), line: 0, count: 0 }).unwrap();
        if i > 2000 {
            assert!(table.nbytes() <= 20 * (i + 1) + 1100, "{i} {}", table.nbytes());
        }
    }
}

#[test]
#[ignore = "long: make test-all runs it"]
fn millions_of_owners_fit_whose_runs_are_long() {
    let mut table = Directory::empty();
    let (mut longest, mut run, mut owners) = (0, 0, 0);
    // As full as it gets.
    while owners < 1_000_000 || table.has_room() {
        table.insert(Entry { owner: mix(owners), line: owners as u32, count: 0 }).unwrap();
        owners += 1;
    }
    for slot in table.slots() {
        run = if is_free(slot) { 0 } else { run + 1 };
        longest = longest.max(run);
    }
    assert!(longest > FAR && table.check(true));
    assert!((0..owners).all(|i| table.get(mix(i)).is_some_and(|entry| entry.line == i as u32)));
}

#[test]
fn an_insertion_that_would_move_a_run_of_any_length_is_refused() {
    let homes = 100_000;
    let memory = Memory::allocate_unsupplied(Directory::words(homes).unwrap()).unwrap();
    let mut table = Directory::from_memory(Some(memory), homes, 0);
    // Each entry is at its home, so that no search is far.
    let owner = |home: u64| (u64::MAX / homes * home + (1 << 30)).wrapping_mul(UNMIX);
    for home in 1..=MOST_MOVED as u64 {
        table.insert(Entry { owner: owner(home), line: 0, count: 0 }).unwrap();
    }
    table.insert(Entry { owner: owner(2).wrapping_sub(UNMIX), line: 0, count: 0 }).unwrap();
    let refused = table.insert(Entry { owner: owner(1).wrapping_sub(UNMIX), line: 0, count: 0 });
    assert!(matches!(refused, Err(Error::Capacity(message)) if message.contains("secret")));
    assert!(table.check(true) && table.len() == MOST_MOVED as u64 + 1);
}

#[test]
fn colliding_hashes_are_refused_before_they_cost_time() {
    let mut table = Directory::empty();
    let refused =
        (0..200_000u64).find_map(|i| table.insert(Entry { owner: i.wrapping_mul(UNMIX), line: 0, count: 0 }).err());
    assert!(matches!(refused, Some(Error::Capacity(message)) if message.contains("secret")));
}
