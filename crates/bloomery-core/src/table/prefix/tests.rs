use super::*;
use crate::container::tag;
use crate::sizing::fingerprints::passed_on;
use crate::structure::Sizable;

fn hash(i: u64) -> u64 {
    let x = (i ^ i >> 31).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

fn made(capacity: u64, fpr: f64) -> PrefixFilter {
    PrefixFilter::construct(capacity, fpr, KeyHasher::seeded(0)).unwrap()
}

const RATES: [f64; 7] = [0.5, 0.05, 0.01, 0.004, 1e-3, 1e-5, 1e-6];

#[test]
fn no_key_is_lost_and_the_rate_is_kept() {
    for fpr in RATES {
        for capacity in [1, 30, 1000, 50_000] {
            let mut filter = made(capacity, fpr);
            let keys: Vec<u64> = (0..capacity).map(hash).collect();
            for &key in &keys {
                filter.add_hash(key).unwrap();
                assert!(filter.contains_hash(key) && !filter.add_hash(key).unwrap());
            }
            assert!(keys.iter().all(|&key| filter.contains_hash(key)));
            let trials = 200_000;
            let found = (0..trials).filter(|i| filter.contains_hash(hash(1 << 40 | i))).count() as f64;
            let spread = 4.0 * (fpr * trials as f64).sqrt() + 4.0;
            assert!(found <= fpr * trials as f64 * (1.0 + 4.0 / (capacity as f64).sqrt()) + spread, "{fpr} {capacity}");
            let law = filter.fpr() * trials as f64;
            assert!((found - law).abs() <= 0.03 * law + 5.0 * law.sqrt() + 3.0, "{fpr} {capacity}: {found} {law}");
        }
    }
}

#[test]
fn space_is_what_the_documentation_says() {
    for (fpr, published) in [(0.01, 11.07), (0.004, 11.47), (0.001, 14.37), (1e-4, 19.76), (1e-6, 26.05)] {
        let bits = PrefixFilter::nbytes_for(1_000_000, fpr, &[]).unwrap() as f64 * 8e-6;
        assert!((bits - published).abs() < 0.01, "{fpr}: {bits} {:?}", PrefixShape::for_capacity(1_000_000, fpr));
    }
    assert!(PrefixShape::for_capacity(1000, 9e-7).is_err() && PrefixShape::for_capacity(0, 0.01).is_err());
    assert!(PrefixShape::for_capacity(1 << 60, 0.01).is_err() && PrefixShape::for_capacity(10, 1.0).is_err());
}

#[test]
fn batches_leave_the_same_bytes_as_single_adds() {
    for fpr in RATES {
        let (mut one, mut many) = (made(2000, fpr), made(2000, fpr));
        let hashes: Vec<u64> = (0..4000).map(|i| hash(i * 3 / 4)).collect();
        let mut told = vec![0; hashes.len()];
        many.add_hashes(&hashes, Some(&mut told)).unwrap();
        for (&h, &new) in hashes.iter().zip(&told) {
            assert_eq!(one.add_hash(h).unwrap(), new == 1);
        }
        assert!(one.same_as(&many) && one.num_added() == many.num_added());
        let mut found = vec![0; 8000];
        let asked: Vec<u64> = (0..8000).map(hash).collect();
        many.contains_hashes(&asked, &mut found);
        assert!(asked.iter().zip(&found).all(|(&h, &f)| one.contains_hash(h) == (f == 1)));
    }
}

#[test]
fn the_published_shares_are_passed_on() {
    // variants.md B.23: 0.0799, 0.059 and 0.040 at loads 1, 0.95 and 0.90.
    for (load, published) in [(1.0, 0.0799), (0.95, 0.059), (0.90, 0.040)] {
        assert!((passed_on(load, BIN_SIZE) - published).abs() < 0.0012, "{}", passed_on(load, BIN_SIZE));
        let mut filter = made(1_000_000, 1e-6);
        let keys = (load * (filter.shape.bins * u64::from(BIN_SIZE)) as f64) as u64;
        (0..keys).for_each(|i| assert!(filter.add_hash(hash(i)).is_ok()));
        let share = filter.spare_items() / keys as f64;
        assert!((share - published).abs() < 0.0015, "load {load}: {share}");
    }
}

fn reloaded(filter: &PrefixFilter, change: impl Fn(&mut Header, &mut [u64])) -> Result<PrefixFilter> {
    let mut header = filter.container().header;
    let mut bins = filter.bins.try_clone().unwrap();
    change(&mut header, bins.words_mut().unwrap());
    let mut memory = |kind, _, words: u64| {
        let memory = if kind == kind::BINS { &bins } else { &filter.spare }.try_clone()?;
        if words as usize * 8 == memory.len_bytes() { Ok(memory) } else { Err(Error::format("length")) }
    };
    <PrefixFilter as Loadable>::load(&header, *filter.hasher(), &mut memory)
}

#[test]
fn files_come_back_and_lying_files_harm_nobody() {
    for fpr in RATES {
        let mut filter = made(3000, fpr);
        (0..3000).for_each(|i| assert!(filter.add_hash(hash(i)).is_ok()));
        let back = reloaded(&filter, |_, _| {}).unwrap();
        assert!(back.same_as(&filter) && back.num_added() == filter.num_added());
        for wrong in [tag::NUM_BINS, tag::REMAINDER_BITS, tag::SPARE_LINES, tag::SPARE_PER_COLUMN] {
            for value in [0, u64::MAX, 1 << 40, 177] {
                let lying = reloaded(&filter, |header, _| {
                    header.params.iter_mut().filter(|(t, _, _)| *t == wrong).for_each(|(_, _, v)| *v = value);
                });
                assert!(lying.is_err(), "{wrong} {value}");
            }
        }
        let used = filter.shape.bins as usize * filter.shape.bin_words();
        let noisy =
            reloaded(&filter, |_, words| (0..used).for_each(|i| words[i] = hash(i as u64) | hash(i as u64 / 3)));
        let mut noisy = noisy.unwrap();
        for i in 0..3000 {
            let _ = (noisy.contains_hash(hash(i)), noisy.add_hash(hash(i)));
        }
        assert!(noisy.fpr() <= 1.0 && noisy.fill() <= 1.0);
    }
}

#[test]
#[ignore = "a measurement"]
fn speed() {
    for n in [1_000_000u64, 10_000_000] {
        for fpr in [0.01, 0.001] {
            let keys: Vec<u64> = (0..n).map(hash).collect();
            let absent: Vec<u64> = (n..2 * n).map(hash).collect();
            let mut found = vec![0u8; n as usize];
            let (mut add, mut hit, mut miss, mut bits) = (f64::MAX, f64::MAX, f64::MAX, 0.0);
            for _ in 0..3 {
                let mut filter = made(n, fpr);
                let mut timed = |asked: &[u64], adding: bool| {
                    let time = std::time::Instant::now();
                    for (asked, found) in asked.chunks(1024).zip(found.chunks_mut(1024)) {
                        if adding {
                            filter.add_hashes(asked, None).unwrap();
                        } else {
                            filter.contains_hashes(asked, found);
                        }
                    }
                    time.elapsed().as_nanos() as f64 / n as f64
                };
                add = timed(&keys, true).min(add);
                hit = timed(&keys, false).min(hit);
                miss = timed(&absent, false).min(miss);
                bits = filter.nbytes() as f64 * 8.0 / n as f64;
            }
            let fpr = found.iter().map(|&f| f64::from(f)).sum::<f64>() / n as f64;
            println!("n {n}: add {add:.1} hit {hit:.1} miss {miss:.1} fpr {fpr:.6} bits {bits:.2}");
        }
    }
}
