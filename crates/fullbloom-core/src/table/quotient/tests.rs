//! The table against an obvious model: a map from fingerprint to copies.

use std::collections::BTreeMap;

use super::stream::Groups;
use super::*;
use crate::cells::Memory;
use crate::hash::splitmix::SplitMix;
use crate::structure::testing::reload;

struct Random(SplitMix);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.next()
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

fn filter(quotient_bits: u32, remainder_bits: u32, counter_bits: u32) -> QuotientFilter {
    let geometry = Geometry { quotient_bits, remainder_bits, counter_bits };
    QuotientFilter {
        slots: Slots::new(geometry).unwrap(),
        hasher: KeyHasher::seeded(0),
        load: Load::new(geometry.limit(), 0.5).unwrap(),
        used: 0,
        max_bytes: u64::MAX,
    }
}

/// The hash of a fingerprint, other bits arbitrary.
fn hash(filter: &QuotientFilter, fingerprint: u64) -> u64 {
    let spare = 64 - filter.geometry().fingerprint_bits();
    fingerprint << spare | (fingerprint.wrapping_mul(0x9e37_79b9) & ((1u64 << spare) - 1))
}

type Model = BTreeMap<u64, u64>;

/// Everything a table says, against the model; and that its bits equal those of a rebuilt table.
fn check(filter: &QuotientFilter, model: &Model) {
    let found: Vec<(u64, u64)> = Groups::of(&[&filter.slots]).unwrap().collect();
    assert!(found.iter().copied().eq(model.iter().map(|(f, c)| (*f, *c))), "contents");
    let most = filter.geometry().most_copies();
    assert_eq!(filter.used, model.values().map(|copies| copies.div_ceil(most)).sum::<u64>());
    assert_eq!(filter.num_added(), model.len() as u64);
    let (rebuilt, _) = build(filter.geometry(), &[&filter.slots]).unwrap();
    for (array, (a, b)) in rebuilt.memories().into_iter().zip(filter.slots.memories()).enumerate() {
        assert!(a.words() == b.words(), "array {array} of {:?}", filter.geometry());
    }
    for (&fingerprint, &copies) in model {
        assert_eq!(filter.count_hash(hash(filter, fingerprint)), copies);
    }
}

/// Fingerprints crowd in `spread` of all values, around a place, and repeat.
fn drive(seed: u64, bits: [u32; 3], steps: usize, focus: u64, spread: u64) {
    let mut random = Random(SplitMix(seed));
    let (mut filter, mut model) = (filter(bits[0], bits[1], bits[2]), Model::new());
    let all = (1u64 << filter.geometry().fingerprint_bits()) - 1;
    let limit = filter.geometry().limit();
    let mut filling = true;
    for step in 0..steps {
        let fingerprint = focus.wrapping_add(random.below(spread)) & all;
        let key = hash(&filter, fingerprint);
        let copies = model.get(&fingerprint).copied().unwrap_or(0);
        assert_eq!(filter.contains_hash(key), copies > 0);
        if random.below(100) < if filling { 70 } else { 30 } {
            match filter.add_hash(key) {
                Ok(new) => {
                    assert_eq!(new, copies == 0);
                    *model.entry(fingerprint).or_default() += 1;
                }
                Err(Error::Capacity(_)) => {
                    assert_eq!(filter.used, limit);
                    filling = false;
                }
                Err(error) => panic!("{error}"),
            }
        } else {
            assert_eq!(filter.remove_hash(key).unwrap(), copies > 0);
            match copies {
                0 => {}
                1 => drop(model.remove(&fingerprint)),
                _ => drop(model.insert(fingerprint, copies - 1)),
            }
        }
        filling |= filter.used < limit / 8;
        if step % 97 == 0 {
            check(&filter, &model);
        }
    }
    check(&filter, &model);
}

#[test]
fn tables_agree_with_the_model_whatever_is_added_and_removed() {
    for (seed, [q, r]) in
        [[6, 1], [6, 3], [6, 9], [7, 8], [8, 13], [9, 5], [10, 2], [6, 58], [8, 56]].into_iter().enumerate()
    {
        let spread = if q + r > 62 { u64::MAX } else { 1 << (q + r) };
        let focus = if q + r == 64 { 0 } else { spread / 3 };
        if q + r < 64 {
            drive(seed as u64, [q, r, 0], 6000, focus, spread);
            // Few values: many copies.
            drive(seed as u64, [q, r, 0], 3000, focus, 20);
        }
        if r <= 40 {
            drive(seed as u64, [q, r, 8], 6000, focus, spread.min(1 << (q + 1)));
            drive(seed as u64, [q, r, 8], 4000, focus, 5);
        }
    }
}

#[test]
fn runs_that_wrap_around_the_end_agree_with_the_model() {
    for (seed, [q, r]) in [[6u32, 4u32], [7, 7], [9, 8], [10, 3]].into_iter().enumerate() {
        let last = (1u64 << (q + r)) - (2 << r);
        // The last quotients, the first few, and one in the middle of a block.
        for spread in [2 << r, 5 << r, 40 << r] {
            drive(seed as u64, [q, r, 0], 5000, last, spread);
            drive(seed as u64, [q, r, 8], 5000, last, spread);
        }
        drive(seed as u64, [q, r, 0], 5000, last - (30 << r), 3 << r);
    }
}

#[test]
fn runs_longer_than_an_offset_holds_agree_with_the_model() {
    for focus in [0, 77 << 6, (1 << 17) - 3] {
        drive(3, [11, 6, 0], 9000, focus, 3);
        drive(4, [11, 6, 0], 9000, focus, 300);
    }
}

#[test]
fn growing_and_merging_keep_every_copy() {
    let mut random = Random(SplitMix(11));
    for counter_bits in [0, 8] {
        for round in 0..12u64 {
            let (mut a, mut b) =
                (filter(7, 9, counter_bits), filter(6 + (round % 3) as u32, 10 - (round % 3) as u32, counter_bits));
            let mut models = [Model::new(), Model::new()];
            for (filter, model) in [&mut a, &mut b].into_iter().zip(&mut models) {
                let focus = if round % 2 == 0 { 0 } else { (1 << 16) - 300 };
                for _ in 0..filter.geometry().limit() / 2 {
                    let fingerprint = (focus + random.below(1 << (6 + round % 11))) & 0xffff;
                    filter.add_hash(hash(filter, fingerprint)).unwrap();
                    *model.entry(fingerprint).or_default() += 1;
                }
            }
            let before = a.try_clone().unwrap();
            if a.merge(&b).is_err() {
                assert!(a.same_as(&before));
                assert!(a.used + b.used > a.geometry().limit());
                a.grow().unwrap();
                a.merge(&b).unwrap();
            }
            for (fingerprint, copies) in &models[1].clone() {
                *models[0].entry(*fingerprint).or_default() += copies;
            }
            check(&a, &models[0]);
            while a.grow().is_ok() {
                check(&a, &models[0]);
            }
            assert_eq!(a.geometry().remainder_bits, 1);
            for fingerprint in models[0].keys() {
                assert!(a.remove_hash(hash(&a, *fingerprint)).unwrap());
            }
            assert!(reload(&a).same_as(&a));
        }
    }
}

#[test]
fn unlike_filters_do_not_merge() {
    let mut a = filter(6, 8, 0);
    for b in [filter(6, 9, 0), filter(6, 8, 8)] {
        assert!(matches!(a.merge(&b), Err(Error::Incompatible(_))));
    }
    a.merge(&filter(9, 5, 0)).unwrap();
}

#[test]
fn arbitrary_bytes_end_and_never_panic() {
    let mut random = Random(SplitMix(13));
    for round in 0..400 {
        let bits = [[6, 5, 0], [8, 9, 0], [7, 4, 8], [10, 14, 0]][round % 4];
        let mut damaged = filter(bits[0], bits[1], bits[2]);
        let geometry = damaged.geometry();
        let kind = random.below(6);
        let memories = geometry.words().map(|words| {
            let mut memory = Memory::zeroed(words).unwrap();
            for word in memory.words_mut().unwrap() {
                *word = match kind {
                    0 => u64::MAX,
                    1 => random.next() & random.next() & random.next() & random.next(),
                    2 => random.next() | random.next() | random.next(),
                    3 if random.below(4) > 0 => 0,
                    4 if random.below(4) > 0 => u64::MAX,
                    _ => random.next(),
                };
            }
            memory
        });
        damaged.slots = Slots::from_memory(geometry, memories).unwrap();
        damaged.used = random.below(geometry.limit());
        let mut sound = filter(bits[0], bits[1], bits[2]);
        for _ in 0..300 {
            let key = random.next();
            damaged.contains_hash(key);
            damaged.count_hash(key);
            let _ = damaged.add_hash(key);
            let _ = damaged.remove_hash(random.next());
        }
        let _ = sound.merge(&damaged);
        let _ = damaged.merge(&sound);
        let _ = damaged.grow();
    }
}

#[test]
fn a_filter_holds_its_rate_up_to_its_capacity() {
    let mut random = Random(SplitMix(17));
    for (capacity, fpr) in [(1, 1e-15), (60, 0.2), (1000, 0.01), (1945, 0.003), (50_000, 0.001)] {
        let mut filter = QuotientFilter::construct(capacity, fpr, false, KeyHasher::seeded(0)).unwrap();
        assert!(filter.fpr() <= fpr && filter.geometry().fpr(capacity) <= fpr);
        let hashes: Vec<u64> = (0..capacity).map(|_| random.next()).collect();
        filter.add_hashes(&hashes, None).unwrap();
        let mut found = vec![0; hashes.len()];
        filter.contains_hashes(&hashes, &mut found);
        assert!(found.iter().all(|&found| found == 1));
        let trials = 400_000;
        let wrong = (0..trials).filter(|_| filter.contains_hash(random.next())).count() as f64;
        let law = filter.fpr();
        let deviation = (law * (1.0 - law) * f64::from(trials)).sqrt();
        assert!((wrong - law * f64::from(trials)).abs() < 4.0 * deviation, "{capacity} {fpr} {wrong}");
    }
}
