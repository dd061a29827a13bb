use super::*;
use crate::structure::records::{RecordSet, Records};
use crate::structure::testing::{hash, map_filter, reload};

fn pairs(pairs: impl IntoIterator<Item = (u64, u64)>) -> RecordSet<2> {
    let mut records = Records::new(None);
    pairs.into_iter().for_each(|(key, value)| records.push([hash(key), value]).unwrap());
    records.try_into().unwrap()
}

/// Numbers of so many bits, one per key, including the largest.
fn values(number: u64, bits: u32) -> Vec<(u64, u64)> {
    let value = |i| if i == number / 2 { u64::MAX } else { hash(i ^ 1 << 50) };
    (0..number).map(|i| (i, value(i) >> (64 - bits))).collect()
}

fn create(
    from: &RecordSet<2>,
    check_bits: u64,
    value_bits: Option<u64>,
    mutable: bool,
    arity: u64,
) -> Result<BloomierMap> {
    BloomierMap::build(from, None, Some(check_bits), value_bits, mutable, arity, KeyHasher::seeded(0), &Job::new(2))
}

#[test]
#[ignore = "long: make test-all runs it"]
fn every_stored_key_has_its_value_in_cells_of_any_width() {
    for (bits, check, mutable, arity) in [
        (1, 1, false, 3),
        (1, 7, true, 3),
        (3, 5, false, 4),
        (8, 8, false, 3),
        (8, 8, true, 4),
        (13, 6, true, 3),
        (24, 8, false, 3),
        (33, 31, false, 4),
        (63, 1, false, 3),
        (64, 1, true, 3),
        (64, 32, true, 4),
    ] {
        for number in [1, 2, 300, 20_000] {
            let wanted = values(number, bits);
            let map = create(&pairs(wanted.clone()), check, None, mutable, arity).unwrap();
            assert_eq!((map.value_bits(), map.check_bits(), map.num_added()), (bits, check as u32, number));
            for map in [reload(&map), map_filter(&map), map.try_clone().unwrap()] {
                let hashes: Vec<u64> = (0..2 * number + 1000).map(hash).collect();
                let mut got = vec![9; hashes.len()];
                map.get_hashes(&hashes, 77, &mut got);
                for (&hash, &got) in hashes.iter().zip(&got) {
                    assert_eq!(map.get_hash(hash).unwrap_or(77), got);
                    assert_eq!(map.get_hash(hash).is_some(), map.contains_hash(hash));
                }
                let got = got[..number as usize].iter().copied();
                assert!(got.eq(wanted.iter().map(|pair| pair.1)), "{bits} {check} {mutable} {arity} {number}");
            }
        }
    }
}

#[test]
fn absent_keys_have_a_value_at_the_rate() {
    for (check, mutable, arity) in [(1, false, 3), (4, false, 4), (8, false, 3), (4, true, 3), (4, true, 4)] {
        let map = create(&pairs(values(30_000, 8)), check, None, mutable, arity).unwrap();
        let trials = 400_000;
        let found = (1 << 40..(1 << 40) + trials).filter(|&i| map.contains_hash(hash(i))).count() as f64;
        let (wanted, trials) = (map.fpr(), trials as f64);
        let deviation = (trials * wanted * (1.0 - wanted)).sqrt();
        assert!((found - trials * wanted).abs() < 4.0 * deviation, "{check} {mutable} {arity} {found}");
    }
}

#[test]
fn a_key_with_two_values_and_values_that_are_too_wide_are_refused() {
    let refused = |result: Result<BloomierMap>, words: &[&str]| match result {
        Err(Error::Parameter(message)) => assert!(words.iter().all(|word| message.contains(word)), "{message}"),
        other => panic!("{words:?} {:?}", other.map(drop)),
    };
    for mutable in [false, true] {
        let twice = pairs((0..1000).map(|i| (i, i % 7)).chain([(500, 9)]));
        refused(create(&twice, 8, None, mutable, 3), &["two values", "9"]);
        let wide = pairs(values(100, 9));
        refused(create(&wide, 8, Some(8), mutable, 3), &["value_bits=8", "511", "9"]);
        assert!(create(&wide, 8, Some(9), mutable, 3).is_ok());
    }
    let none = pairs([]);
    refused(create(&none, 1, Some(64), false, 3), &["mutable=True"]);
    for (check, bits, arity) in [(0, 8, 3), (33, 8, 3), (8, 0, 3), (8, 65, 3), (8, 8, 2), (8, 8, 5)] {
        refused(create(&none, check, Some(bits), true, arity), &["must be"]);
    }
    // Once more with one value is no harm.
    let again = pairs((0..1000).chain(0..1000).map(|i| (i, i % 7)));
    assert_eq!(create(&again, 8, None, false, 3).unwrap().num_added(), 1000);
}

#[test]
fn values_change_in_place_and_no_other_does() {
    for (bits, check, arity) in [(1, 12, 3), (8, 8, 4), (37, 20, 3), (64, 32, 4)] {
        let number = 5000;
        let before = values(number, bits);
        let mut map = create(&pairs(before.clone()), check, None, true, arity).unwrap();
        let other = |value: u64| !value & (u64::MAX >> (64 - bits));
        for &(key, value) in before.iter().step_by(3) {
            assert!(map.set_hash(hash(key), other(value)).unwrap());
        }
        for (i, &(key, value)) in before.iter().enumerate() {
            let wanted = if i % 3 == 0 { other(value) } else { value };
            assert_eq!(map.get_hash(hash(key)), Some(wanted));
        }
        let absent = (number..).map(hash).find(|&hash| !map.contains_hash(hash)).unwrap();
        assert!(!map.set_hash(absent, 0).unwrap());
        if bits < 64 {
            assert!(matches!(map.set_hash(hash(0), 1 << bits), Err(Error::Parameter(_))));
        }
        assert!(matches!(map_filter(&map).set_hash(hash(0), 0), Err(Error::ReadOnly(_))));
        let mut fixed = create(&pairs(before), 4, Some(60).filter(|_| bits < 60), bits == 64, arity).unwrap();
        assert_eq!(matches!(fixed.set_hash(hash(0), 0), Err(Error::ReadOnly(_))), bits < 64);
    }
}

#[test]
#[ignore = "long: make test-all runs it"]
fn many_shards_have_slots_of_their_own() {
    let number = 2_300_000;
    for mutable in [false, true] {
        let map = create(&pairs((0..number).map(|i| (i, i % 251))), 8, Some(8), mutable, 3).unwrap();
        assert!(map.facts.bits > 0);
        assert!((0..number).all(|i| map.get_hash(hash(i)) == Some(i % 251)));
        let results = BloomierMap::cell_bytes(number, None, Some(8), Some(8), mutable, 3).unwrap();
        assert!(map.nbytes().abs_diff(results) < results / 100, "{} {results}", map.nbytes());
        let bits = 8.0 * map.nbytes() as f64 / number as f64;
        assert!(mutable || bits <= 1.15 * 16.0, "{bits}");
    }
}

#[test]
fn memory_that_does_not_hold_the_values_is_refused() {
    let mut records = Records::new(Some(1 << 20));
    (0..100_000).for_each(|i| records.push([hash(i), i]).unwrap());
    let pairs = records.try_into().unwrap();
    assert!(matches!(create(&pairs, 8, Some(64), true, 3), Err(Error::Memory(_))));
}
