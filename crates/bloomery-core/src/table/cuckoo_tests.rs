use super::*;

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
        filter.add_hash(hash(i)).unwrap();
        if filter.is_full() {
            break;
        }
    }
    filter.num_added() as f64 / shape.slots() as f64
}

fn shape(buckets: u64, bucket_size: u32, fingerprint_bits: u32, semi_sort: bool) -> CuckooShape {
    CuckooShape { buckets, bucket_size, fingerprint_bits, semi_sort }
}

#[test]
#[ignore = "an experiment"]
fn small() {
    for b in [1u32, 2, 4, 8] {
        for buckets in [2u64, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024, 4096, 16384, 65536] {
            let trials = (1_000_000 / buckets / u64::from(b)).clamp(20, 20_000);
            let mut loads: Vec<u64> = (0..trials)
                .map(|t| (first_failure(shape(buckets, b, 16, false), t << 32) * (buckets * u64::from(b)) as f64) as u64)
                .collect();
            loads.sort();
            let at = |q: f64| loads[(q * trials as f64) as usize];
            println!(
                "b {b} slots {} trials {trials} min {} q.001 {} q.01 {} med {}",
                buckets * u64::from(b), loads[0], at(0.001), at(0.01), at(0.5)
            );
        }
    }
    for f in [4, 5, 6, 7, 8, 10, 12] {
        for b in [2, 4, 8] {
            println!("f {f} b {b}: {:.4}", first_failure(shape((1 << 20) / b as u64, b, f, false), 0));
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn speed() {
    for n in [1_000_000u64, 10_000_000] {
        for (b, f, semi) in [(4, 12, false), (4, 13, true), (4, 16, false), (2, 12, false), (8, 12, false), (4, 8, false)] {
            let load = match b { 2 => 0.84, 4 => 0.95, _ => 0.98 };
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
