//! Tests of the rateless stream.

use super::DecodedKeys;
use super::rateless::{Decoder, Encoder};
use crate::error::Error;
use crate::key::KeyHasher;
use crate::structure::testing::hash;

fn create_hasher() -> KeyHasher {
    KeyHasher::seeded(0)
}

fn hashes(range: std::ops::Range<u64>) -> Vec<u64> {
    range.map(hash).collect()
}

fn sort_hashes(range: std::ops::Range<u64>) -> Vec<u64> {
    let mut all = hashes(range);
    all.sort_unstable();
    all
}

/// The symbols until `decoder` is done, `piece` bytes at a time.
fn run(encoder: &mut Encoder, decoder: &mut Decoder, piece: usize) {
    while !decoder.is_complete() {
        let mut bytes = Vec::new();
        encoder.send(16, &mut bytes).unwrap();
        for piece in bytes.chunks(piece) {
            decoder.feed(piece).unwrap();
        }
        assert!(encoder.num_sent() < 10_000_000);
    }
}

#[test]
fn symbols_decode_both_sides_however_they_are_cut() {
    for (mine, both, theirs) in
        [(0, 0, 0), (1, 0, 0), (0, 0, 1), (0, 5000, 0), (3, 5000, 4), (700, 2000, 800), (0, 3, 900)]
    {
        for piece in [1, 7, 1 << 20] {
            let mut encoder = Encoder::new(hashes(mine..mine + both + theirs), &create_hasher()).unwrap();
            let mut decoder = Decoder::new(hashes(0..mine + both), &create_hasher(), 1 << 20).unwrap();
            run(&mut encoder, &mut decoder, piece);
            let want = DecodedKeys {
                mine: sort_hashes(0..mine),
                theirs: sort_hashes(mine + both..mine + both + theirs),
                complete: true,
            };
            assert_eq!((decoder.decoded(), decoder.peer_keys()), (want, Some(both + theirs)));
            assert!(decoder.feed(&[7; 100]).unwrap());
        }
    }
}

#[test]
fn repeated_keys_count_once() {
    let mut encoder = Encoder::new([hashes(0..50), hashes(0..50)].concat(), &create_hasher()).unwrap();
    let mut decoder = Decoder::new(hashes(0..50), &create_hasher(), 100).unwrap();
    run(&mut encoder, &mut decoder, 9);
    assert_eq!((encoder.keys(), decoder.decoded().complete), (50, true));
}

#[test]
fn a_thousand_differences_take_145_symbols_a_hundred_at_most() {
    for (differences, trials) in [(1000u64, 30u64), (10_000, 4)] {
        let mut symbols = 0;
        for trial in 0..trials {
            let keys = |range: std::ops::Range<u64>| range.map(|i| hash(trial << 40 | i)).collect::<Vec<_>>();
            let mut encoder = Encoder::new(keys(0..differences), &create_hasher()).unwrap();
            let mut decoder = Decoder::new(Vec::new(), &create_hasher(), 1 << 20).unwrap();
            let mut bytes = Vec::new();
            encoder.send(2 * differences as usize, &mut bytes).unwrap();
            assert!(decoder.feed(&bytes).unwrap());
            symbols += decoder.num_received();
        }
        let each = symbols as f64 / (differences * trials) as f64;
        assert!((1.3..=1.45).contains(&each), "{differences}: {each}");
    }
}

#[test]
fn streams_of_nonsense_end() {
    let decoder = || Decoder::new(hashes(0..100), &create_hasher(), 500).unwrap();
    assert!(matches!(decoder().feed(b"SSH-2.0-OpenSSH"), Err(Error::Format(_))));
    let mut other = Vec::new();
    Encoder::new(vec![1], &KeyHasher::keyed(0, &[1; 16])).unwrap().send(1, &mut other).unwrap();
    assert!(matches!(decoder().feed(&other), Err(Error::Incompatible(_))));
    let mut head = Vec::new();
    Encoder::new(hashes(0..100), &create_hasher()).unwrap().send(0, &mut head).unwrap();
    assert_eq!(head.len(), 24);
    for (seed, keys) in [(0u64, 100u64), (1, 0), (2, u64::MAX)] {
        // Words of noise; every third a key with a check that holds.
        let mut bytes = [&head[..16], &keys.to_le_bytes()].concat();
        for i in 0..600 {
            let key = hash((seed << 32) | (i % 50));
            let check = if i % 3 == 0 { super::cell::check(key) } else { i as u32 };
            bytes.extend([&key.to_le_bytes()[..], &check.to_le_bytes(), &[(key % 4) as u8]].concat());
        }
        let mut decoder = decoder();
        assert!(matches!(decoder.feed(&bytes), Err(Error::Capacity(_))));
        assert!(decoder.decoded().mine.len() + decoder.decoded().theirs.len() <= 500);
    }
    let endless = [&head[..], &[0; 12], &[0xff; 10]].concat();
    assert!(matches!(decoder().feed(&endless), Err(Error::Format(_))));
    for piece in endless.chunks(1).take(45) {
        let _ = decoder().feed(piece);
    }
}

#[test]
fn every_machine_sends_the_same_bytes() {
    let mut bytes = Vec::new();
    Encoder::new(hashes(0..1000), &create_hasher()).unwrap().send(2000, &mut bytes).unwrap();
    assert_eq!((bytes.len(), crc32fast::hash(&bytes)), PINNED);
}

const PINNED: (usize, u32) = (26_024, 3_318_422_119);
