use std::collections::HashSet;

use super::*;
use crate::hash::splitmix::mix;
use crate::structure::testing::{reload, reload_changed};
use crate::table::cuckoo::places::Places;

fn made(initial_capacity: u64, fpr: f64, kind: &str, growth: f64) -> ScalableBloomFilter {
    let hasher = KeyHasher::seeded(0);
    ScalableBloomFilter::construct(initial_capacity, fpr, kind, growth, 0.5, "auto", hasher).unwrap()
}

/// Hashes for a table of `buckets` that all lie in its buckets 0 and 1, of different fingerprints.
fn crowd(buckets: u64, width: u32) -> Vec<u64> {
    let places = Places::new(buckets, width);
    let mut fps = HashSet::new();
    let hashes = (0..4_000_000u64).map(mix).filter(|&hash| {
        let spot = places.of(hash);
        spot.first < 2 && spot.second < 2 && fps.insert(spot.fp)
    });
    hashes.take(30).collect()
}

#[test]
fn a_stage_without_room_is_closed_early_and_no_key_is_lost() {
    let mut single = made(100, 1e-4, "cuckoo", 1.0);
    let Stage::CuckooFilter(first) = &single.chain.stages[0] else { panic!("not a cuckoo filter") };
    // 30 keys for 2 buckets of 4 and a stash: the stage refuses long before its 100 keys.
    let mut hashes = crowd(first.shape().buckets, first.shape().fingerprint_bits);
    hashes.extend((0..150).map(|i| mix(i << 32)));
    let news: Vec<u8> = hashes.iter().map(|&hash| u8::from(single.add_hash(hash).unwrap())).collect();
    assert!(single.chain.stages[0].num_added() < 30 && single.stages() > 1);
    assert!(hashes.iter().all(|&hash| single.contains_hash(hash)));
    let mut batch = made(100, 1e-4, "cuckoo", 1.0);
    let mut new = vec![0; hashes.len()];
    batch.add_hashes(&hashes, Some(&mut new)).unwrap();
    assert!(batch.same_as(&single) && new == news);
}

#[test]
fn files_whose_stages_are_not_as_planned_are_refused() {
    for kind in Kind::rows() {
        let mut filter = made(50, 0.01, kind.name, 2.0);
        filter.add_hashes(&(0..300).map(mix).collect::<Vec<_>>(), None).unwrap();
        assert!(filter.stages() == 3 && reload(&filter).same_as(&filter));
        let params = filter.container().header.params;
        use crate::container::tag::{CAPACITY, COUNT, FPR, GROWTH, LAYOUT, STAGE_VARIANT, TIGHTENING};
        for (i, &(tag, index, value)) in params.iter().enumerate() {
            for wild in [0, 1, 2, 63, 1 << 32, 1 << 63, u64::MAX, f64::NAN.to_bits(), value + 1, value / 2, 2 * value] {
                let Ok(mut opened) = reload_changed(&filter, |header, _| header.params[i].2 = wild) else { continue };
                let whole = index == WHOLE && [CAPACITY, GROWTH, TIGHTENING, STAGE_VARIANT].contains(&tag);
                let close = wild == value || wild == value + 1 && ![CAPACITY, STAGE_VARIANT].contains(&tag);
                assert!(!(whole || [CAPACITY, FPR].contains(&tag)) || close, "{} {tag} {index} {wild}", kind.name);
                if tag != COUNT && tag != LAYOUT {
                    let _ = opened.add_hashes(&(0..900).map(mix).collect::<Vec<_>>(), None);
                }
                opened.clear().unwrap();
                opened.add_hash(5).unwrap();
            }
            assert!(matches!(reload_changed(&filter, |header, _| _ = header.params.remove(i)), Err(Error::Format(_))));
        }
    }
}

#[test]
fn bytes_to_come_are_those_of_the_stages() {
    for fpr in [0.01, 1e-13] {
        let mut filter = made(INITIAL_CAPACITY, fpr, "bloom", 2.0);
        filter.add_hashes(&(0..100_000).map(mix).collect::<Vec<_>>(), None).unwrap();
        assert_eq!(ScalableBloomFilter::cell_bytes(100_000, fpr, "bloom", 2.0, 0.5, "auto").unwrap(), filter.nbytes());
    }
}
