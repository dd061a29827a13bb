use std::collections::HashMap;

use super::*;
use crate::hash::splitmix::SplitMix as Random;
use crate::structure::Declared;
use crate::structure::testing::reload;

fn filter(shape: Shape, capacity: u64) -> DLeftCountingFilter {
    DLeftCountingFilter::new(shape, capacity, 0.01, KeyHasher::seeded(0)).unwrap()
}

fn shape(subtables: u32, cells: u32, remainder_bits: u32, buckets: u64) -> Shape {
    Shape { subtables, cells, remainder_bits, buckets }
}

#[test]
fn a_cell_names_its_fingerprint() {
    for shape in [shape(4, 8, 14, 10), shape(2, 6, 1, 1), shape(8, 64, 30, 3), shape(3, 7, 9, 1001)] {
        let (table, mut random) = (Table::new(shape).unwrap(), Random(1));
        let mut words = vec![0; shape.words() as usize];
        for _ in 0..2000 {
            let fingerprint = table.fingerprint(random.next());
            words.fill(0);
            let (room, found) = table.survey(&words, fingerprint);
            assert!(!found && table.place(&mut words, room, fingerprint) && table.contains(&words, fingerprint));
            let mut cells = Vec::new();
            table.each_cell(&words, fingerprint, |cell| {
                cells.push(cell);
                true
            });
            assert_eq!(cells.len(), 1);
            assert_eq!(table.fingerprint_at(&words, cells[0]), fingerprint);
        }
    }
}

#[test]
fn every_operation_agrees_with_a_multiset_of_fingerprints() {
    for (i, shape) in [shape(4, 12, 3, 3), shape(2, 6, 6, 2), shape(3, 9, 20, 4), shape(8, 6, 2, 1), shape(4, 8, 30, 5)]
        .into_iter()
        .enumerate()
    {
        let mut random = Random(i as u64);
        let (mut f, mut model) = (filter(shape, 10), HashMap::<u64, u64>::new());
        let (mut refused, mut taken) = (0, 0);
        let pool: Vec<u64> = (0..300).map(|_| random.next()).collect();
        for step in 0..20_000 {
            let hash = pool[(random.next() % 300) as usize];
            let (fingerprint, copies) = (f.table.fingerprint(hash), 1 + random.next() % 6);
            let before = model.get(&fingerprint).copied().unwrap_or(0);
            // Waves, so that the table goes from empty to full and back.
            if random.next() % 100 < if step / 2000 % 2 == 0 { 70 } else { 30 } {
                for copy in 0..copies {
                    match f.add_hash(hash) {
                        Ok(new) => {
                            assert_eq!(new, before + copy == 0);
                            *model.entry(fingerprint).or_default() += 1;
                            taken += 1;
                        }
                        Err(Error::Capacity(_)) => refused += 1,
                        Err(other) => panic!("{other}"),
                    }
                }
            } else {
                for _ in 0..copies {
                    let had = model.get(&fingerprint).copied().unwrap_or(0);
                    assert_eq!(f.remove_hash(hash).unwrap(), had > 0);
                    if had > 1 {
                        model.insert(fingerprint, had - 1);
                    } else {
                        model.remove(&fingerprint);
                    }
                }
            }
            assert_eq!(f.num_added(), model.len() as u64);
            if step % 97 == 0 {
                assert!(pool.iter().all(|&hash| {
                    let count = model.get(&f.table.fingerprint(hash)).copied().unwrap_or(0);
                    f.count_hash(hash) == count && f.contains_hash(hash) == (count > 0)
                }));
                let again = reload(&f);
                assert!(again.same_as(&f) && again.num_added() == f.num_added());
            }
        }
        assert!(taken > 1000 && (refused > 0 || i != 1), "{i}: {taken} {refused}");
    }
}

#[test]
fn merging_adds_the_counts_or_changes_nothing() {
    let shape = shape(4, 8, 10, 6);
    let mut random = Random(4);
    for round in 0..200 {
        let (mut a, mut b) = (filter(shape, 100), filter(shape, 100));
        let pool: Vec<u64> = (0..120).map(|_| random.next()).collect();
        let keys = if round % 2 == 0 { 60 } else { 150 };
        for f in [&mut a, &mut b] {
            for _ in 0..keys {
                let hash = pool[(random.next() % 120) as usize];
                let _ = f.add_hash(hash);
            }
        }
        let sums: Vec<u64> = pool.iter().map(|&hash| a.count_hash(hash) + b.count_hash(hash)).collect();
        let before = a.try_clone().unwrap();
        match a.merge(&b) {
            Ok(()) => assert!(pool.iter().zip(sums).all(|(&hash, sum)| a.count_hash(hash) == sum)),
            Err(Error::Capacity(_)) => assert!(a.same_as(&before) && a.num_added() == before.num_added()),
            Err(other) => panic!("{other}"),
        }
    }
    let other = filter(Shape { buckets: 7, ..shape }, 100);
    assert!(matches!(filter(shape, 100).merge(&other), Err(Error::Incompatible(m)) if m.contains("buckets (6 and 7)")));
}

#[test]
fn a_million_copies_need_thirteen_cells() {
    let mut f = filter(shape(4, 8, 14, 10), 100);
    for _ in 0..1_000_000 {
        f.add_hash(77).unwrap();
    }
    assert_eq!((f.count_hash(77), f.num_added()), (1_000_000, 1));
    assert_eq!(f.bucket_loads().iter().enumerate().map(|(load, n)| load as u64 * n).sum::<u64>(), 13);
    for left in (0..1_000_000).rev() {
        assert!(f.remove_hash(77).unwrap());
        if left % 9973 == 0 {
            assert_eq!(f.count_hash(77), left);
        }
    }
    assert!(!f.remove_hash(77).unwrap() && f.fill() == 0.0);
}

#[test]
fn the_published_loads_and_rate() {
    let shape = Shape::for_capacity(240_000, 0.0015, 4, 8).unwrap();
    assert_eq!(shape, super::Shape { subtables: 4, cells: 8, remainder_bits: 14, buckets: 10_000 });
    assert_eq!(shape.num_cells() * u64::from(shape.width()) * 3, 64 * 240_000);
    let (mut f, mut random) = (filter(shape, 240_000), Random(5));
    let hashes: Vec<u64> = (0..240_000).map(|_| random.next()).collect();
    f.add_hashes(&hashes, None).unwrap();
    let share: Vec<f64> = f.bucket_loads().iter().map(|&n| n as f64 / 40_000.0).collect();
    for (load, published) in [(5, 0.121), (6, 0.749), (7, 0.127)] {
        assert!((share[load] - published).abs() < 0.006, "{load}: {}", share[load]);
    }
    assert!(share[..5].iter().sum::<f64>() < 0.005 && share[8] == 0.0);
    let found = (0..2_000_000).filter(|_| f.contains_hash(random.next())).count() as f64 / 2e6;
    let sd = (0.001465f64 / 2e6).sqrt();
    assert!((found - 0.001464).abs() < 4.0 * sd + 2e-6, "{found}");
}

#[test]
fn sizes_keep_the_promise_and_the_bar() {
    for capacity in [1, 2, 7, 100, 1000, 30_000, 1 << 40] {
        for fpr in [0.9, 0.5, 0.1, 0.01, 0.001, 1e-6] {
            for (d, w) in [(4, 12), (2, 6), (3, 8), (4, 8), (8, 64)] {
                let shape = Shape::for_capacity(capacity, fpr, d, w).unwrap();
                let law = -(capacity as f64 * (-1.0 / shape.fingerprints() as f64).ln_1p()).exp_m1();
                assert!(law <= fpr * (1.0 + 1e-9), "{capacity} {fpr} {d} {w}: {law}");
            }
        }
    }
    let bits = DLeftCountingFilter::cell_bytes(1_000_000, 0.01, 4, 12).unwrap() as f64 * 8.0 / 1e6;
    assert!(bits <= 0.45 * 4.0 * 9.585, "{bits}");
    assert!(matches!(Shape::for_capacity(1 << 50, 1e-4, 4, 12), Ok(_) | Err(Error::Parameter(_))));
    for (capacity, fpr, d, w) in
        [(0, 0.1, 4, 8), (1, 0.0, 4, 8), (1, 0.1, 1, 8), (1, 0.1, 9, 8), (1, 0.1, 4, 5), (1, 0.1, 4, 65)]
    {
        assert!(matches!(Shape::for_capacity(capacity, fpr, d, w), Err(Error::Parameter(_))));
    }
}

#[test]
fn any_cells_are_survived() {
    let mut random = Random(6);
    for shape in [shape(4, 12, 12, 5), shape(8, 64, 1, 1), shape(2, 6, 60, 2)] {
        let (mut a, mut b) = (filter(shape, 10), filter(shape, 10));
        for f in [&mut a, &mut b] {
            f.memory.words_mut().unwrap().iter_mut().for_each(|word| *word = random.next());
        }
        let _ = a.merge(&b);
        for _ in 0..5000 {
            let hash = random.next();
            let _ = (a.add_hash(hash), a.count_hash(hash), a.remove_hash(hash), a.remove_hash(!hash));
        }
        assert!(a.fill() <= 1.0 && a.info().len() == 14);
    }
}

#[test]
fn full_tables_hold_their_capacity_while_keys_come_and_go() {
    for (subtables, cells) in [(2, 8), (3, 8), (4, 6), (4, 8), (4, 12)] {
        for (capacity, seeds) in [(50u64, 100), (500, 20), (20_000, 2)] {
            for seed in 0..seeds {
                let mut random = Random(seed);
                let mut f = filter(Shape::for_capacity(capacity, 0.01, subtables, cells).unwrap(), capacity);
                let mut keys: Vec<u64> = (0..capacity).map(|_| random.next()).collect();
                f.add_hashes(&keys, None).unwrap();
                for _ in 0..2 * capacity {
                    let i = (random.next() % capacity) as usize;
                    assert!(f.remove_hash(keys[i]).unwrap());
                    keys[i] = random.next();
                    f.add_hash(keys[i]).unwrap();
                }
                assert!(keys.iter().all(|&hash| f.contains_hash(hash)));
            }
        }
    }
}
