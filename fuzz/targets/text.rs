//! Records of a text stream, held to a naive reading of the same bytes.
#![no_main]

use std::collections::HashSet;
use std::sync::LazyLock;

use fullbloom_core::key::KeyHasher;
use fullbloom_core::structure::{Filter, Sizable};
use fullbloom_core::text::{self, CandidateDuplicates};
use fullbloom_core::{bloom::BloomFilter, counting::CountingBloomFilter};
use libfuzzer_sys::fuzz_target;

/// The records of a block with their keys, as anyone would split them.
fn naive(block: &[u8]) -> Vec<(&[u8], &[u8])> {
    let lines = block.split_inclusive(|&byte| byte == b'\n');
    let key = |line: &'_ [u8]| line.strip_suffix(b"\n").map_or(line.len(), <[u8]>::len);
    lines
        .map(|line| (line, &line[..key(line)]))
        .map(|(line, key)| (line, key.strip_suffix(b"\r").unwrap_or(key)))
        .collect()
}

fn concat<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    lines.flatten().copied().collect()
}

/// At this rate no input that is found by chance meets a false positive. Sizing takes longer than a run: made once.
static EXACT: LazyLock<BloomFilter> = LazyLock::new(|| create(1 << 9, 1e-9));
/// Wrong as often as not, and holding copies.
static WRONG: LazyLock<CountingBloomFilter> = LazyLock::new(|| create(8, 0.5));

fn create<F: Sizable>(capacity: u64, fpr: f64) -> F {
    F::for_capacity(capacity, fpr, &[], KeyHasher::seeded(7)).expect("a filter")
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, given)) = data.split_first() else { return };
    // Inputs are short, for speed; more records than a chunk takes come by repetition.
    let long = if choice == 255 { given.repeat(16) } else { Vec::new() };
    let block = if choice == 255 { &long } else { given };
    let records = naive(block);
    let mut filter = EXACT.try_clone().expect("memory");
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    let cut = usize::from(choice) * block.len() / 256;
    let cut = block[..cut].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let mut result = 0;
    for part in [&block[..cut], &block[cut..]] {
        result += text::add(&mut filter, part, Some(&mut kept), Some(&mut dropped)).expect("room").records;
    }
    let mut seen = HashSet::new();
    let new: Vec<bool> = records.iter().map(|(_, key)| seen.insert(*key)).collect();
    assert_eq!(result, records.len() as u64);
    assert_eq!(kept, concat(records.iter().zip(&new).filter(|(_, new)| **new).map(|((line, _), _)| *line)));
    assert_eq!(dropped, concat(records.iter().zip(&new).filter(|(_, new)| !**new).map(|((line, _), _)| *line)));
    let mut found = Vec::new();
    let tally = text::check(&filter, block, Some(&mut found), None).expect("room");
    assert_eq!((tally.selected, found.as_slice()), (result, block));
    // The exact second look.
    let mut small = WRONG.try_clone().expect("memory");
    let mut candidates = CandidateDuplicates::default();
    let (_, hashes) = text::collect(&mut small, block, choice % 2 == 0).expect("room");
    candidates.remember(*small.hasher(), &hashes).expect("room");
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    candidates.partition(block, &mut kept, Some(&mut dropped)).expect("room");
    assert_eq!(kept, concat(records.iter().zip(&new).filter(|(_, new)| **new).map(|((line, _), _)| *line)));
    assert_eq!(kept.len() + dropped.len(), block.len());
});
