//! Tests of [`filter`](super::filter).

use super::filter::*;
use super::*;
use crate::key::KeyHasher;
use crate::structure::conformance::{
    Subject, adding, adding_and_removing, counting, merging_is_adding_all, removing, removing_all,
};
use crate::structure::testing::hash;
use crate::structure::{Addable, Countable, Filter, Mergeable, Removable};

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
            let empty = filter(layout, bits, capacity);
            let (f, model) = adding_and_removing(empty, capacity, u64::from(bits) + capacity, |_, _| ());
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
        removing(&make, 700);
        counting(&make, 700);
        let many = adding(&make, 700);
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
        removing_all(|| filter(layout, bits, 300));
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
