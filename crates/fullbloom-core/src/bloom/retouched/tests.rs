use super::*;
use crate::structure::testing::reload;

fn filter(num_bits: u64, num_hashes: u32) -> RetouchedBloomFilter {
    RetouchedBloomFilter::new(Positions { num_bits, num_hashes }, 100, 0.01, KeyHasher::seeded(0)).unwrap()
}

fn hashes(seed: u64, count: usize) -> Vec<u64> {
    let mut state = SplitMix(seed << 32);
    (0..count).map(|_| state.next()).collect()
}

#[test]
fn counters_and_bits_agree_with_plain_arrays() {
    let mut f = filter(500, 5);
    let (mut set, mut members, mut known) = (vec![false; 500], vec![0u64; 500], vec![0u64; 500]);
    let of = |hash: u64| Positions { num_bits: 500, num_hashes: 5 }.distinct(hash, &mut [0; 64]).to_vec();
    for hash in hashes(1, 60) {
        let mine = of(hash);
        assert_eq!(f.add_hash(hash).unwrap(), !mine.iter().all(|&bit| set[bit as usize]));
        mine.iter().for_each(|&bit| {
            set[bit as usize] = true;
            members[bit as usize] += 1;
        });
    }
    for (i, hash) in hashes(2, 2000).into_iter().enumerate() {
        let mine = of(hash);
        let found = mine.iter().all(|&bit| set[bit as usize]);
        assert_eq!(f.contains_hash(hash), found);
        assert_eq!(f.note_false_positive(hash).unwrap(), found);
        if found {
            mine.iter().for_each(|&bit| known[bit as usize] += 1);
        }
        if found && i % 3 == 0 {
            let choice = Choice::NAMES[i / 3 % 4].0;
            let score = |&bit: &u64| (members[bit as usize], known[bit as usize]);
            let fewest = mine.iter().map(|bit| score(bit).0).min().unwrap();
            let most = mine.iter().map(|bit| score(bit).1).max().unwrap();
            let ratio = |bit: &u64| score(bit).1 as f64 / score(bit).0 as f64;
            let best = mine.iter().map(ratio).fold(0.0, f64::max);
            assert!(f.retouch(hash, choice).unwrap() && !f.retouch(hash, choice).unwrap() && !f.contains_hash(hash));
            let gone: Vec<u64> = mine.iter().copied().filter(|&bit| !is_set(f.bits.words(), bit)).collect();
            assert_eq!(gone.len(), 1);
            match choice {
                Choice::Random => {}
                Choice::MinimumFn => assert_eq!(score(&gone[0]).0, fewest),
                Choice::MaximumFp => assert_eq!(score(&gone[0]).1, most),
                Choice::Ratio => assert!((ratio(&gone[0]) - best).abs() < 1e-12),
            }
            set[gone[0] as usize] = false;
            mine.iter().for_each(|&bit| known[bit as usize] = known[bit as usize].saturating_sub(1));
            known[gone[0] as usize] = 0;
        }
    }
    for bit in 0..500 {
        assert_eq!(is_set(f.bits.words(), bit), set[bit as usize]);
        assert_eq!(f.counters.get(f.members.words(), bit), members[bit as usize]);
        assert_eq!(f.counters.get(f.known.words(), bit), known[bit as usize].min(255));
    }
    assert!(reload(&f).same_as(&f));
}

#[test]
fn random_clearing_follows_the_law_and_clears_exactly_its_share() {
    for (m, k, n) in [(20_000u64, 4, 2000usize), (100_000, 7, 10_000), (400_000, 5, 50_000)] {
        for share in [0.0, 0.02, 0.2, 1.0] {
            let (mut f, members) = (filter(m, k), hashes(m, n));
            f.add_hashes(&members, None).unwrap();
            let before = bits::count_ones(f.bits.words());
            let cleared = f.clear_random(share, 7).unwrap();
            assert_eq!(cleared, (share * before as f64).round() as u64);
            assert_eq!(bits::count_ones(f.bits.words()), before - cleared);
            let rate = (before as f64 / m as f64 * (1.0 - share)).powi(k as i32);
            assert!((f.fpr() - rate).abs() < 1e-3 * rate + 1e-12);
            let missed = members.iter().filter(|&&hash| !f.contains_hash(hash)).count() as f64 / n as f64;
            let law = 1.0 - (1.0 - share).powi(k as i32);
            // Members share bits, so their losses are not independent: three times the binomial deviation.
            let sd = 3.0 * (law * (1.0 - law) / n as f64).sqrt();
            assert!((missed - law).abs() <= 3.0 * sd + 1e-9, "{m} {share}: {missed} {law}");
            assert!((f.fnr() - missed).abs() <= 3.0 * sd + 1e-9, "{m} {share}: {missed} {}", f.fnr());
        }
    }
    for share in [-0.1, 1.1, f64::NAN] {
        assert!(matches!(filter(100, 3).clear_random(share, 0), Err(Error::Parameter(_))));
    }
}

#[test]
fn selective_clearing_removes_more_false_positives_than_it_denies_members() {
    for (m, k, n) in [(10_000u64, 4, 1500usize), (50_000, 6, 6000), (100_000, 5, 14_000)] {
        let (members, strangers) = (hashes(3, n), hashes(4, 200_000));
        for &(choice, name) in Choice::NAMES {
            let mut f = filter(m, k);
            f.add_hashes(&members, None).unwrap();
            let known: Vec<u64> = strangers.iter().copied().filter(|&hash| f.contains_hash(hash)).collect();
            known.iter().for_each(|&hash| assert!(f.note_false_positive(hash).unwrap()));
            let troublesome = &known[..known.len() / 5];
            troublesome.iter().for_each(|&hash| assert!(f.retouch(hash, choice).is_ok()));
            assert!(troublesome.iter().all(|&hash| !f.contains_hash(hash)));
            let gone = known.iter().filter(|&&hash| !f.contains_hash(hash)).count() as f64 / known.len() as f64;
            let missed = members.iter().filter(|&&hash| !f.contains_hash(hash)).count() as f64 / n as f64;
            assert!(gone / missed > 1.0, "{m} {name}: {gone} {missed}");
            assert!((f.fnr() - missed).abs() < 0.15 * missed + 0.01, "{m} {name}: {} {missed}", f.fnr());
        }
    }
}
