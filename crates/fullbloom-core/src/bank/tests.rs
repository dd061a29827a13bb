//! A bank against one filter per owner, against itself key by key, and against forged files.

use std::collections::{HashMap, HashSet};

use super::directory::UNMIX;
use super::*;
use crate::chain::ScalableBloomFilter;
use crate::container::header::Header;
use crate::container::{Container, Section, Verify};
use crate::hash::splitmix::mix;
use crate::key::{Domain, KeyDomains};
use crate::structure::Filter;
use crate::structure::opening::OpenOptions;

/// Random numbers from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn below(&mut self, bound: u64) -> u64 {
        fastrange(self.next(), bound)
    }
}

fn plan(capacity: u64, fpr: f64) -> Plan {
    Plan { capacity, fpr, max_fpr: 2.0 * fpr, growth: 2.0, max_owners: 0 }
}

fn bank(capacity: u64, fpr: f64) -> FilterBank {
    FilterBank::new(plan(capacity, fpr), KeyHasher::seeded(0)).unwrap()
}

/// Pairs of `owners` owners, of which a few have most keys.
fn pairs(random: &mut Random, count: usize, owners: u64) -> (Vec<u64>, Vec<u64>) {
    let owner = |random: &mut Random| {
        let most = random.below(owners) + 1;
        mix(random.below(most))
    };
    let owners = (0..count).map(|_| owner(random)).collect();
    (owners, (0..count).map(|_| mix(random.below(50_000))).collect())
}

fn file(bank: &FilterBank) -> Vec<u8> {
    write(&bank.container())
}

fn write(container: &Container<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    container.write_with(&container.head().unwrap(), &mut bytes).unwrap();
    bytes
}

fn options() -> OpenOptions {
    OpenOptions { verify: Verify::Full, secret: None, max_bytes: 1 << 24 }
}

#[test]
fn a_batch_leaves_the_bytes_of_one_call_a_pair() {
    let mut random = Random(1);
    for (capacity, growth, owners) in [(20, 2.0, 300), (200, 1.0, 50), (300, 3.0, 2), (1, 2.0, 2000)] {
        let plan = Plan { growth, ..plan(capacity, 0.03) };
        let [mut one, mut many] = [0, 1].map(|_| FilterBank::new(plan, KeyHasher::seeded(0)).unwrap());
        for round in 0..6 {
            let (owners, keys) = pairs(&mut random, 3500 + round, owners);
            let single: Vec<bool> =
                owners.iter().zip(&keys).map(|(&owner, &key)| one.add(owner, key).unwrap()).collect();
            let mut new = vec![7; keys.len()];
            many.add_pairs(&owners, &keys, Some(&mut new)).unwrap();
            assert!(new.iter().map(|&new| new == 1).eq(single));
            assert_eq!(file(&one), file(&many));
            many.check_cells().unwrap();
            let asked: Vec<u64> = keys.iter().map(|&key| if key % 2 == 0 { key } else { mix(key) }).collect();
            let mut found = vec![7; keys.len()];
            many.contains_pairs(&owners, &asked, &mut found);
            let single = owners.iter().zip(&asked).map(|(&owner, &key)| u8::from(one.contains(owner, key)));
            assert!(found.iter().copied().eq(single));
        }
        assert!(many.num_later() > 0);
    }
}

#[test]
#[ignore = "long: make test-all runs it"]
fn removal_and_clearing_leave_the_answers_of_other_owners() {
    let mut random = Random(2);
    let (mut bank, mut model) = (bank(30, 0.02), HashMap::<u64, HashSet<u64>>::new());
    for round in 0..40 {
        let (owners, keys) = pairs(&mut random, 800, 60);
        bank.add_pairs(&owners, &keys, None).unwrap();
        for (&owner, &key) in owners.iter().zip(&keys) {
            model.entry(owner).or_default().insert(key);
        }
        let asked: Vec<u64> = (0..300).map(|_| random.next()).collect();
        let answers =
            |bank: &FilterBank, owner| -> Vec<bool> { asked.iter().map(|&key| bank.contains(owner, key)).collect() };
        let victim = owners[round];
        let before: Vec<_> = model.keys().map(|&owner| (owner, answers(&bank, owner), bank.num_keys(owner))).collect();
        if round % 2 == 0 {
            assert!(bank.remove_owner(victim).unwrap() && !bank.remove_owner(victim).unwrap());
            assert!(!bank.has_owner(victim) && bank.num_keys(victim).is_none());
        } else {
            assert!(bank.clear_owner(victim).unwrap() && bank.num_keys(victim) == Some(0));
        }
        model.remove(&victim);
        assert!(answers(&bank, victim).iter().all(|&found| !found));
        for (owner, answers_before, keys) in before.into_iter().filter(|(owner, ..)| *owner != victim) {
            assert_eq!((answers(&bank, owner), bank.num_keys(owner)), (answers_before, keys));
            assert!(model[&owner].iter().all(|&key| bank.contains(owner, key)));
        }
        bank.check_cells().unwrap();
        assert_eq!(bank.num_added(), bank.each_owner().map(|(_, keys)| keys).sum());
    }
}

#[test]
fn lines_of_removed_owners_are_used_again() {
    let mut bank = bank(100, 0.01);
    (0..50).for_each(|owner| assert!(bank.add(mix(owner), 1).unwrap()));
    let bytes = bank.line_bytes();
    (0..50).for_each(|owner| assert!(bank.remove_owner(mix(owner)).unwrap()));
    (50..100).for_each(|owner| assert!(bank.add(mix(owner), 1).unwrap()));
    assert_eq!((bank.line_bytes(), bank.len()), (bytes, 50));
    assert!((50..100).all(|owner| !bank.contains(mix(owner), 2)));
    bank.check_cells().unwrap();
}

/// The share of absent keys that are found, at `keys` new keys of each of `owners` owners, less five standard errors of
/// the trials; owners differ in their cells, which the errors include.
fn least_rate(bank: &mut FilterBank, random: &mut Random, owners: u64, keys: u64) -> f64 {
    let mut rates = Vec::new();
    for owner in 0..owners {
        let owner = mix(owner ^ 77);
        while bank.num_keys(owner).unwrap_or(0) < keys {
            bank.add(owner, random.next()).unwrap();
        }
        let asked: Vec<u64> = (0..4000).map(|_| random.next()).collect();
        let (owners, mut found) = (vec![owner; asked.len()], vec![0; asked.len()]);
        bank.contains_pairs(&owners, &asked, &mut found);
        rates.push(found.iter().map(|&found| f64::from(found)).sum::<f64>() / asked.len() as f64);
    }
    let count = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (count - 1.0);
    mean - 5.0 * (variance / count).sqrt()
}

#[test]
#[ignore = "long: make test-all runs it"]
fn full_owners_keep_their_rate_and_grown_ones_the_bound() {
    let mut random = Random(3);
    for _ in 0..12 {
        let (capacity, fpr) = (1 + random.below(700), 10f64.powf(-0.3 - 2.2 * random.below(1000) as f64 / 1000.0));
        let max_fpr = fpr + (0.9 - fpr).min(fpr * (0.1 + random.below(20) as f64 / 10.0));
        let growth = 1.0 + random.below(20) as f64 / 10.0;
        let plan = Plan { capacity, fpr, max_fpr, growth, max_owners: 0 };
        let mut bank = FilterBank::new(plan, KeyHasher::seeded(0)).unwrap();
        let measured = least_rate(&mut bank, &mut random, 150, capacity);
        assert!(measured <= fpr, "{plan:?}: {measured}");
        for stages in 2..=4 {
            let all = plan.stages_for(bank.stages.last().unwrap().total + 1).unwrap();
            let bound: f64 = all.iter().map(|stage| stage.fpr).sum();
            let measured = least_rate(&mut bank, &mut random, 150, all.last().unwrap().total);
            assert!(measured <= bound && bound < max_fpr, "{plan:?}, {stages} stages: {measured}, {bound}");
            assert_eq!(bank.stages.len(), stages);
        }
    }
}

#[test]
fn an_exported_owner_answers_as_in_the_bank() {
    let mut random = Random(4);
    let mut bank = bank(50, 0.05);
    let (owners, keys) = pairs(&mut random, 20_000, 40);
    bank.add_pairs(&owners, &keys, None).unwrap();
    let (mut single, mut grown) = (0, 0);
    for (owner, keys) in bank.each_owner().collect::<Vec<_>>() {
        let asked: Vec<u64> = (0..2000).map(|i| mix(i * 25)).collect();
        let want: Vec<bool> = asked.iter().map(|&key| bank.contains(owner, key)).collect();
        let (found, added): (Vec<bool>, u64) = match bank.export(owner).unwrap().unwrap() {
            Exported::One(filter) => {
                single += 1;
                (asked.iter().map(|&key| filter.contains_hash(key)).collect(), filter.num_added())
            }
            Exported::Grown(filter) => {
                grown += 1;
                let bytes = write(&filter.container());
                let read: ScalableBloomFilter = options().from_bytes(&bytes, crate::registry::SCALABLE).unwrap();
                (asked.iter().map(|&key| read.contains_hash(key)).collect(), filter.num_added())
            }
        };
        assert_eq!((found, added), (want, keys));
        let (items, deviation) = bank.owner_estimate(owner).unwrap();
        assert!((items - keys as f64).abs() < 6.0 * deviation + 0.1 * keys as f64, "{keys} {items} {deviation}");
    }
    assert!(single > 0 && grown > 0 && bank.export(12345).unwrap().is_none());
}

#[test]
fn merged_banks_find_the_keys_of_both() {
    let mut random = Random(5);
    let [mut ours, mut theirs] = [0, 1].map(|_| bank(40, 0.02));
    let mut all = Vec::new();
    for bank in [&mut ours, &mut theirs] {
        let (owners, keys) = pairs(&mut random, 9000, 120);
        bank.add_pairs(&owners, &keys, None).unwrap();
        all.extend(owners.into_iter().zip(keys));
    }
    ours.remove_owner(all[0].0).unwrap();
    ours.merge(&theirs).unwrap();
    ours.check_cells().unwrap();
    let missing = all[9000..].iter().filter(|(owner, key)| !ours.contains(*owner, *key)).count();
    assert_eq!(missing, 0);
    assert!(all[..9000].iter().all(|&(owner, key)| owner == all[0].0 || ours.contains(owner, key)));
    let mut copy = ours.try_clone().unwrap();
    assert!(copy.same_as(&ours));
    copy.merge(&theirs).unwrap();
    assert!(all[9000..].iter().all(|&(owner, key)| copy.contains(owner, key)));
    assert!(matches!(ours.merge(&bank(41, 0.02)), Err(Error::Incompatible(why)) if why.contains("capacity")));
}

/// Owners whose entries lie side by side, with `stages` stages each: no more than a thousand entries do.
fn crowded(owners: std::ops::Range<u64>, stages: u64) -> FilterBank {
    let plan = Plan { capacity: 1, fpr: 0.001, max_fpr: 0.5, growth: 1.0, max_owners: 0 };
    let mut bank = FilterBank::new(plan, KeyHasher::seeded(0)).unwrap();
    for owner in owners.map(|near| near.wrapping_mul(UNMIX)) {
        let mut keys = (0..).map(mix);
        while bank.num_stages(owner).unwrap_or(0) < stages {
            bank.add(owner, keys.next().unwrap()).unwrap();
        }
    }
    bank
}

#[test]
fn a_merge_that_fails_changes_nothing_of_the_owner_that_it_is_about() {
    for (mut ours, theirs) in [(crowded(0..4, 250), crowded(4..5, 250)), (crowded(0..5, 200), crowded(4..5, 250))] {
        let before = file(&ours);
        assert!(matches!(ours.merge(&theirs), Err(Error::Capacity(why)) if why.contains("nearly agree")));
        ours.check_cells().unwrap();
        let mut read = FilterBank::from_bytes(&file(&ours), &options()).unwrap();
        assert!(read.same_as(&ours) && read.same_as(&FilterBank::from_bytes(&before, &options()).unwrap()));
        // The lines that it took are free again.
        assert!(read.add(mix(1), mix(2)).unwrap());
        read.check_cells().unwrap();
    }
}

#[test]
fn a_merge_without_memory_merges_whole_owners_and_the_kinds_of_their_keys() {
    let mut random = Random(9);
    let (mut failed, mut partly) = (0, 0);
    for round in 0..60 {
        let [mut ours, mut theirs] = [0, 1].map(|_| bank(15, 0.03));
        for bank in [&mut ours, &mut theirs] {
            let (owners, keys) = pairs(&mut random, 400, 30);
            bank.add_pairs(&owners, &keys, None).unwrap();
        }
        theirs.hasher_mut().domains_mut().insert(KeyDomains::of(Domain::Float));
        let before = ours.try_clone().unwrap();
        ours.limit(ours.nbytes() + LINE_BYTES as u64 * random.below(12));
        let merged = ours.merge(&theirs);
        ours.check_cells().unwrap();
        assert!(ours.hasher().domains().holds(KeyDomains::of(Domain::Float)));
        if merged.is_ok() {
            continue;
        }
        let mut whole = before.try_clone().unwrap();
        whole.merge(&theirs).unwrap();
        let is_as_in = |other: &FilterBank, owner| {
            let cells = |bank: &FilterBank| {
                let entry = bank.owners.get(owner)?;
                let stages = bank.filters(&entry).into_iter().zip(&bank.stages);
                let words: Vec<_> =
                    stages.map(|(first, stage)| bank.pool.filter(first, stage.lines()).to_vec()).collect();
                Some((entry.count, words))
            };
            cells(&ours) == cells(other)
        };
        let owners: Vec<u64> = whole.each_owner().map(|(owner, _)| owner).collect();
        assert!(owners.iter().all(|&owner| is_as_in(&before, owner) || is_as_in(&whole, owner)), "round {round}");
        failed += 1;
        partly += usize::from(owners.iter().any(|&owner| !is_as_in(&before, owner)));
    }
    assert!(failed > 20 && partly > 10, "{failed} {partly}");
}

#[test]
fn limits_give_one_error_and_change_nothing() {
    let plan = Plan { max_owners: 3, max_fpr: 0.01, ..plan(20, 0.01) };
    let mut bank = FilterBank::new(plan, KeyHasher::seeded(0)).unwrap();
    let owners = [1, 2, 3, 2, 4, 1].map(mix);
    let mut new = [9; 6];
    let refused = bank.add_pairs(&owners, &[10, 11, 12, 13, 14, 15].map(mix), Some(&mut new)).unwrap_err();
    assert!(matches!(refused, Error::Capacity(why) if why.contains("3 owners, its max_owners")));
    assert_eq!((bank.len(), bank.num_added()), (3, 4));
    assert!(bank.contains(mix(2), mix(13)) && !bank.contains(mix(1), mix(15)));
    let refused = (0..1000).find_map(|key| bank.add(mix(1), mix(key)).err());
    assert!(matches!(refused, Some(Error::Capacity(why)) if why.contains("max_fpr")));
    assert_eq!(bank.num_keys(mix(1)), Some(20));
    let key = (0..1000).map(mix).find(|&key| bank.contains(mix(1), key)).unwrap();
    assert!(!bank.add(mix(1), key).unwrap());
    bank.check_cells().unwrap();
    bank.limit(bank.nbytes());
    bank.remove_owner(mix(1)).unwrap();
    assert!(bank.add(mix(9), 1).unwrap());
    bank.remove_owner(mix(9)).unwrap();
    bank.plan.max_owners = 0;
    assert!(bank.add(mix(9), 1).unwrap());
    assert!(matches!(bank.add(mix(10), 1), Err(Error::Memory(why)) if why.contains("max_bytes")));
    bank.check_cells().unwrap();
}

#[test]
fn a_batch_without_memory_adds_the_pairs_before_and_none_behind() {
    let (mut random, mut taken_back) = (Random(8), 0);
    for round in 0..60 {
        let mut many = bank(10 + round % 7, 0.03);
        let (owners, keys) = pairs(&mut random, 2000, 25);
        many.add_pairs(&owners[..300], &keys[..300], None).unwrap();
        let mut one = many.try_clone().unwrap();
        let most = many.nbytes() + LINE_BYTES as u64 * random.below(40);
        [&mut many, &mut one].into_iter().for_each(|bank| bank.limit(most));
        let error = many.add_pairs(&owners[300..], &keys[300..], None).unwrap_err();
        let refused = (300..2000).find(|&i| one.add(owners[i], keys[i]).is_err()).unwrap();
        assert!(matches!(error, Error::Memory(why) if why.contains("max_bytes")));
        assert_eq!(file(&many), file(&one));
        many.check_cells().unwrap();
        let room =
            |&i: &usize| one.owners.get(owners[i]).is_some_and(|entry| u64::from(entry.count) < one.plan.capacity);
        taken_back += (refused + 1..2000.min(refused + 20)).filter(room).count();
    }
    assert!(taken_back > 0);
}

/// A bank with grown owners and free lines of two sizes.
fn create_used() -> FilterBank {
    let mut random = Random(6);
    let mut bank = bank(12, 0.05);
    let (owners, keys) = pairs(&mut random, 1500, 40);
    bank.add_pairs(&owners, &keys, None).unwrap();
    for &owner in &owners[..4] {
        bank.remove_owner(owner).unwrap();
    }
    bank.clear_owner(owners[20]).unwrap();
    assert!(bank.num_later() > 2 && bank.pool.free().iter().filter(|head| **head != 0).count() > 1);
    bank
}

#[test]
fn a_file_restores_the_bank() {
    let bank = create_used();
    let bytes = file(&bank);
    let mut read = FilterBank::from_bytes(&bytes, &options()).unwrap();
    assert!(read.same_as(&bank) && file(&read) == bytes);
    let mut written = bank.try_clone().unwrap();
    for (owner, key) in (0..500).map(|i| (mix(i % 70), mix(i))) {
        assert_eq!(read.add(owner, key).unwrap(), written.add(owner, key).unwrap());
    }
    assert_eq!(file(&read), file(&written));
    for len in (0..bytes.len()).step_by(7) {
        assert!(FilterBank::from_bytes(&bytes[..len], &options()).is_err());
    }
    let small = OpenOptions { max_bytes: 100, ..options() };
    assert!(matches!(FilterBank::from_bytes(&bytes, &small), Err(Error::Memory(_))));
}

#[test]
fn a_mapped_file_is_read_and_not_written() {
    use crate::container::file::OpenFile;
    let (bank, folder) = (create_used(), tempfile::tempdir().unwrap());
    let path = folder.path().join("bank");
    bank.save(&path).unwrap();
    let wanted = OpenOptions { verify: Verify::Header, ..options() };
    let mut mapped = FilterBank::open(&OpenFile::new(&path).unwrap(), &path, &wanted).unwrap();
    assert!(mapped.is_mapped() && mapped.same_as(&bank));
    assert!(matches!(mapped.add(1, 2), Err(Error::ReadOnly(_))));
    assert!(matches!(mapped.add_pairs(&[1], &[2], None), Err(Error::ReadOnly(_))));
    assert!(matches!(mapped.remove_owner(1), Err(Error::ReadOnly(_))));
    let mut copy = mapped.try_clone().unwrap();
    assert!(copy.add(mix(1), mix(2)).is_ok() && file(&bank) == file(&mapped));
}

/// Answers and changes of a bank that was read from a file: none may panic.
fn exercise(bank: &FilterBank) {
    let owners: Vec<u64> = (0..60).map(mix).chain(bank.each_owner().map(|(owner, _)| owner)).take(200).collect();
    let keys: Vec<u64> = (0..owners.len() as u64).map(mix).collect();
    bank.contains_pairs(&owners, &keys, &mut vec![0; owners.len()]);
    for &owner in &owners[..owners.len().min(80)] {
        let _ = (bank.contains(owner, 5), bank.num_stages(owner), bank.owner_bytes(owner));
        let _ = (bank.export(owner).map(|_| ()), bank.owner_fpr(owner), bank.owner_estimate(owner));
    }
}

#[test]
fn forged_files_are_refused_or_harmless() {
    use crate::container::file::OpenFile;
    let (bank, mut random, folder) = (create_used(), Random(7), tempfile::tempdir().unwrap());
    let path = folder.path().join("forged");
    let container = bank.container();
    let mut refused = 0;
    for round in 0..1500 {
        let mut cells: Vec<Vec<u8>> = container.sections.iter().map(|section| section.bytes.to_vec()).collect();
        let mut header = Header { params: container.header.params.clone(), ..container.header };
        for _ in 0..1 + random.below(3) {
            let number = match random.below(4) {
                0 => random.next(),
                1 => random.below(100),
                2 => u64::from(u32::MAX) - random.below(3),
                _ => 1 << random.below(64),
            };
            if round % 2 == 0 {
                let at = random.below(header.params.len() as u64) as usize;
                header.params[at].2 = number;
            } else {
                let table = &mut cells[random.below(2) as usize];
                let at = random.below(table.len() as u64 / 4) as usize * 4;
                table[at..at + 4].copy_from_slice(&(number as u32).to_le_bytes());
            }
        }
        let sections = container.sections.iter().zip(&cells);
        let sections = sections.map(|(section, bytes)| Section { bytes, checksum: None, ..*section }).collect();
        let bytes = write(&Container { header, sections });
        match FilterBank::from_bytes(&bytes, &options()) {
            Ok(mut read) => {
                exercise(&read);
                let keys: Vec<u64> = (0..300).map(mix).collect();
                read.limit(1 << 22);
                let _ = read.add_pairs(&vec![mix(3); keys.len()], &keys, None);
                let first = read.each_owner().next();
                let _ = first.map(|(owner, _)| read.remove_owner(owner));
            }
            Err(Error::Format(_) | Error::Memory(_)) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
        // Without a check of the cells: every answer is one.
        std::fs::write(&path, &bytes).unwrap();
        let wanted = OpenOptions { verify: Verify::Header, ..options() };
        if let Ok(read) = FilterBank::open(&OpenFile::new(&path).unwrap(), &path, &wanted) {
            exercise(&read);
            let _ = (read.try_clone().map(|_| ()), bank.try_clone().unwrap().merge(&read));
        }
    }
    assert!(refused > 1000, "{refused}");
}

/// The merge took as many lines as its own filters have: 160 of 160 keys were lost.
#[test]
fn banks_of_equal_parameters_and_unlike_shapes_are_not_merged() {
    let (ours, mut theirs) = (bank(500, 0.01), bank(50, 0.01));
    theirs.add_pairs(&[1; 40], &(0..40).map(mix).collect::<Vec<_>>(), None).unwrap();
    theirs.plan = ours.plan;
    for (into, from) in [(&mut ours.try_clone().unwrap(), &theirs), (&mut theirs.try_clone().unwrap(), &ours)] {
        let before = into.len();
        let error = into.merge(from).unwrap_err().to_string();
        assert!(error.contains("differ in shape") && into.len() == before, "{error}");
        assert!(!into.same_as(from));
    }
}

/// Slots of the table that an iterator of owners has still to read.
fn slots_left(owners: &impl Iterator) -> usize {
    owners.size_hint().1.unwrap()
}

/// Listing went through all owners for each page: 2,000 passes over the table here.
#[test]
fn a_page_of_owners_is_read_from_its_place_in_the_table() {
    let mut bank = bank(1, 0.01);
    let owners: Vec<u64> = (0..200_000).map(mix).collect();
    bank.add_pairs(&owners, &owners, None).unwrap();
    let (mut start, mut place, mut listed) = (0, slots_left(&bank.owners_from(0)), 0);
    loop {
        let mut left = bank.owners_from(start);
        assert_eq!(slots_left(&left), place, "{listed} owners listed");
        listed += left.by_ref().take(100).count();
        let Some((next, _)) = left.next() else { break };
        (start, place) = (next, slots_left(&left) + 1);
    }
    assert_eq!(listed, 200_000);
}
