use std::collections::HashMap;

use super::*;
use crate::container::tag;
use crate::error::Error;
use crate::hash::splitmix::{SplitMix, mix};
use crate::structure::testing::{reload, reload_changed};
use crate::table::CuckooShape;

/// Stages of `capacity` keys in the tables of a constructor.
fn planned(capacity: u64, max_stages: u64, bucket_size: u32, fingerprint_bits: u32) -> Plan {
    Plan::for_capacity(capacity, 0.01, max_stages, bucket_size, Some(fingerprint_bits)).unwrap()
}

/// Stages so small for their capacity that stashes are taken and copies refused.
fn crowded(buckets: u64, bucket_size: u32, fingerprint_bits: u32, max_stages: u32) -> Plan {
    let shape = CuckooShape { buckets, bucket_size, fingerprint_bits, semi_sort: false };
    Plan { capacity: shape.slots(), fpr: 0.5, max_stages, shape, stage_fpr: 0.1 }
}

fn made(plan: Plan) -> DynamicCuckooFilter {
    DynamicCuckooFilter::new(plan, KeyHasher::seeded(0)).unwrap()
}

fn plans() -> Vec<Plan> {
    vec![
        planned(30, 5, 4, 8),
        planned(30, 5, 2, 12),
        planned(9, 16, 8, 4),
        planned(1, 3, 4, 8),
        planned(40, 1, 4, 20),
        crowded(7, 1, 6, 4),
        crowded(5, 2, 5, 6),
        crowded(6, 4, 4, 3),
        crowded(3, 8, 12, 4),
    ]
}

fn bytes(filter: &DynamicCuckooFilter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.container().write_to(&mut bytes).unwrap();
    bytes
}

/// A fingerprint and its pair of buckets.
type Name = (u64, u64);
/// The exact multiset.
type Model = HashMap<Name, u64>;

fn name(filter: &DynamicCuckooFilter, hash: u64) -> Name {
    let spot = filter.places.of(hash);
    (spot.fp, spot.first.min(spot.second))
}

/// What must hold of the stages at any time.
fn check(filter: &DynamicCuckooFilter, model: &Model) {
    let held: u64 = model.values().sum();
    assert_eq!(filter.num_added(), held);
    assert!(!filter.chain.stages.is_empty() && filter.chain.stages.len() <= filter.plan.max_stages as usize);
    assert_eq!(filter.active, filter.first_open());
    for stage in &filter.chain.stages {
        let mut counted = 0;
        let _ = stage.visit(|_, _| {
            counted += 1;
            Ok::<(), ()>(())
        });
        assert_eq!(stage.num_added(), counted);
    }
}

/// One random operation on `filter` and `model`; true when it was refused.
fn step(filter: &mut DynamicCuckooFilter, model: &mut Model, random: &mut SplitMix, keys: u64, filling: bool) -> bool {
    let hash = mix(random.next() % keys);
    let key = name(filter, hash);
    let held = model.get(&key).copied().unwrap_or(0);
    assert_eq!((filter.count_hash(hash), filter.contains_hash(hash)), (held, held > 0));
    match random.next() % 64 {
        0 => {
            let before = filter.chain.stages.len();
            let freed = filter.compact().unwrap();
            assert_eq!(filter.chain.stages.len() + freed, before);
        }
        1 => {
            let back = reload(filter);
            assert!(back.same_as(filter) && bytes(&back) == bytes(filter) && back.active == filter.active);
            *filter = back;
        }
        2 => return merge(filter, model, random, keys),
        roll if roll % 8 < if filling { 6 } else { 2 } => {
            let before: Vec<u64> = filter.chain.stages.iter().map(Filter::num_added).collect();
            match filter.add_hash(hash) {
                Ok(new) => {
                    assert_eq!(new, held == 0);
                    // Past its capacity goes a stage only when all are open.
                    let grown =
                        filter.chain.stages.iter().zip(&before).find(|(stage, before)| stage.num_added() > **before);
                    assert!(grown.is_none_or(|(stage, before)| *before < stage.capacity()) || filter.all_open());
                    *model.entry(key).or_default() += 1;
                }
                Err(error) => {
                    assert!(matches!(error, Error::Capacity(_)));
                    assert!(filter.all_open() && filter.num_added() == before.iter().sum::<u64>());
                    return true;
                }
            }
        }
        _ => {
            assert_eq!(filter.remove_hash(hash).unwrap(), held > 0);
            if held > 0 {
                model.insert(key, held - 1);
            }
            let last = filter.chain.stages.last().unwrap();
            assert!(filter.chain.stages.len() == 1 || last.num_added() > 0, "an empty stage is left");
        }
    }
    false
}

/// Takes in another filter of some keys, or nothing of it.
fn merge(filter: &mut DynamicCuckooFilter, model: &mut Model, random: &mut SplitMix, keys: u64) -> bool {
    let mut other = made(filter.plan);
    let hashes: Vec<u64> = (0..random.next() % 20).map(|_| mix(random.next() % keys)).collect();
    let taken: Vec<u64> = hashes.into_iter().take_while(|&hash| other.add_hash(hash).is_ok()).collect();
    let before = bytes(filter);
    match filter.merge(&other) {
        Ok(()) => taken.iter().for_each(|&hash| *model.entry(name(filter, hash)).or_default() += 1),
        Err(error) => {
            assert!(matches!(error, Error::Capacity(_)) && bytes(filter) == before);
            return true;
        }
    }
    false
}

/// Random operations against an exact multiset of (fingerprint, pair of buckets): adds, removals in
/// any order, compacting, merging, saving and loading. No present key is ever denied, every count is exact.
#[test]
fn the_stages_together_hold_what_an_exact_multiset_holds() {
    for (i, plan) in plans().into_iter().enumerate() {
        let (mut filter, mut model, mut random) = (made(plan), Model::new(), SplitMix(i as u64));
        let keys = 2 * plan.shape.slots() * u64::from(plan.max_stages);
        let (mut refused, mut most, mut least) = (0, 1, usize::MAX);
        let span = 2 * keys;
        for round in 0..40_000 {
            let filling = round % (2 * span) < span;
            refused += u64::from(step(&mut filter, &mut model, &mut random, keys, filling));
            if round % 97 == 0 {
                check(&filter, &model);
            }
            most = most.max(filter.chain.stages.len());
            least = if most > 1 { least.min(filter.chain.stages.len()) } else { least };
        }
        assert_eq!(most, plan.max_stages as usize, "{plan:?} never grew");
        assert!(refused > 0, "{plan:?} was never full");
        assert!(most == 1 || least < most, "{plan:?} never shrank");
    }
}

/// All hashes in batches cut at random.
fn in_batches(hashes: &[u64], seed: u64, mut take: impl FnMut(&[u64])) {
    let (mut rest, mut random) = (hashes, SplitMix(seed));
    while !rest.is_empty() {
        let (batch, left) = rest.split_at(rest.len().min(1 + random.next() as usize % 3000));
        take(batch);
        rest = left;
    }
}

#[test]
fn batches_of_any_size_leave_the_bytes_and_answers_of_single_calls() {
    let large = [planned(1000, 8, 4, 10), planned(5000, 3, 8, 12), planned(700, 12, 4, 4)];
    for (i, plan) in plans().into_iter().chain(large).enumerate() {
        let all = plan.capacity * u64::from(plan.max_stages);
        // Every third key comes again, one of them often, and some go past what is planned.
        let hashes: Vec<u64> =
            (0..all + all / 8).map(|i| mix(if i % 11 == 0 { 0 } else { i - i % 3 * (i % 2) })).collect();
        let (mut one, mut many, mut silent) = (made(plan), made(plan), made(plan));
        let (mut told, mut single, mut stopped) = (Vec::new(), Vec::new(), false);
        for &hash in &hashes {
            match one.add_hash(hash) {
                Ok(new) => single.push(u8::from(new)),
                Err(_) => break,
            }
        }
        in_batches(&hashes, i as u64, |batch| {
            if stopped {
                return;
            }
            let mut new = vec![9; batch.len()];
            stopped = many.add_hashes(batch, Some(&mut new)).is_err();
            assert_eq!(silent.add_hashes(batch, None).is_err(), stopped);
            told.extend(new);
        });
        assert_eq!(stopped, single.len() < hashes.len());
        assert_eq!(told[..single.len()], single[..]);
        assert!(bytes(&one) == bytes(&many) && bytes(&one) == bytes(&silent), "{plan:?}");
        let probes: Vec<u64> = (0..2 * all + 5000).map(mix).collect();
        let (mut found, mut counts) = (vec![9; probes.len()], vec![9; probes.len()]);
        many.contains_hashes(&probes, &mut found);
        many.count_hashes(&probes, &mut counts);
        for ((&hash, found), count) in probes.iter().zip(found).zip(counts) {
            assert_eq!((found == 1, count), (one.contains_hash(hash), one.count_hash(hash)));
        }
        in_batches(&probes, 7, |batch| {
            let mut removed = vec![9; batch.len()];
            many.remove_hashes(batch, Some(&mut removed)).unwrap();
            silent.remove_hashes(batch, None).unwrap();
            for (&hash, removed) in batch.iter().zip(removed) {
                assert_eq!(one.remove_hash(hash).unwrap(), removed == 1);
            }
            assert!(bytes(&one) == bytes(&many) && bytes(&one) == bytes(&silent), "{plan:?}");
        });
    }
}

#[test]
fn a_dropped_stage_is_kept_aside_for_the_next_one_and_is_no_part_of_the_filter() {
    let mut filter = made(planned(100, 4, 4, 12));
    filter.add_hashes(&(0..250).map(mix).collect::<Vec<_>>(), None).unwrap();
    let (stage, before) = (filter.nbytes() / 3, bytes(&filter));
    filter.remove_hashes(&(100..250).map(mix).collect::<Vec<_>>(), None).unwrap();
    assert_eq!((filter.chain.stages.len(), filter.nbytes()), (1, 2 * stage));
    assert_eq!(filter.try_clone().unwrap().nbytes(), stage);
    assert!(reload(&filter).same_as(&filter));
    filter.add_hashes(&(100..250).map(mix).collect::<Vec<_>>(), None).unwrap();
    assert!(bytes(&filter) == before && filter.nbytes() == 3 * stage);
    filter.remove_hashes(&(100..250).map(mix).collect::<Vec<_>>(), None).unwrap();
    assert_eq!((filter.compact().unwrap(), filter.nbytes()), (0, stage));
}

#[test]
fn lying_files_are_refused_or_harm_nobody() {
    let mut filter = made(planned(30, 5, 4, 8));
    filter.add_hashes(&(0..80).map(mix).collect::<Vec<_>>(), None).unwrap();
    let damaged = |change: &dyn Fn(&mut Header, &mut Vec<Vec<u8>>)| {
        matches!(reload_changed(&filter, change), Err(Error::Format(_)))
    };
    let params = filter.container().header.params;
    for (i, &(tag, index, value)) in params.iter().enumerate() {
        assert!(damaged(&|header, _| _ = header.params.remove(i)), "{tag} {index} missing");
        for wild in
            [0, 1, 2, 3, u64::MAX, 1 << 40, value + 1, value.wrapping_sub(1), value ^ 1 << 63, f64::NAN.to_bits()]
        {
            let Ok(mut opened) = reload_changed(&filter, |header, _| header.params[i].2 = wild) else { continue };
            // What may differ without contradiction: counts, a stash, the rate and stages of the whole.
            let free = [tag::COUNT, tag::STASH_FINGERPRINT, tag::STASH_BUCKET].contains(&tag)
                || index == 0xffff && [tag::FPR, tag::MAX_STAGES].contains(&tag);
            assert!(wild == value || free, "{tag} {index} {wild}");
            for hash in (0..300).map(mix) {
                let _ = (opened.contains_hash(hash), opened.add_hash(hash), opened.count_hash(hash));
                let _ = opened.remove_hash(mix(hash)).unwrap();
            }
            let _ = (opened.compact(), opened.merge(&filter), opened.fpr(), opened.fill(), opened.info());
        }
    }
    assert!(damaged(&|header, _| header.params.push((tag::COUNT, 3, 0))));
    assert!(damaged(&|header, _| header.params.retain(|(_, index, _)| *index == 0xffff)), "no stage");
    assert!(damaged(&|header, _| header.params.retain(|(_, index, _)| *index != 1)), "a stage between is missing");
    assert!(damaged(&|header, _| header.scheme = 1));
    assert!(damaged(&|_, cells| _ = cells.pop()), "cells of a stage are missing");
    assert!(damaged(&|_, cells| cells[1].iter_mut().for_each(|byte| *byte = 255)), "bits beyond the buckets");
    // More stages than are allowed.
    let allow = |most: u64| reload_changed(&filter, move |header, _| header.params[2].2 = most);
    assert!(allow(2).is_err() && allow(3).is_ok() && allow(1024).is_ok() && allow(1025).is_err());
}
