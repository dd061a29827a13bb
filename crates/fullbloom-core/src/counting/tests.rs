//! Tests of [`filter`](super::filter).

use super::filter::*;
use super::*;
use crate::hash::splitmix::SplitMix as Random;
use crate::key::KeyHasher;
use crate::structure::conformance::{Subject, adding, counting, merging_is_adding_all, removing};
use crate::structure::testing::hash;
use crate::structure::{Addable, Countable, Filter, Mergeable, Removable};
use std::collections::HashMap;

fn filter(layout: Layout, bits: u32, capacity: u64) -> CountingBloomFilter {
    let shape = Shape::for_capacity(layout, bits, 1, capacity, 0.01).unwrap();
    CountingBloomFilter::new(shape, capacity, 0.01, KeyHasher::seeded(1)).unwrap()
}

fn kinds() -> Vec<(Layout, u32)> {
    let classic = [2, 3, 4, 8, 16].map(|bits| (Layout::Classic, bits));
    classic.into_iter().chain([2, 4, 8, 16].map(|bits| (Layout::Blocked, bits))).collect()
}

#[test]
fn random_operations_give_no_false_negative_and_no_low_count() {
    for (layout, bits) in kinds() {
        for capacity in [3, 60, 400] {
            let (mut f, mut model) = (filter(layout, bits, capacity), HashMap::new());
            let mut random = Random(u64::from(bits) + capacity);
            let keys: Vec<u64> = (0..capacity * 2).map(|_| random.next()).collect();
            for _ in 0..4000 {
                let key = keys[(random.next() % keys.len() as u64) as usize];
                let there = model.get(&key).copied().unwrap_or(0u64);
                if random.next().is_multiple_of(2) {
                    let new = f.add_hash(key).unwrap();
                    assert!(!new || there == 0);
                    model.insert(key, there + 1);
                } else if there > 0 {
                    assert!(f.remove_hash(key).unwrap());
                    model.insert(key, there - 1);
                }
            }
            let max = f.packed.max();
            for (&key, &there) in &model {
                assert!(f.count_hash(key) >= there.min(max), "{layout:?} {bits} {capacity}");
                assert!(f.reaches(key, there));
            }
            assert_eq!(f.num_added(), model.values().sum::<u64>());
        }
    }
}

#[test]
fn batches_leave_what_single_keys_leave() {
    for (layout, bits) in kinds() {
        let make = || filter(layout, bits, 500);
        removing(make, 700);
        counting(make, 700);
        let many = adding(make, 700);
        let hashes: Vec<u64> = (0..3000).map(hash).chain(many.keys(0..700)).collect();
        let mut found = vec![9; hashes.len()];
        many.reach_hashes(&hashes, 2, &mut found);
        assert!(hashes.iter().zip(found).all(|(&hash, found)| (found != 0) == many.reaches(hash, 2)));
    }
}

#[test]
fn a_counter_at_its_maximum_stays_there() {
    for (layout, bits) in kinds().into_iter().filter(|(_, bits)| *bits < 16) {
        let mut f = filter(layout, bits, 50);
        let max = f.packed.max();
        for _ in 0..max + 3 {
            f.add_hash(77).unwrap();
        }
        for _ in 0..max + 3 {
            assert!(f.remove_hash(77).unwrap());
        }
        assert_eq!(f.count_hash(77), max);
        assert!(f.reaches(77, u64::MAX));
    }
}

#[test]
fn adding_and_removing_all_leaves_nothing_and_absent_keys_change_nothing() {
    for (layout, bits) in kinds().into_iter().filter(|(_, bits)| *bits > 3) {
        let mut f = filter(layout, bits, 300);
        let hashes: Vec<u64> = (0..300).map(|i| Random(i).next()).collect();
        f.add_hashes(&hashes, None).unwrap();
        let before = f.try_clone().unwrap();
        let absent: Vec<u64> = (1000..3000).map(|i| Random(i).next()).filter(|&h| !f.contains_hash(h)).collect();
        assert!(absent.len() > 1900);
        assert!(absent.iter().all(|&h| !f.remove_hash(h).unwrap()));
        assert!(f.same_as(&before) && f.num_added() == 300);
        f.remove_hashes(&hashes, None).unwrap();
        assert!(f.words().iter().all(|&w| w == 0) && f.num_added() == 0);
    }
}

#[test]
fn merging_is_adding_both_multisets() {
    for (layout, bits) in kinds() {
        let make = || filter(layout, bits, 200);
        merging_is_adding_all(make, |f, i| assert!(f.add_hash(hash(i % 150)).is_ok()));
        assert!(make().merge(&filter(layout, bits, 2000)).is_err());
    }
}
