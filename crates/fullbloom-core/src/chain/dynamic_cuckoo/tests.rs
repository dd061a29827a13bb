use std::collections::HashMap;

use super::*;
use crate::container::{Header, tag};
use crate::error::Error;
use crate::hash::splitmix::{SplitMix, mix};
use crate::structure::conformance::{counting, lying, removing};
use crate::structure::testing::{bytes, reload, reload_changed};
use crate::table::CuckooShape;

/// Stages of `capacity` keys in the tables of a constructor.
fn plan(capacity: u64, max_stages: u64, bucket_size: u32, fingerprint_bits: u32) -> Plan {
    Plan::for_capacity(capacity, 0.01, max_stages, bucket_size, Some(fingerprint_bits)).unwrap()
}

/// Stages so small for their capacity that stashes are taken and copies refused.
fn plan_crowded(buckets: u64, bucket_size: u32, fingerprint_bits: u32, max_stages: u32) -> Plan {
    let shape = CuckooShape { buckets, bucket_size, fingerprint_bits, semi_sort: false };
    Plan { capacity: shape.slots().div_ceil(2), fpr: 0.5, max_stages, shape, stage_fpr: 0.1 }
}

fn create(plan: Plan) -> DynamicCuckooFilter {
    DynamicCuckooFilter::new(plan, KeyHasher::seeded(0)).unwrap()
}

fn plans() -> Vec<Plan> {
    vec![
        plan(30, 5, 4, 8),
        plan(30, 5, 2, 12),
        plan(9, 16, 8, 4),
        plan(1, 3, 4, 8),
        plan(40, 1, 4, 20),
        plan_crowded(7, 1, 6, 4),
        plan_crowded(5, 2, 5, 6),
        plan_crowded(6, 4, 4, 3),
        plan_crowded(3, 8, 12, 4),
    ]
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
        stage
            .visit::<()>(|_, _| {
                counted += 1;
                Ok(())
            })
            .unwrap();
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
    let mut other = create(filter.plan);
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
/// any order, compacting, merging, saving and loading. No present key is ever missed, every count is exact.
#[test]
#[ignore = "long: make test-all runs it"]
fn the_stages_together_hold_what_an_exact_multiset_holds() {
    for (i, plan) in plans().into_iter().enumerate() {
        let (mut filter, mut model, mut random) = (create(plan), Model::new(), SplitMix(i as u64));
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

#[test]
fn growing_keeps_every_key_and_removal_in_any_order_denies_none() {
    for plan in [plan(100, 8, 4, 12), plan(100, 8, 2, 8), plan(10, 40, 4, 16)] {
        for order in 0..3 {
            let mut filter = create(plan);
            let mut hashes: Vec<u64> = (0..plan.capacity * u64::from(plan.max_stages)).map(mix).collect();
            for (i, &hash) in hashes.iter().enumerate() {
                filter.add_hash(hash).unwrap();
                assert_eq!(
                    filter.chain.stages.len() as u64,
                    (i as u64 / plan.capacity) + 1,
                    "a stage opens when one is full"
                );
            }
            assert!(!filter.newly_overfull() && !filter.is_roomy() && filter.capacity() == hashes.len() as u64);
            assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
            match order {
                0 => hashes.reverse(),
                1 => {}
                _ => hashes.sort_unstable(),
            }
            while let Some(hash) = hashes.pop() {
                assert!(filter.remove_hash(hash).unwrap());
                if hashes.len().is_multiple_of(50) {
                    assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
                }
            }
            assert_eq!((filter.chain.stages.len(), filter.num_added(), filter.fill()), (1, 0, 0.0));
        }
    }
}

#[test]
fn batches_of_any_size_leave_the_bytes_and_answers_of_single_calls() {
    let large = [plan(1000, 8, 4, 10), plan(5000, 3, 8, 12), plan(700, 12, 4, 4)];
    for plan in plans().into_iter().chain(large) {
        let all = plan.capacity * u64::from(plan.max_stages);
        // Up to what is planned, and past it.
        removing(&|| create(plan), all + all / 8);
        counting(&|| create(plan), all);
    }
}

#[test]
fn a_full_filter_warns_once_refuses_without_change_and_goes_on_after_a_removal() {
    for plan in [plan(30, 5, 4, 8), plan_crowded(7, 2, 12, 4), plan(50, 1, 4, 16)] {
        let mut filter = create(plan);
        let planned = plan.capacity * u64::from(plan.max_stages);
        let (mut kept, mut warnings) = (Vec::new(), 0);
        for hash in (0..).map(mix) {
            let before = bytes(&filter);
            if filter.add_hash(hash).is_err() {
                assert!(filter.is_full() && bytes(&filter) == before, "{plan:?}");
                break;
            }
            kept.push(hash);
            let newly = filter.newly_overfull();
            assert_eq!(newly, kept.len() as u64 == planned + 1);
            warnings += u32::from(newly);
        }
        assert_eq!(warnings, u32::from(kept.len() as u64 > planned));
        assert!(filter.chain.stages.iter().all(CuckooFilter::is_full));
        assert!(kept.iter().all(|&hash| filter.contains_hash(hash)));
        while filter.is_full() {
            assert!(filter.remove_hash(kept.pop().unwrap()).unwrap());
        }
        filter.add_hash(mix(1 << 40)).unwrap();
        assert!(kept.iter().all(|&hash| filter.contains_hash(hash)) && filter.contains_hash(mix(1 << 40)));
    }
}

#[test]
fn copies_beyond_both_buckets_go_to_the_stages_that_so_many_keys_may_have() {
    let mut filter = create(plan(100, 3, 2, 12));
    for copies in 0..8 {
        assert_eq!(filter.add_hash(5).unwrap(), copies == 0);
        assert_eq!((filter.count_hash(5), filter.chain.stages.len()), (copies + 1, copies as usize / 4 + 1));
    }
    let before = bytes(&filter);
    let error = filter.add_hash(5).unwrap_err();
    assert!(error.to_string().contains("8 copies") && bytes(&filter) == before && !filter.is_full());
    filter.add_hash(6).unwrap();
    // The first stage has free space, so all others go there.
    assert_eq!(filter.chain.stages[0].num_added(), 5);
    for copies in (0..8).rev() {
        assert!(filter.remove_hash(5).unwrap());
        assert_eq!(filter.count_hash(5), copies);
    }
    assert!(!filter.remove_hash(5).unwrap() && filter.contains_hash(6) && filter.chain.stages.len() == 1);
}

#[test]
fn a_dropped_stage_is_kept_aside_for_the_next_one_and_is_no_part_of_the_filter() {
    let mut filter = create(plan(100, 4, 4, 12));
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
fn compacting_frees_what_earlier_stages_have_room_for_and_loses_nothing() {
    let plan = plan(200, 10, 4, 12);
    let mut filter = create(plan);
    let hashes: Vec<u64> = (0..2000).map(mix).collect();
    filter.add_hashes(&hashes, None).unwrap();
    assert_eq!(filter.compact().unwrap(), 0, "full stages have room for nothing");
    let (gone, left): (Vec<u64>, Vec<u64>) = hashes.iter().partition(|&&hash| hash % 4 != 0);
    filter.remove_hashes(&gone, None).unwrap();
    assert_eq!(filter.chain.stages.len(), 10);
    let freed = filter.compact().unwrap();
    assert_eq!((freed, filter.chain.stages.len()), (10 - left.len().div_ceil(200), left.len().div_ceil(200)));
    assert!(left.iter().all(|&hash| filter.contains_hash(hash)) && filter.num_added() == left.len() as u64);
    assert_eq!(filter.compact().unwrap(), 0);
    assert!(left.iter().all(|&hash| filter.remove_hash(hash).unwrap()));
    assert_eq!((filter.num_added(), filter.chain.stages.len()), (0, 1));
}

#[test]
fn merging_sums_both_and_changes_nothing_when_they_do_not_fit() {
    let (small, large) = (plan(100, 4, 4, 12), plan(100, 9, 4, 12));
    let (mut a, mut b) = (create(small), create(large));
    let [mine, theirs]: [Vec<u64>; 2] = [(0..150).map(mix).collect(), (100..300).map(mix).collect()];
    a.add_hashes(&mine, None).unwrap();
    b.add_hashes(&theirs, None).unwrap();
    a.merge(&b).unwrap();
    assert_eq!((a.num_added(), a.chain.stages.len(), a.plan.max_stages), (350, 4, 4));
    assert!((0..300).all(|i| a.count_hash(mix(i)) > u64::from((100..150).contains(&i))));
    let before = bytes(&a);
    b.add_hashes(&(300..800).map(mix).collect::<Vec<_>>(), None).unwrap();
    assert!(matches!(a.merge(&b), Err(Error::Capacity(_))) && bytes(&a) == before);
    assert!(matches!(a.merge(&create(plan(500, 4, 4, 12))), Err(Error::Incompatible(_))));
    let stranger = DynamicCuckooFilter::new(small, KeyHasher::seeded(1)).unwrap();
    assert!(matches!(a.merge(&stranger), Err(Error::Incompatible(_))) && bytes(&a) == before);
}

#[test]
fn all_stages_full_keep_the_rate_of_the_whole() {
    for (capacity, fpr, stages) in [(300, 0.01, 16), (5000, 0.02, 4), (1000, 0.001, 1), (200, 0.05, 50)] {
        let plan = Plan::for_capacity(capacity, fpr, stages, 4, None).unwrap();
        let mut filter = create(plan);
        let keys = capacity * stages;
        filter.add_hashes(&(0..keys).map(mix).collect::<Vec<_>>(), None).unwrap();
        assert!(filter.fpr() <= fpr && filter.chain.stages.len() == stages as usize);
        let probes = 400_000;
        let found = (keys..keys + probes).filter(|&i| filter.contains_hash(mix(i))).count() as f64;
        let deviation = (fpr * probes as f64).sqrt();
        assert!(found <= fpr * probes as f64 + 4.0 * deviation, "{found}");
        // Fingerprints are a sample too: 1 / sqrt(keys) of the rate varies with them.
        let law = filter.fpr() * probes as f64;
        assert!((found - law).abs() <= 4.0 * (deviation + law / (keys as f64).sqrt()), "{found} {law}");
    }
}

#[test]
fn impossible_parameters_are_refused() {
    let refused = |n, p, stages, b, f| Plan::for_capacity(n, p, stages, b, f).unwrap_err().to_string();
    assert!(refused(0, 0.01, 4, 4, None).contains("capacity") && refused(9, 1.5, 4, 4, None).contains("fpr"));
    assert!(refused(9, 0.01, 0, 4, None).contains("between 1 and 1024, got 0"));
    assert!(refused(9, 0.01, 1025, 4, None).contains("1025") && refused(9, 0.01, 4, 3, None).contains("bucket_size"));
    assert!(refused(9, 0.01, 4, 4, Some(33)).contains("fingerprint_bits"));
    assert!(refused(9, 1e-8, 1000, 4, None).contains("share of each of 1000 stages in fpr 1e-8"));
    assert!(refused(9, 0.01, 1024, 8, Some(4)).contains("fingerprint_bits must be larger"));
}

#[test]
fn forged_files_are_refused_or_harmless() {
    let mut filter = create(plan(30, 5, 4, 8));
    filter.add_hashes(&(0..80).map(mix).collect::<Vec<_>>(), None).unwrap();
    // What may differ without contradiction: counts, a stash, the rate and stages of the whole.
    let free = |tag, index, _| {
        [tag::COUNT, tag::STASH_FINGERPRINT, tag::STASH_BUCKET].contains(&tag)
            || index == 0xffff && [tag::FPR, tag::MAX_STAGES].contains(&tag)
    };
    lying(&filter, free, |mut opened| {
        for hash in (0..300).map(mix) {
            let _ = (opened.contains_hash(hash), opened.add_hash(hash), opened.count_hash(hash));
            let _ = opened.remove_hash(mix(hash)).unwrap();
        }
        let _ = (opened.compact(), opened.merge(&filter), opened.fpr(), opened.fill(), opened.info());
    });
    let damaged = |change: &dyn Fn(&mut Header, &mut Vec<Vec<u8>>)| {
        matches!(reload_changed(&filter, change), Err(Error::Format(_)))
    };
    assert!(damaged(&|header, _| header.params.retain(|(_, index, _)| *index == 0xffff)), "no stage");
    assert!(damaged(&|header, _| header.params.retain(|(_, index, _)| *index != 1)), "a stage between is missing");
    assert!(damaged(&|_, cells| cells[1].iter_mut().for_each(|byte| *byte = 255)), "bits beyond the buckets");
    // More stages than are allowed.
    let allow = |most: u64| {
        reload_changed(&filter, |header, _| {
            let mut own = header.params.iter_mut().filter(|(tag, ..)| *tag != crate::container::tag::KEY_DOMAINS);
            own.nth(2).unwrap().2 = most;
        })
    };
    assert!(allow(2).is_err() && allow(3).is_ok() && allow(1024).is_ok() && allow(1025).is_err());
}

#[test]
#[ignore = "long: make test-all runs it"]
fn any_cells_at_all_are_survived() {
    let mut filter = create(plan(30, 5, 4, 8));
    filter.add_hashes(&(0..110).map(mix).collect::<Vec<_>>(), None).unwrap();
    let used = (filter.plan.shape.bits() / 8) as usize;
    for seed in 0..50 {
        let noise = |_: &mut Header, cells: &mut Vec<Vec<u8>>| {
            let mut random = SplitMix(seed);
            cells.iter_mut().flat_map(|cells| &mut cells[..used]).for_each(|byte| *byte = random.next() as u8);
        };
        let mut opened = reload_changed(&filter, noise).unwrap();
        let mut random = SplitMix(seed);
        for _ in 0..2000 {
            let hash = random.next();
            let _ = (opened.contains_hash(hash), opened.count_hash(hash), opened.remove_hash(hash).unwrap());
            let _ = (opened.add_hash(random.next()), opened.is_full());
        }
        let _ = (opened.compact().unwrap(), opened.merge(&filter), opened.fpr(), opened.fill());
        assert!(opened.chain.stages.len() <= 5);
    }
}
