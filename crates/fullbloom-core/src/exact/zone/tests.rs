use super::*;
use crate::structure::testing::{hash, reload};

fn zone(capacity: u64, universe: u64, counting: bool) -> ZoneFilter {
    ZoneFilter::construct(capacity, universe, counting, KeyHasher::seeded(5)).unwrap()
}

fn key(number: u64) -> u64 {
    KeyHasher::seeded(5).hash_signed(number as i64)
}

fn of(capacity: u64, universe: u64, numbers: &[u64]) -> ZoneFilter {
    let mut instance = zone(capacity, universe, true);
    numbers.iter().for_each(|&number| assert!(instance.add_hash(key(number)).is_ok()));
    instance
}

/// Wrong answers over the universe.
fn wrong(instance: &ZoneFilter, members: &[u64]) -> u64 {
    (0..instance.universe).filter(|number| instance.contains_hash(key(*number)) != members.contains(number)).count()
        as u64
}

#[test]
fn no_pair_below_48_is_mistaken_and_triples_are_4300_times() {
    let (mut pairs, mut triples) = (0, 0);
    for a in 0..48 {
        for b in a..48 {
            pairs += wrong(&of(2, 48, &[a, b]), &[a, b]);
            for c in b + 1..48 {
                if a < b {
                    triples += wrong(&of(2, 48, &[a, b, c]), &[a, b, c]);
                }
            }
        }
    }
    assert_eq!((pairs, triples), (0, 4300));
}

#[test]
fn nothing_is_mistaken_in_larger_zones() {
    for (capacity, universe, trials) in [(3, 2_000, 30), (5, 5_000, 10), (20, 3_000, 5)] {
        for trial in 0..trials {
            let members: Vec<u64> = (0..capacity).map(|i| hash(trial * capacity + i) % universe).collect();
            for counting in [false, true] {
                let mut instance = zone(capacity, universe, counting);
                members.iter().for_each(|&number| assert!(instance.add_hash(key(number)).is_ok()));
                assert_eq!((wrong(&reload(&instance), &members), instance.fpr()), (0, 0.0));
            }
        }
    }
}

#[test]
fn beyond_the_zone_the_rate_is_that_of_the_cells() {
    let mut instance = zone(2, 100_000, false);
    let members: Vec<u64> = (0..12).map(|i| hash(i) % 100_000).collect();
    members.iter().for_each(|&number| assert!(instance.add_hash(key(number)).is_ok()));
    let found = wrong(&instance, &members) as f64;
    let law = instance.fpr() * 1e5;
    assert!(law > 30.0 && (found - law).abs() < 5.0 * law.sqrt() + 12.0, "{found} {law}");
    assert!(instance.newly_overfull() && !instance.newly_overfull());
}

#[test]
fn counters_list_their_members() {
    let published = of(2, 1000, &[249, 807]);
    let primes: Vec<u64> = published.primes.iter().map(|&prime| prime.into()).collect();
    let sums = decode::sums(&primes, 2, |i| published.rests(i));
    assert_eq!(sums, [200_943, 1056, 1]);
    assert_eq!(published.decode().unwrap(), [249, 807]);
    for (capacity, universe) in [(1, 2), (2, 48), (4, 1 << 32), (10, 1 << 60), (40, 1_000_000)] {
        for held in [0, 1, capacity / 2, capacity] {
            let mut members: Vec<u64> = (0..held).map(|i| hash(i * 7 + capacity) % universe).collect();
            // One of them twice.
            if held > 2 {
                members[1] = members[0];
            }
            let instance = reload(&of(capacity, universe, &members));
            members.sort_unstable();
            assert_eq!((instance.decode().unwrap(), instance.num_added()), (members, held), "{capacity} {universe}");
        }
    }
}

#[test]
fn undecodable_zones_say_why() {
    assert!(matches!(zone(4, 1000, false).decode(), Err(Error::Parameter(why)) if why.contains("counting=True")));
    assert!(matches!(of(2, 1000, &[1, 2, 3]).decode(), Err(Error::Parameter(why)) if why.contains("capacity=2")));
    let mut wrong = of(4, 1000, &[1, 2]);
    // Two even numbers: no such pair below 1000 leaves the other remainders.
    let (packed, words) = (wrong.packed, wrong.cells.writable().unwrap());
    packed.set(words, 0, 2);
    packed.set(words, 1, 0);
    assert!(matches!(wrong.decode(), Err(Error::Format(_))));
    let mut wrong = of(8, 1000, &[4, 5, 600]);
    // A remainder of the largest prime moves to its neighbour.
    let (last, packed) = (wrong.num_cells - 1, wrong.packed);
    let at = (0..last).rev().find(|&at| packed.get(wrong.cells.words(), at) > 0).unwrap();
    let words = wrong.cells.writable().unwrap();
    packed.set(words, at, packed.get(words, at) - 1);
    packed.set(words, at + 1, packed.get(words, at + 1) + 1);
    assert!(matches!(wrong.decode(), Err(Error::Format(_))));
}

#[test]
fn removing_brings_back_what_was() {
    let mut instance = of(30, 10_000, &[5, 6, 6, 7]);
    assert!(instance.remove_hash(key(6)).unwrap() && !instance.remove_hash(key(8)).unwrap());
    assert!(instance.same_as(&of(30, 10_000, &[7, 6, 5])) && instance.num_added() == 3);
    let mut bits = zone(30, 10_000, false);
    assert!(bits.add_hash(key(5)).unwrap() && !bits.add_hash(key(5)).unwrap() && bits.num_added() == 1);
    assert!(!bits.remove_hash(key(5)).unwrap() && bits.contains_hash(key(5)));
}

#[test]
fn keys_outside_of_the_universe_are_refused() {
    let mut instance = zone(3, 1000, false);
    for strange in [key(1000), key(u64::MAX), hash(7)] {
        assert!(matches!(instance.add_hash(strange), Err(Error::Parameter(_))) && !instance.contains_hash(strange));
    }
    for (capacity, universe) in [(0, 9), (9, 0), (9, 1), (9, (1 << 60) + 1), (1 << 20, 1 << 32), (u64::MAX, 2)] {
        let refused = ZoneFilter::construct(capacity, universe, false, KeyHasher::seeded(0));
        assert!(matches!(refused, Err(Error::Parameter(_))), "{capacity} {universe}");
    }
    assert!(ZoneFilter::construct(5, 100, false, KeyHasher::keyed(0, &[7; 16])).is_err());
}
