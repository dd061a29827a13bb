use std::collections::BTreeSet;

use super::*;
use crate::structure::records::{RecordSet, Records};
use crate::structure::testing::{bytes, hash, map_filter, reload, reload_changed};

fn sort(keys: impl Iterator<Item = u64>) -> RecordSet<1> {
    let mut records = Records::new(None);
    keys.for_each(|key| records.push([key]).unwrap());
    records.try_into().unwrap()
}

fn set(keys: impl Iterator<Item = u64>, fpr: f64, capacity: Option<u64>) -> GolombSet {
    GolombSet::build(&sort(keys), Some(fpr), None, capacity, None, KeyHasher::seeded(3), &Job::new(1)).unwrap()
}

fn values(set: &GolombSet, first: u64) -> Vec<u64> {
    let mut out = Vec::new();
    set.values_from(first, usize::MAX, &mut out);
    out
}

#[test]
fn it_is_the_sorted_list_of_its_values() {
    for (number, fpr) in
        [(0, 0.01), (1, 0.5), (2, 1e-9), (127, 0.9), (128, 0.3), (129, 0.01), (5000, 1e-4), (3000, 1e-12)]
    {
        let instance = set((0..number).map(hash), fpr, None);
        let place = |key: u64| crate::scheme::fastrange(key, instance.universe());
        let truth: BTreeSet<u64> = (0..number).map(|i| place(hash(i))).collect();
        assert_eq!(values(&instance, 0), truth.iter().copied().collect::<Vec<_>>(), "{number} {fpr}");
        assert_eq!(
            (instance.num_added(), instance.fpr()),
            (truth.len() as u64, truth.len() as f64 / instance.universe() as f64)
        );
        assert!((0..3 * number).all(|i| instance.contains_hash(hash(i)) == truth.contains(&place(hash(i)))));
        for first in truth.iter().take(300).flat_map(|v| [v.saturating_sub(1), *v, v + 1]).chain([0, u64::MAX]) {
            let mut some = Vec::new();
            instance.values_from(first, 3, &mut some);
            assert!(some.iter().eq(truth.range(first..).take(3)), "{number} {fpr} {first}");
        }
    }
}

#[test]
fn batches_answer_as_single_look_ups_whatever_their_order() {
    for (number, fpr) in [(0, 0.01), (1, 0.1), (20_000, 0.05), (20_000, 1e-6)] {
        let instance = set((0..number).map(hash), fpr, None);
        let mut probes: Vec<u64> = (0..2 * number + 50).map(hash).collect();
        for order in 0..3 {
            match order {
                0 => {}
                1 => probes.sort_unstable(),
                _ => probes.reverse(),
            }
            for probes in [&probes[..], &probes[..probes.len().min(17)], &[]] {
                let mut found = vec![9; probes.len()];
                instance.contains_hashes(probes, &mut found);
                assert!(probes.iter().zip(found).all(|(&hash, found)| found == u8::from(instance.contains_hash(hash))));
            }
        }
    }
}

#[test]
fn merging_gives_the_bytes_of_the_set_of_all_keys() {
    for (a, b, fpr) in [(0..0, 0..0, 0.01), (0..0, 0..50, 0.01), (0..700, 500..1000, 0.3), (0..900, 100..200, 1e-9)] {
        let of = |keys: &mut dyn Iterator<Item = u64>| set(keys.map(hash), fpr, Some(1000));
        let (mut one, other) = (of(&mut a.clone()), of(&mut b.clone()));
        let both = of(&mut a.clone().chain(b.clone()));
        one.merge(&other).unwrap();
        assert!(one.same_as(&both) && bytes(&one) == bytes(&both));
        let before = bytes(&one);
        one.merge(&other).unwrap();
        assert_eq!(bytes(&one), before);
    }
}

#[test]
fn the_intersection_has_the_bytes_of_the_set_of_common_values() {
    for (a, b, fpr) in [(0..0, 0..50, 0.01), (0..700, 500..1000, 0.3), (0..900, 100..200, 1e-9), (0..9, 20..40, 1e-9)] {
        let of = |keys: std::ops::Range<u64>| set(keys.map(hash), fpr, Some(1000));
        let (mut one, other) = (of(a), of(b));
        let theirs: BTreeSet<u64> = values(&other, 0).into_iter().collect();
        let common: Vec<u64> = values(&one, 0).into_iter().filter(|value| theirs.contains(value)).collect();
        assert_eq!(one.intersection_count(&other).unwrap(), common.len() as u64);
        let mut way_round = other.try_clone().unwrap();
        way_round.intersect(&one).unwrap();
        one.intersect(&other).unwrap();
        assert_eq!((values(&one, 0), bytes(&way_round)), (common, bytes(&one)));
        assert!(one.check_cells().is_ok() && coded_again(&one).same_as(&one));
        let stranger = set((0..60).map(hash), fpr / 2.0, Some(1000));
        assert!(matches!(one.intersect(&stranger), Err(Error::Incompatible(_))));
        assert!(matches!(one.intersection_count(&stranger), Err(Error::Incompatible(_))));
    }
}

#[test]
fn failed_merges_change_nothing() {
    let (mut one, other) = (set((0..60).map(hash), 0.01, Some(100)), set((60..130).map(hash), 0.01, Some(100)));
    let before = bytes(&one);
    assert!(matches!(one.merge(&other), Err(Error::Capacity(m)) if m.contains("values, capacity is 100")));
    for stranger in [set((0..60).map(hash), 0.01, None), set((0..60).map(hash), 0.02, Some(100))] {
        assert!(matches!(one.merge(&stranger), Err(Error::Incompatible(_))));
    }
    assert!(matches!(map_filter(&one).merge(&other), Err(Error::ReadOnly(_))));
    assert_eq!(bytes(&one), before);
}

#[test]
fn parameters_say_what_is_wrong() {
    let refused = |fpr, bits, capacity, rice_bits| {
        let keys = sort((0..10).map(hash));
        let instance = GolombSet::build(&keys, fpr, bits, capacity, rice_bits, KeyHasher::seeded(0), &Job::new(1));
        assert!(matches!(instance, Err(Error::Parameter(_))), "{fpr:?} {bits:?} {capacity:?} {rice_bits:?}");
    };
    refused(Some(0.1), Some(10), None, None);
    refused(None, Some(50), None, None);
    refused(None, Some(u64::MAX), None, None);
    refused(None, None, Some(9), None);
    refused(None, None, Some(1 << 60), None);
    refused(None, None, None, Some(1));
    refused(None, None, None, Some(57));
}

#[test]
fn hashes_that_are_not_spread_are_kept_too() {
    for step in [1, 1 << 20, 1 << 40] {
        let instance = set((0..5000).map(|i| i * step), 0.01, None);
        assert!((0..5000).all(|i| instance.contains_hash(i * step)) && reload(&instance).same_as(&instance));
    }
}

#[test]
fn the_index_of_blocks_takes_little() {
    let instance = set((0..200_000).map(hash), 0.01, None);
    let bits = |bytes: u64| 8.0 * bytes as f64 / 200_000.0;
    assert!(bits(instance.nbytes()) < 8.25, "{}", bits(instance.nbytes()));
    assert!((instance.code_bits() as f64 / instance.num_added() as f64 - 8.108).abs() < 0.02);
}

/// The set of the values of another one.
fn coded_again(set: &GolombSet) -> GolombSet {
    let mut encoder = codes::Encoder::new(set.shape, 64).unwrap();
    Values::from(set.blocks(), 0).for_each(|value| encoder.push(value).unwrap());
    GolombSet::of(encoder.finish().unwrap(), set.shape, (set.capacity, set.target_fpr), set.hasher).unwrap()
}

#[test]
fn cells_that_are_no_set_are_found_and_harm_nobody() {
    let instance = set((0..2000).map(hash), 0.01, None);
    let broken = |section: usize, byte: usize, bit: u32| {
        let damaged: GolombSet = reload_changed(&instance, |_, cells| cells[section][byte] ^= 1 << bit).unwrap();
        // A remainder that changed may be that of another set, of which only the checksum of a file tells.
        match damaged.check_cells() {
            Ok(()) => assert!(section == 0 && coded_again(&damaged).same_as(&damaged), "{section} {byte} {bit}"),
            Err(error) => assert!(matches!(error, Error::Format(_))),
        }
        let probes: Vec<u64> = (0..3000).map(hash).collect();
        damaged.contains_hashes(&probes, &mut vec![0; 3000]);
        assert!(values(&damaged, 0).len() < 100_000);
        let _ = (damaged.fpr(), damaged.fill(), damaged.info());
        let mut merged = instance.try_clone().unwrap();
        let _ = merged.merge(&damaged);
    };
    for (section, cells) in instance.container().sections.iter().enumerate() {
        (0..cells.bytes.len()).step_by(7).for_each(|byte| broken(section, byte, byte as u32 % 8));
    }
}
