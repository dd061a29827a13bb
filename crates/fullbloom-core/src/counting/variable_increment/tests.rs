//! Tests of [`super`].

use super::*;
use crate::hash::splitmix::SplitMix as Random;
use crate::structure::conformance::{merging_is_adding_all, removing};
use crate::structure::testing::hash;
use std::collections::HashMap;

fn filter(increments: u64, bits: u32, capacity: u64) -> VariableIncrementFilter {
    let shape = Shape::for_capacity(increments, Some(bits), capacity, 0.01).unwrap();
    VariableIncrementFilter::new(shape, capacity, 0.01, KeyHasher::seeded(1)).unwrap()
}

const KINDS: [(u64, u32); 7] = [(2, 6), (4, 7), (8, 8), (2, 3), (4, 4), (8, 5), (4, 16)];

#[test]
fn random_operations_give_no_false_negative() {
    for (increments, bits) in KINDS {
        for capacity in [2, 60, 400] {
            let (mut f, mut model) = (filter(increments, bits, capacity), HashMap::new());
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
                assert!(model.iter().all(|(&key, &there)| there == 0 || capacity > 2 || f.contains_hash(key)));
            }
            assert!(model.iter().all(|(&key, &there)| there == 0 || f.contains_hash(key)));
        }
    }
}

#[test]
fn adding_and_removing_all_leaves_nothing_and_batches_do_what_single_keys_do() {
    for (increments, bits) in KINDS {
        removing(|| filter(increments, bits, 300), 400);
    }
    for (increments, bits) in [(2, 6), (4, 7), (8, 8)] {
        let mut f = filter(increments, bits, 300);
        let hashes: Vec<u64> = (0..300).map(hash).collect();
        f.add_hashes(&hashes, None).unwrap();
        let before = f.try_clone().unwrap();
        let absent: Vec<u64> = (300..3000).map(hash).filter(|&h| !f.contains_hash(h)).collect();
        assert!(absent.len() > 2000 && absent.iter().all(|&h| !f.remove_hash(h).unwrap()) && f.same_as(&before));
        f.remove_hashes(&hashes, None).unwrap();
        assert!(f.words().iter().all(|&w| w == 0) && f.num_added() == 0);
    }
}

#[test]
fn merging_is_adding_both_multisets() {
    for (increments, bits) in KINDS {
        let make = || filter(increments, bits, 200);
        merging_is_adding_all(make, |f, i| assert!(f.add_hash(hash(i % 150)).is_ok()));
        assert!(make().merge(&filter(increments, bits, 2000)).is_err());
    }
}

#[test]
fn a_sized_shape_honours_its_rate() {
    for increments in [2, 4, 8] {
        for fpr in [0.5, 0.1, 0.01, 1e-3, 1e-9] {
            for capacity in [1u64, 10, 1000, 1_000_000, 1_000_000_000] {
                let shape = Shape::for_capacity(increments, Some(8), capacity, fpr).unwrap();
                let rate = shape.fpr(capacity as f64);
                assert!(rate <= fpr && (capacity < 10_000 || rate > 0.9 * fpr), "{shape:?} {rate}");
            }
        }
    }
}
