use super::*;
use crate::container::tag;
use crate::sizing::fingerprints::passed_on;
use crate::structure::Planned;
use crate::structure::conformance::{adding, lying};
use crate::structure::testing::{hash, reload_changed};

fn create(capacity: u64, fpr: f64) -> PrefixFilter {
    PrefixFilter::construct(capacity, fpr, KeyHasher::seeded(0)).unwrap()
}

const RATES: [f64; 7] = [0.5, 0.05, 0.01, 0.004, 1e-3, 1e-5, 1e-6];

#[test]
fn no_key_is_lost_and_the_rate_is_kept() {
    for fpr in RATES {
        for capacity in [1, 30, 1000, 50_000] {
            let mut filter = create(capacity, fpr);
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
fn the_published_shares_are_passed_on() {
    // Poisson bins: 0.0799, 0.059 and 0.040 at loads 1, 0.95 and 0.90.
    for (load, published) in [(1.0, 0.0799), (0.95, 0.059), (0.90, 0.040)] {
        assert!((passed_on(load, BIN_SIZE) - published).abs() < 0.0012, "{}", passed_on(load, BIN_SIZE));
        let mut filter = create(1_000_000, 1e-6);
        let keys = (load * (filter.shape.bins * u64::from(BIN_SIZE)) as f64) as u64;
        (0..keys).for_each(|i| assert!(filter.add_hash(hash(i)).is_ok()));
        let share = filter.spare_items() / keys as f64;
        assert!((share - published).abs() < 0.0015, "load {load}: {share}");
    }
}

#[test]
fn batches_and_files_of_every_width_are_the_filter_of_single_adds_and_lies_harm_nobody() {
    for fpr in RATES {
        let filter = adding(&|| create(2000, fpr), 3000);
        let result = [tag::NUM_BINS, tag::REMAINDER_BITS, tag::SPARE_LINES, tag::SPARE_PER_COLUMN];
        lying(&filter, |tag, _, wild| !result.contains(&tag) || (1..177).contains(&wild), drop);
        let used = filter.shape.bins as usize * filter.shape.bin_words() * 8;
        let noise =
            |bins: &mut Vec<u8>| (0..).zip(&mut bins[..used]).for_each(|(i, b)| *b = (hash(i) | hash(i / 3)) as u8);
        let mut noisy = reload_changed(&filter, |_, cells| noise(&mut cells[0])).unwrap();
        for i in 0..3000 {
            let _ = (noisy.contains_hash(hash(i)), noisy.add_hash(hash(i)));
        }
        assert!(noisy.fpr() <= 1.0 && noisy.fill() <= 1.0);
    }
}
