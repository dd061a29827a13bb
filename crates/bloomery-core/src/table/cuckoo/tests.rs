use super::*;
use crate::container::{Header, tag};
use crate::structure::Loadable;

fn hash(i: u64) -> u64 {
    let x = (i ^ i >> 31).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

fn made(shape: CuckooShape) -> CuckooFilter {
    CuckooFilter::new(shape, shape.slots(), 0.5, KeyHasher::seeded(0)).unwrap()
}

/// Items at the first refusal.
fn first_failure(shape: CuckooShape, from: u64) -> f64 {
    let mut filter = made(shape);
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
fn the_table_holds_what_an_exact_multiset_holds() {
    for shape in shapes() {
        let mut filter = made(shape);
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
                        assert!(before.1 || held >= u64::from(shape.bucket_size));
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
fn batches_leave_the_same_bytes_as_single_operations() {
    for shape in shapes() {
        let (mut one, mut many) = (made(shape), made(shape));
        let hashes: Vec<u64> = (0..shape.slots() * 3 / 4).map(|i| hash(i * 5 / 4)).collect();
        let (mut told, mut single) = (vec![0; hashes.len()], vec![0; hashes.len()]);
        let batch = many.add_hashes(&hashes, Some(&mut told)).is_ok();
        let singly =
            hashes.iter().zip(&mut single).try_for_each(|(&h, new)| one.add_hash(h).map(|n| *new = u8::from(n)));
        assert_eq!((batch, told), (singly.is_ok(), single));
        assert!(one.same_as(&many) && one.num_added() == many.num_added());
        let (mut counts, mut found) = (vec![0; hashes.len()], vec![0; hashes.len()]);
        many.count_hashes(&hashes, &mut counts);
        many.contains_hashes(&hashes, &mut found);
        for (i, &h) in hashes.iter().enumerate() {
            assert_eq!((counts[i], found[i] == 1), (one.count_hash(h), one.contains_hash(h)));
        }
        let mut removed = vec![0; hashes.len()];
        many.remove_hashes(&hashes, Some(&mut removed)).unwrap();
        for (&h, &was_there) in hashes.iter().zip(&removed) {
            assert_eq!(one.remove_hash(h).unwrap(), was_there == 1);
        }
        assert!(one.same_as(&many) && one.num_added() == many.num_added());
    }
}

#[test]
fn a_full_table_still_finds_every_key_and_goes_on_after_a_removal() {
    for shape in shapes().into_iter().filter(|shape| shape.buckets > 2) {
        let mut filter = made(shape);
        let kept: Vec<u64> = (0..).map(hash).take_while(|&h| filter.add_hash(h).is_ok()).collect();
        assert!(kept.iter().all(|&h| filter.contains_hash(h)), "{shape:?}");
        let mut left = kept.clone();
        while filter.is_full() {
            assert!(filter.remove_hash(left.pop().unwrap()).unwrap());
            assert!(left.iter().all(|&h| filter.contains_hash(h)), "{shape:?}");
        }
        filter.add_hash(hash(1 << 40)).unwrap();
        assert!(left.iter().all(|&h| filter.contains_hash(h)) && filter.contains_hash(hash(1 << 40)));
    }
}

#[test]
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
        let (mut a, mut b) = (made(shape), made(shape));
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
    let other = made(shape(38, 4, 12, false));
    assert!(matches!(made(shape(37, 4, 12, false)).merge(&other), Err(Error::Incompatible(_))));
}

/// The filter rebuilt from its file with `change` made to header and cells.
fn reloaded(filter: &CuckooFilter, change: impl Fn(&mut Header, &mut [u64])) -> Result<CuckooFilter> {
    let mut header = filter.container().header;
    let mut copy = filter.memory.try_clone().unwrap();
    change(&mut header, copy.words_mut().unwrap());
    <CuckooFilter as Loadable>::load(&header, *filter.hasher(), &mut |_, _, words| {
        let memory = copy.try_clone()?;
        if words as usize * 8 == memory.len_bytes() { Ok(memory) } else { Err(Error::format("length")) }
    })
}

#[test]
fn files_come_back_and_lying_files_harm_nobody() {
    for shape in shapes() {
        let mut filter = made(shape);
        while !filter.is_full() && filter.add_hash(hash(filter.num_added())).is_ok() {}
        let back = reloaded(&filter, |_, _| {}).unwrap();
        assert!(back.same_as(&filter) && back.num_added() == filter.num_added() && back.is_full() == filter.is_full());
        for wrong in [tag::NUM_BUCKETS, tag::BUCKET_SIZE, tag::FINGERPRINT_BITS, tag::SEMI_SORT, tag::STASH_FINGERPRINT]
        {
            for value in [u64::MAX, 1 << 40, 77] {
                let lying = reloaded(&filter, |header, _| {
                    header.params.iter_mut().filter(|(t, _, _)| *t == wrong).for_each(|(_, _, v)| *v = value);
                });
                let plausible = wrong == tag::STASH_FINGERPRINT && value < 1 << shape.fingerprint_bits;
                assert!(plausible && filter.is_full() || lying.is_err(), "{shape:?} {wrong} {value}");
            }
        }
        // Any bits at all in the buckets: answers are wrong, nothing else.
        let mut noise = reloaded(&filter, |_, words| {
            let used = shape.bits() as usize;
            for (i, word) in words.iter_mut().enumerate() {
                let left = used.saturating_sub(64 * i);
                *word = if left >= 64 { hash(i as u64) } else { hash(i as u64) & ((1 << left) - 1) };
            }
        })
        .unwrap();
        for i in 0..2000 {
            let _ = (noise.contains_hash(hash(i)), noise.count_hash(hash(i)), noise.remove_hash(hash(i)).unwrap());
            let _ = (noise.add_hash(hash(i)), noise.fill(), noise.fpr());
        }
        let _ = noise.merge(&filter);
    }
}

#[test]
#[ignore = "a measurement"]
fn speed() {
    for n in [1_000_000u64, 10_000_000] {
        for (b, f, semi) in
            [(4, 12, false), (4, 13, true), (4, 16, false), (2, 12, false), (8, 12, false), (4, 8, false)]
        {
            let load = match b {
                2 => 0.84,
                4 => 0.95,
                _ => 0.98,
            };
            let buckets = (n as f64 / load / f64::from(b)).ceil() as u64;
            let keys: Vec<u64> = (0..n).map(hash).collect();
            let absent: Vec<u64> = (n..2 * n).map(hash).collect();
            let mut found = vec![0u8; n as usize];
            let (mut add, mut hit, mut miss) = (f64::MAX, f64::MAX, f64::MAX);
            for _ in 0..if n > 5_000_000 { 2 } else { 5 } {
                let mut filter = made(shape(buckets, b, f, semi));
                let time = std::time::Instant::now();
                for keys in keys.chunks(1024) {
                    filter.add_hashes(keys, None).unwrap();
                }
                add = add.min(time.elapsed().as_nanos() as f64 / n as f64);
                let time = std::time::Instant::now();
                for (keys, found) in keys.chunks(1024).zip(found.chunks_mut(1024)) {
                    filter.contains_hashes(keys, found);
                }
                hit = hit.min(time.elapsed().as_nanos() as f64 / n as f64);
                assert!(found.iter().all(|&f| f == 1));
                let time = std::time::Instant::now();
                for (keys, found) in absent.chunks(1024).zip(found.chunks_mut(1024)) {
                    filter.contains_hashes(keys, found);
                }
                miss = miss.min(time.elapsed().as_nanos() as f64 / n as f64);
            }
            let fpr = found.iter().map(|&f| f64::from(f)).sum::<f64>() / n as f64;
            println!("n {n} b {b} f {f} semi {semi}: add {add:.1} hit {hit:.1} miss {miss:.1} fpr {fpr:.6}");
        }
    }
}
