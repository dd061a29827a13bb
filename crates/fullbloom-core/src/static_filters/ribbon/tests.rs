use super::band;
use super::layer::Layer;
use super::*;
use crate::cells::allocation::zeroed;
use crate::structure::records::Records;
use crate::structure::testing::hash;

fn build(numbers: impl Iterator<Item = u64>, fpr: f64) -> RibbonFilter {
    let mut records = Records::new(None);
    numbers.for_each(|i| records.push([hash(i)]).unwrap());
    let job = Job::new(1);
    RibbonFilter::build(&records.try_into().unwrap(), Some(fpr), None, KeyHasher::seeded(0), &job).unwrap()
}

#[test]
#[ignore = "long: make test-all runs it"]
fn the_rate_lies_between_powers_of_two_and_the_size_near_the_bound() {
    for (keys, fpr, bits) in
        [(30_000, 0.01, 6.95), (200_000, 0.003, 8.65), (1_000_000, 0.01, 6.8), (200_000, 0.7, 0.63)]
    {
        let instance = build(0..keys, fpr);
        let size = instance.nbytes() as f64 * 8.0 / keys as f64;
        assert!(
            size <= bits && instance.fpr() <= fpr && instance.fpr() > 0.99 * fpr,
            "{keys} {fpr} {size} {}",
            instance.fpr()
        );
        assert!((0..keys).all(|i| instance.contains_hash(hash(i))));
        let found = (keys..2 * keys).filter(|&i| instance.contains_hash(hash(i))).count() as f64;
        let want = keys as f64 * instance.fpr();
        assert!((found - want).abs() <= 5.0 * want.sqrt(), "{keys} {fpr} {found} {want}");
    }
}

#[test]
fn ribbons_pass_on_what_the_law_says_at_every_size() {
    for keys in [20_000, 100_000, 800_000] {
        let instance = build(0..keys, 0.01);
        let first = table::layer(&table::row(instance.table.words(), 0), 0);
        let looked =
            |i: u64| first.look(instance.cells.words(), instance.columns, layer::position(hash(i), instance.bits, 0));
        let passed = (0..keys).filter(|&i| looked(i).is_none()).count() as f64 / keys as f64;
        let starts = first.estimate_passed(instance.cells.words());
        // Buckets pass on 0 to 128 starts, 3 of which are crowded or free for the same reason.
        let spread = 5.0 * (3.0 * sizing::PASSED_ON * 128.0 / keys as f64).sqrt();
        assert!((passed - sizing::PASSED_ON).abs() <= spread, "{keys} {passed}");
        assert!((starts - sizing::PASSED_ON).abs() <= spread + 0.1 * sizing::PASSED_ON, "{keys} {starts}");
    }
}

#[test]
#[ignore = "long: make test-all runs it"]
fn a_ribbon_fails_as_often_as_the_law_says() {
    for (keys, blocks, trials) in [(2_000u64, 33u64, 2_000u64), (8_000, 130, 500), (32_000, 525, 150)] {
        let columns = Columns { low: 31, share: 0 };
        let layer = Layer { first: 0, blocks, passes: false };
        let fails = |trial: &u64| {
            let mut positions: Vec<u64> = (0..keys).map(|i| hash(i + (trial << 40))).collect();
            positions.sort_unstable();
            band::solve_all(layer, columns, positions.into_iter(), || zeroed(layer.words(columns) as usize))
                .unwrap()
                .is_none()
        };
        let failed = (0..trials).filter(fails).count() as f64;
        let want = trials as f64 * sizing::failure(keys as f64, layer.starts() as f64);
        let spread = 5.0 * want.max(1.0).sqrt();
        assert!(failed <= 2.0 * want + spread, "{keys} {failed} {want}");
        let e = layer.starts() as f64 / keys as f64 - 1.0;
        assert!(failed >= want / 2.0 - spread || keys as f64 * e * e < 12.0, "{keys} {failed} {want}");
    }
}

#[test]
fn hashes_that_are_not_spread_are_taken_too() {
    let job = Job::new(1);
    for keys in [3_000, 50_000] {
        let mut records = Records::new(None);
        (0..keys).for_each(|i| records.push([i]).unwrap());
        let instance =
            RibbonFilter::build(&records.try_into().unwrap(), None, Some(8), KeyHasher::seeded(0), &job).unwrap();
        assert!((0..keys).all(|hash| instance.contains_hash(hash)));
    }
}
