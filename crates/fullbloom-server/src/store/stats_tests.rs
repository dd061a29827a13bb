//! Stats that are counted in slices are those of the filter, whatever happens in the meantime.

use std::sync::Arc;
use std::thread;

use super::slices_tests::{in_memory, specs};
use super::tests::{Draws, run_beside};
use super::*;
use crate::fault::Result;
use crate::kind::{Kind, Spec};

fn words(entry: &Entry, keys: std::ops::Range<u64>) -> Vec<u64> {
    keys.flat_map(|key| (0..entry.keying.width() as u64).map(move |at| Draws(key + (at << 40)).next())).collect()
}

fn add(store: &Store, entry: &Entry, keys: std::ops::Range<u64>) -> Result<Lsn> {
    let words = words(entry, keys);
    store.add(entry, &words, &mut vec![0; words.len() / entry.keying.width()])
}

/// What the filter says in its own words.
fn said(filter: &dyn Kind) -> (Option<f64>, f64, Vec<(&'static str, fullbloom_core::structure::Value)>) {
    (Some(filter.fill()), filter.fpr(), filter.info_with(filter.cell_stats()))
}

#[test]
fn stats_are_those_of_the_filter() -> Result<()> {
    for spec in specs() {
        let store = in_memory()?;
        let (entry, _) = store.create(b"a", Settings::of(spec.clone()))?;
        for start in [0, 10_000, 20_000] {
            add(&store, &entry, start..start + 10_000)?;
            let stats = entry.count_stats();
            assert_eq!((stats.fill, stats.fpr, stats.details.clone()), said(entry.read().as_ref()), "{}", spec.line());
            // A filter that did not change is not counted again.
            assert!(Arc::ptr_eq(&stats, &entry.count_stats()));
        }
        store.clear(&entry).map(drop).or_else(|fault| if spec.kind == "redisbloom" { Ok(()) } else { Err(fault) })?;
        assert_eq!(entry.count_stats().fill, Some(entry.read().fill()));
    }
    Ok(())
}

#[test]
fn a_count_beside_adds_lies_between_the_counts_before_and_after() -> Result<()> {
    for spec in specs() {
        let store = in_memory()?;
        let (entry, _) = store.create(b"a", Settings::of(spec.clone()))?;
        let mut at = 0;
        let change = || {
            // A filter that grows must not grow for as long as the test runs.
            if at < 90_000 {
                let _ = add(&store, &entry, at..at + 3);
                at += 3;
            }
            thread::sleep(std::time::Duration::from_micros(20));
        };
        let fill = || {
            let filter = entry.read();
            // A growing filter whose number of bits changed is not comparable.
            (filter.fill(), filter.nbytes(), filter.num_added())
        };
        run_beside(change, || {
            // One that is counted at once pauses after each count.
            for _ in 0..if spec.kind == "counting" { 3 } else { 30 } {
                let (before, stats, after) = (fill(), entry.count_stats(), fill());
                assert!((before.2..=after.2).contains(&stats.num_added));
                if before.1 == after.1 {
                    let counted = stats.fill.unwrap_or_default();
                    assert!((before.0..=after.0).contains(&counted), "{}: {before:?} {counted} {after:?}", spec.line());
                }
            }
        });
    }
    Ok(())
}

#[test]
fn a_count_beside_clears_mixes_no_two_contents() -> Result<()> {
    let spec = Spec { kind: "bloom".into(), seed: 5, ..Spec::default() }.with("capacity", 60_000);
    let store = in_memory()?;
    let (entry, _) = store.create(b"a", Settings::of(spec))?;
    add(&store, &entry, 0..50_000)?;
    let full = entry.read().fill();
    let change = || {
        let _ = store.clear(&entry).and_then(|_| add(&store, &entry, 0..50_000));
    };
    run_beside(change, || {
        for _ in 0..100 {
            let fill = entry.count_stats().fill.unwrap_or_default();
            assert!(fill == 0.0 || fill == full, "{fill} of {full}");
            thread::yield_now();
        }
    });
    Ok(())
}

#[test]
fn the_rate_without_a_count_is_that_of_the_cells() -> Result<()> {
    for spec in specs() {
        let store = in_memory()?;
        let (entry, _) = store.create(b"a", Settings::of(spec.clone()))?;
        // Up to twice as many keys as it was sized for.
        for start in (0..120_000).step_by(20_000) {
            add(&store, &entry, start..start + 20_000)?;
            // By then, no rate is known from before.
            thread::sleep(std::time::Duration::from_millis(200));
            let (without, fpr) = (Entry::stats(&entry), entry.read().fpr());
            assert!(without.fill.is_none() && without.details.is_empty());
            assert!((without.fpr - fpr).abs() <= 0.05 * fpr, "{}: {} for {fpr}", spec.line(), without.fpr);
            assert_eq!(entry.is_over_capacity(), entry.read().is_over_capacity(), "{}", spec.line());
        }
    }
    Ok(())
}
