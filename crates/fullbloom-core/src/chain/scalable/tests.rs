use std::collections::HashSet;

use super::*;
use crate::bloom::BloomFilter;
use crate::container::tag;
use crate::hash::splitmix::mix;
use crate::structure::conformance::lying;
use crate::structure::parts::Parts;
use crate::structure::testing::{reload, reload_changed};
use crate::table::cuckoo::places::Places;

fn create(initial_capacity: u64, fpr: f64, kind: &str, growth: f64) -> ScalableBloomFilter {
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
    let mut single = create(100, 1e-4, "cuckoo", 1.0);
    let Stage::CuckooFilter(first) = &single.chain.stages[0] else { panic!("not a cuckoo filter") };
    // 30 keys for 2 buckets of 4 and a stash: the stage refuses long before its 100 keys.
    let mut hashes = crowd(first.shape().buckets, first.shape().fingerprint_bits);
    hashes.extend((0..150).map(|i| mix(i << 32)));
    let news: Vec<u8> = hashes.iter().map(|&hash| u8::from(single.add_hash(hash).unwrap())).collect();
    assert!(single.chain.stages[0].num_added() < 30 && single.stages() > 1);
    assert!(hashes.iter().all(|&hash| single.contains_hash(hash)));
    let mut batch = create(100, 1e-4, "cuckoo", 1.0);
    let mut new = vec![0; hashes.len()];
    batch.add_hashes(&hashes, Some(&mut new)).unwrap();
    assert!(batch.same_as(&single) && new == news);
}

#[test]
#[ignore = "long: make test-all runs it"]
fn a_stage_that_cannot_have_its_rate_has_the_least_there_is() {
    for (capacity, fpr, kind, growth, keys) in [
        (100, 1e-4, "prefix", 2.0, 30_000),
        (100, 1e-8, "cuckoo", 2.0, 20_000),
        (100, 1e-13, "bloom", 1.5, 6_000),
        (100, 0.01, "bloom", 1.0, 6_000),
        (100, 1e-14, "d-left", 1.5, 3_000),
        (100, 1e-14, "quotient", 2.0, 20_000),
        (20, 1e-5, "counting", 1.0, 1_500),
        (20, 1e-4, "layered", 1.0, 1_500),
    ] {
        let mut filter = create(capacity, fpr, kind, growth);
        filter.add_hashes(&(0..keys).map(mix).collect::<Vec<_>>(), None).unwrap();
        let rates: Vec<f64> = filter.chain.stages.iter().map(Filter::target_fpr).collect();
        let planned = |i: usize| fpr * 0.5 * 0.5f64.powi(i as i32);
        let first = (0..rates.len()).find(|&i| rates[i] != planned(i)).expect(kind);
        assert!((first..rates.len()).all(|i| rates[i] > planned(i)) && filter.at_least_rate() == rates.len() - first);
        for (i, stage) in filter.chain.stages.iter().enumerate().skip(first) {
            let lower = stage.target_fpr() * (1.0 - 1e-9);
            let refused = filter.plan.kind.stage(stage.capacity(), lower, KeyHasher::seeded(0));
            assert!(matches!(refused, Err(Error::Parameter(_))), "{kind} {i}: not the least");
        }
        assert!((0..keys).all(|i| filter.contains_hash(mix(i))));
        // What the file says of such stages is believed, and nothing else.
        let mut back = reload(&filter);
        assert!(back.same_as(&filter) && back.at_least_rate() == filter.at_least_rate());
        for wrong in [0.999, 1.001, 2.0, 1e3] {
            let lie = reload_changed(&filter, |header, _| {
                let stage = header.params.iter_mut().find(|(t, i, _)| (*t, *i) == (tag::FPR, first as u16));
                let value = &mut stage.unwrap().2;
                *value = (f64::from_bits(*value) * wrong).to_bits();
            });
            assert!(matches!(lie, Err(Error::Format(_))), "{kind} {wrong}");
        }
        back.clear().unwrap();
        assert!(back.same_as(&create(capacity, fpr, kind, growth)));
    }
}

#[test]
fn files_whose_stages_are_not_as_planned_are_refused() {
    for kind in Kind::rows() {
        let mut filter = create(50, 0.01, kind.name, 2.0);
        filter.add_hashes(&(0..300).map(mix).collect::<Vec<_>>(), None).unwrap();
        assert!(filter.stages() == 3);
        let params = filter.container().header.params;
        let planned = |tag: u16, index: u16, wild: u64| {
            let whole =
                index == WHOLE && [tag::CAPACITY, tag::GROWTH, tag::TIGHTENING, tag::STAGE_VARIANT].contains(&tag);
            let value = params.iter().find(|(t, i, _)| (*t, *i) == (tag, index)).unwrap().2;
            let near = wild.abs_diff(value) == 1 && ![tag::CAPACITY, tag::STAGE_VARIANT].contains(&tag);
            near || !(whole || [tag::CAPACITY, tag::FPR].contains(&tag))
        };
        lying(&filter, planned, drop);
    }
}

#[test]
#[ignore = "long: make test-all runs it"]
fn a_filter_of_1024_stages_is_full() {
    let mut filter = create(1, 0.5, "bloom", 1.0);
    let added = filter.add_hashes(&(0..5000).map(mix).collect::<Vec<_>>(), None);
    assert!(matches!(added, Err(Error::Capacity(_))) && filter.stages() == 1024);
    assert!(filter.at_least_rate() > 900 && reload(&filter).same_as(&filter));
}

#[test]
fn bytes_to_come_are_those_of_the_stages() {
    for fpr in [0.01, 1e-13] {
        let mut filter = create(INITIAL_CAPACITY, fpr, "bloom", 2.0);
        filter.add_hashes(&(0..100_000).map(mix).collect::<Vec<_>>(), None).unwrap();
        assert_eq!(ScalableBloomFilter::cell_bytes(100_000, fpr, "bloom", 2.0, 0.5, "auto").unwrap(), filter.nbytes());
    }
}

/// A filter that was copied in slices while keys were added, and the words that these may have written once more.
fn check_copy<F: Loadable + Addable>(mut live: F, from: u64) -> Result<()> {
    let hash = |key: u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    assert!(live.writes(&[], &mut |_, _| {}));
    let mut parts = Parts::new(&live.container())?;
    let mut key = from;
    for start in (0..parts.len()).step_by(100) {
        let slice = start..(start + 100).min(parts.len());
        parts.supply(slice.clone())?;
        parts.copy(&live.container(), slice)?;
        for _ in 0..3 {
            live.add_hash(hash(key))?;
            key += 1;
        }
    }
    let (container, added) = (live.container(), (from..key).map(hash).collect::<Vec<u64>>());
    let mut done = Ok(());
    live.writes(&added, &mut |section, word| done = parts.copy_word(&container, section, word));
    done?;
    let copy: F = parts.load(&container.header, *live.hasher())?;
    assert!(copy.same_as(&live) && copy.num_added() == live.num_added() && key > from + 30);
    Ok(())
}

#[test]
fn a_copy_in_slices_is_the_filter_as_it_is_at_the_end() -> Result<()> {
    for layout in ["classic", "blocked", "split", "partitioned", "two-block"] {
        check_copy(BloomFilter::construct(20_000, 0.001, layout, None, "xxh3", false, KeyHasher::seeded(1))?, 0)?;
    }
    let mut chain = ScalableBloomFilter::construct(4000, 0.01, "bloom", 2.0, 0.5, "auto", KeyHasher::seeded(1))?;
    (0..9000u64).try_for_each(|key| chain.add_hash(key.wrapping_mul(0x9e37_79b9_7f4a_7c15)).map(drop))?;
    check_copy(chain, 9000)
}
