//! Tests of [`super`].

use super::*;
use crate::hash::splitmix::SplitMix as Random;
use std::collections::HashMap;

fn filter(mode: Mode, bits: u32, capacity: u64) -> SpectralBloomFilter {
    let shape = Shape::for_capacity(bits, capacity, 0.05).unwrap();
    SpectralBloomFilter::new(shape, mode, capacity, 0.05, KeyHasher::seeded(1)).unwrap()
}

#[test]
fn counts_are_never_below_the_truth_and_only_the_refined_modes_are_closer() {
    let mut errors = Vec::new();
    for &(mode, _) in Mode::NAMES {
        let mut wrong = 0;
        for capacity in [5, 100, 1000] {
            let mut f = filter(mode, 32, capacity);
            let (mut model, mut random) = (HashMap::new(), Random(capacity));
            for _ in 0..capacity * 15 {
                let (a, b) = (random.next() % (2 * capacity), random.next() % (2 * capacity));
                let key = Random(a.min(b)).next();
                f.add_hash(key).unwrap();
                *model.entry(key).or_insert(0u64) += 1;
            }
            let mut counts = vec![0; model.len()];
            let keys: Vec<u64> = model.keys().copied().collect();
            f.count_hashes(&keys, &mut counts);
            for (key, count) in keys.iter().zip(counts) {
                assert!(count >= model[key] && count == f.count_hash(*key), "{mode:?}");
                wrong += u64::from(count != model[key]);
            }
            assert_eq!(f.num_added(), capacity * 15);
        }
        errors.push(wrong);
    }
    assert!(errors[1] * 3 < errors[0] * 2 && errors[2] * 3 < errors[0] * 2, "{errors:?}");
}

#[test]
fn a_counter_at_its_maximum_refuses_and_nothing_changes() {
    for &(mode, _) in Mode::NAMES {
        let mut f = filter(mode, 8, 50);
        (0..255).for_each(|_| assert!(f.add_hash(77).is_ok()));
        let before = f.try_clone().unwrap();
        assert!(!f.is_roomy());
        assert!(matches!(f.add_hash(77), Err(Error::Capacity(_))));
        assert!(f.same_as(&before) && f.count_hash(77) == 255 && f.num_added() == 255);
        f.clear().unwrap();
        assert!(f.add_hash(77).unwrap());
    }
}

#[test]
fn a_full_table_of_keys_apart_leaves_them_with_their_counters() {
    let mut f = filter(Mode::RecurringMinimum, 32, 20);
    let mut model = HashMap::new();
    let mut random = Random(4);
    for _ in 0..5000 {
        let key = Random(random.next() % 300).next();
        f.add_hash(key).unwrap();
        *model.entry(key).or_insert(0u64) += 1;
    }
    assert!(f.num_apart() <= 10);
    assert!(model.iter().all(|(&key, &there)| f.count_hash(key) >= there));
}
