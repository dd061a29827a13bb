//! Tests of [`super`].

use super::*;
use crate::structure::conformance::{adding_and_removing, merging_is_adding_all, removing, removing_all};
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
            let holds_all = |f: &VariableIncrementFilter, model: &HashMap<u64, u64>| {
                model.iter().all(|(&key, &copies)| copies == 0 || f.contains_hash(key))
            };
            let check = |f: &VariableIncrementFilter, model: &HashMap<u64, u64>| {
                assert!(capacity > 2 || holds_all(f, model));
            };
            let empty = filter(increments, bits, capacity);
            let (f, model) = adding_and_removing(empty, capacity, u64::from(bits) + capacity, check);
            assert!(holds_all(&f, &model));
        }
    }
}

#[test]
fn adding_and_removing_all_leaves_nothing_and_batches_do_what_single_keys_do() {
    for (increments, bits) in KINDS {
        removing(&|| filter(increments, bits, 300), 400);
    }
    for (increments, bits) in [(2, 6), (4, 7), (8, 8)] {
        removing_all(|| filter(increments, bits, 300));
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
