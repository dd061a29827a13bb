use super::*;
use crate::container::tag;
use crate::structure::Mergeable;
use crate::structure::conformance::{counting, lying, removing};
use crate::structure::testing::{hash, reload_changed};

/// Full as soon as half of its slots are taken and a key finds no free slot.
fn create(shape: CuckooShape) -> CuckooFilter {
    CuckooFilter::new(shape, shape.slots().div_ceil(2), 0.5, KeyHasher::seeded(0)).unwrap()
}

/// Items at the first refusal.
fn first_failure(shape: CuckooShape, from: u64) -> f64 {
    let mut filter = create(shape);
    for i in from.. {
        if filter.add_hash(hash(i)).is_err() || filter.is_full() {
            break;
        }
    }
    filter.num_added() as f64 / shape.slots() as f64
}

fn shape(buckets: u64, bucket_size: u32, fingerprint_bits: u32, semi_sort: bool) -> CuckooShape {
    CuckooShape { buckets, bucket_size, fingerprint_bits, semi_sort }
}

/// The shapes of the tests: every bucket rule, and numbers of buckets that are no power of two.
fn shapes() -> Vec<CuckooShape> {
    let plain = [(1, 8), (2, 12), (4, 8), (4, 12), (4, 16), (4, 20), (4, 32), (8, 8), (8, 12), (8, 32)];
    let plain = plain.into_iter().map(|(b, f)| shape(37, b, f, false));
    plain
        .chain([8, 13, 20, 32].map(|f| shape(37, 4, f, true)))
        .chain([shape(1, 4, 4, false), shape(2, 2, 4, false)])
        .collect()
}

/// Random operations against an exact multiset of (fingerprint, pair of buckets).
#[test]
#[ignore = "long: make test-all runs it"]
fn the_table_holds_what_an_exact_multiset_holds() {
    for shape in shapes() {
        let mut filter = create(shape);
        let mut model = std::collections::HashMap::<(u64, u64), u64>::new();
        let name = |h: u64, f: &CuckooFilter| {
            let spot = f.places.of(h);
            (spot.fp, spot.first.min(spot.second))
        };
        let (mut x, mut refused) = (9u64, 0);
        for step in 0..20_000u64 {
            x = hash(x ^ step);
            // The first half fills more than it empties, the second the reverse.
            let (h, adds) = (hash(x % (2 * shape.slots())), (x >> 40) % 8 < if step % 4000 < 2000 { 6 } else { 2 });
            let key = name(h, &filter);
            let held = model.get(&key).copied().unwrap_or(0);
            assert_eq!(filter.count_hash(h), held, "{shape:?}");
            assert_eq!(filter.contains_hash(h), held > 0);
            if adds {
                let before = (filter.num_added(), filter.is_full());
                match filter.add_hash(h) {
                    Ok(new) => {
                        assert_eq!(new, held == 0);
                        *model.entry(key).or_default() += 1;
                    }
                    Err(error) => {
                        assert!(matches!(error, Error::Capacity(_)));
                        assert!(filter.has_stashed() || held >= u64::from(shape.bucket_size));
                        assert_eq!(before, (filter.num_added(), filter.is_full()));
                        refused += 1;
                    }
                }
            } else {
                assert_eq!(filter.remove_hash(h).unwrap(), held > 0);
                if held > 0 {
                    model.insert(key, held - 1);
                }
            }
            assert_eq!(filter.num_added(), model.values().sum::<u64>());
        }
        assert!(refused > 0, "{shape:?} was never full");
        assert_eq!(filter.items(), filter.num_added());
    }
}

#[test]
fn a_full_table_still_finds_every_key_and_goes_on_after_a_removal() {
    for shape in shapes().into_iter().filter(|shape| shape.buckets > 2) {
        let mut filter = create(shape);
        let kept: Vec<u64> = (0..).map(hash).take_while(|&h| filter.add_hash(h).is_ok()).collect();
        assert!(kept.iter().all(|&h| filter.contains_hash(h)), "{shape:?}");
        let mut left = kept.clone();
        while filter.is_full() || filter.add_hash(hash(1 << 40)).is_err() {
            assert!(filter.remove_hash(left.pop().unwrap()).unwrap());
            assert!(left.iter().all(|&h| filter.contains_hash(h)), "{shape:?}");
        }
        assert!(left.iter().all(|&h| filter.contains_hash(h)) && filter.contains_hash(hash(1 << 40)));
    }
}

#[test]
#[ignore = "long: make test-all runs it"]
fn first_failures_come_at_the_published_loads() {
    for (bucket_size, least) in [(2, 0.84), (4, 0.95), (8, 0.98)] {
        for slots in [1 << 14, 1 << 17, 1 << 20] {
            let load = first_failure(shape(slots / u64::from(bucket_size) + 1, bucket_size, 12, false), 0);
            assert!(load >= least, "b = {bucket_size}, {slots} slots: {load}");
        }
    }
}

#[test]
fn sized_tables_hold_their_capacity() {
    for bucket_size in [2, 4, 8] {
        for (capacity, trials) in [(1, 1000), (3, 1000), (10, 1000), (40, 500), (150, 300), (1000, 50), (10_000, 5)] {
            for fpr in [0.3, 0.01] {
                let shape = CuckooShape::for_capacity(capacity, fpr, bucket_size, None, false).unwrap();
                for trial in 0..trials {
                    let mut filter = CuckooFilter::new(shape, capacity, fpr, KeyHasher::seeded(0)).unwrap();
                    let added = (0..capacity).try_for_each(|i| filter.add_hash(hash(trial << 32 | i)).map(drop));
                    added.unwrap_or_else(|error| panic!("b = {bucket_size}, n = {capacity}: {error}"));
                }
            }
        }
    }
}

#[test]
fn merging_holds_both_and_changes_nothing_when_it_cannot() {
    for shape in shapes().into_iter().filter(|shape| shape.buckets > 2) {
        let (mut a, mut b) = (create(shape), create(shape));
        let quarter = shape.slots() / 5;
        (0..quarter).for_each(|i| assert!(a.add_hash(hash(i)).is_ok()));
        (quarter..2 * quarter).for_each(|i| assert!(b.add_hash(hash(i)).is_ok()));
        let before = a.try_clone().unwrap();
        match a.merge(&b) {
            Ok(()) => {
                assert!((0..2 * quarter).all(|i| a.contains_hash(hash(i))));
                assert_eq!((a.items(), a.num_added()), (2 * quarter, 2 * quarter));
            }
            Err(_) => assert!(a.same_as(&before) && shape.bucket_size == 1),
        }
        let before = a.try_clone().unwrap();
        while !b.is_full() {
            let _ = b.add_hash(hash(b.num_added() + 1000));
        }
        assert!(matches!(a.merge(&b), Err(Error::Capacity(_))));
        assert!(a.same_as(&before) && a.num_added() == before.num_added());
    }
    let other = create(shape(38, 4, 12, false));
    assert!(matches!(create(shape(37, 4, 12, false)).merge(&other), Err(Error::Incompatible(_))));
}

#[test]
fn batches_and_files_of_every_shape_are_the_filter_of_single_operations() {
    for shape in shapes() {
        removing(&|| create(shape), shape.slots());
        counting(&|| create(shape), shape.slots() * 3 / 4);
    }
}

#[test]
fn forged_files_are_harmless() {
    for shape in shapes() {
        let mut filter = create(shape);
        while !filter.is_full() && filter.add_hash(hash(filter.num_added())).is_ok() {}
        let result = [tag::NUM_BUCKETS, tag::BUCKET_SIZE, tag::FINGERPRINT_BITS, tag::SEMI_SORT];
        lying(&filter, |tag, _, wild| !result.contains(&tag) || wild < 64, |mut f| drop(f.merge(&filter)));
        let used = shape.bits() as usize / 8;
        // Any bits at all in the buckets: answers are wrong, nothing else.
        let noisy = |cells: &mut Vec<u8>| (0..).zip(&mut cells[..used]).for_each(|(i, byte)| *byte = hash(i) as u8);
        let mut noise = reload_changed(&filter, |_, cells| noisy(&mut cells[0])).unwrap();
        for i in 0..2000 {
            let _ = (noise.contains_hash(hash(i)), noise.count_hash(hash(i)), noise.remove_hash(hash(i)).unwrap());
            let _ = (noise.add_hash(hash(i)), noise.fill(), noise.fpr());
        }
        let _ = noise.merge(&filter);
    }
}
