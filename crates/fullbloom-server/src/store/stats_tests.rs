//! Stats that are counted in slices are those of the filter, whatever happens in the meantime.

use std::sync::Arc;
use std::thread;

use super::slices_tests::{in_memory, other_specs, specs};
use super::tests::{Draws, run_beside};
use super::*;
use crate::fault::Result;
use crate::kind::{Kind, Spec};

fn words(entry: &Entry, keys: std::ops::Range<u64>) -> Vec<u64> {
    keys.flat_map(|key| (0..entry.keying.width() as u64).map(move |at| Draws(key + (at << 40)).next())).collect()
}

fn add(store: &Store, entry: &Entry, keys: std::ops::Range<u64>) -> Result<Lsn> {
    let words = words(entry, keys);
    if entry.settings.spec.kind == "compact" {
        return store.add_pairs(entry, &words, &vec![1; words.len()]);
    }
    store.add(entry, &words, &mut vec![0; words.len() / entry.keying.width()])
}

/// What the filter says in its own words.
fn read_stats(filter: &dyn Kind) -> (Option<f64>, f64, Vec<(&'static str, fullbloom_core::structure::Value)>) {
    (Some(filter.fill()), filter.fpr(), filter.info_with(filter.cell_stats()))
}

#[test]
fn stats_are_those_of_the_filter() -> Result<()> {
    for spec in specs().into_iter().chain(other_specs()) {
        let store = in_memory()?;
        let (entry, _) = store.create(b"a", Settings::of(spec.clone()))?;
        for start in [0, 10_000, 20_000] {
            add(&store, &entry, start..start + 10_000)?;
            let stats = entry.count_stats();
            assert_eq!(
                (stats.fill, stats.fpr, stats.details.clone()),
                read_stats(entry.read().as_ref()),
                "{}",
                spec.line()
            );
            // A filter that did not change is not counted again.
            assert!(Arc::ptr_eq(&stats, &entry.count_stats()));
        }
        let cleared = store.clear(&entry).map(drop);
        cleared.or_else(|fault| if spec.kind.starts_with("redisbloom") { Ok(()) } else { Err(fault) })?;
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
            for _ in 0..30 {
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
fn a_count_beside_removals_is_off_by_no_more_than_the_cells_that_changed() -> Result<()> {
    for kind in ["counting", "variable-increment"] {
        let spec = Spec { kind: kind.into(), seed: 5, ..Spec::default() }.with("capacity", 30_000);
        let store = in_memory()?;
        let (entry, _) = store.create(b"a", Settings::of(spec))?;
        add(&store, &entry, 0..30_000)?;
        let [cells, hashes] = ["num_counters", "num_hashes"].map(|name| entry.read().number(name).unwrap_or_default());
        let mut at = 0;
        let change = || {
            let _ = store.remove(&entry, &words(&entry, at..at + 50), &mut [0; 50]);
            let _ = add(&store, &entry, at + 30_000..at + 30_050);
            at += 50;
            thread::sleep(std::time::Duration::from_micros(200));
        };
        run_beside(change, || {
            for _ in 0..30 {
                let before = entry.version();
                let stats = entry.count_stats();
                let (after, fill) = {
                    let filter = entry.read();
                    (entry.version(), filter.fill())
                };
                let changed = (after - before) * 50 * hashes;
                let off = (stats.fill.unwrap_or_default() - fill).abs() * cells as f64;
                assert!(off <= changed as f64 + 0.5, "{kind}: {off} of {changed}");
            }
        });
    }
    Ok(())
}

#[test]
fn every_kind_that_takes_keys_is_counted_in_slices() -> Result<()> {
    for row in fullbloom_core::registry::VARIANTS.iter().filter(|row| row.capabilities.contains(&"add")) {
        let capacity = if row.name == "scalable" { "initial_capacity" } else { "capacity" };
        let spec = Spec { kind: row.name.into(), seed: 5, ..Spec::default() }.with(capacity, 1000);
        let store = in_memory()?;
        let (entry, _) = store.create(b"a", Settings::of(spec))?;
        assert!(entry.read().count_steps().is_some(), "{}", row.name);
    }
    Ok(())
}

#[test]
fn a_count_beside_clears_mixes_no_two_contents() -> Result<()> {
    let spec = Spec { kind: "bloom".into(), seed: 5, ..Spec::default() }.with("capacity", 60_000);
    let store = in_memory()?;
    let (entry, _) = store.create(b"a", Settings::of(spec.clone()))?;
    let (other, _) = store.create(b"b", Settings::of(spec))?;
    add(&store, &other, 0..50_000)?;
    let full = other.read().fill();
    // Both change the whole filter. A count beside added keys may include some of them.
    let change = || {
        let _ = store.clear(&entry).and_then(|_| store.merge(&entry, &other));
    };
    run_beside(change, || {
        let mut before = entry.version();
        for _ in 0..100 {
            // A filter that did not change is not counted again.
            while entry.version() == before {
                thread::yield_now();
            }
            before = entry.version();
            let fill = entry.count_stats().fill.unwrap_or_default();
            assert!(fill == 0.0 || fill == full, "{fill} of {full}");
        }
    });
    Ok(())
}

/// A rate is used for longer the longer its count took, which on a busy machine may be any time.
fn wait_until_no_rate_is_known(entry: &Entry) {
    while entry.large().last_fpr.lock().as_ref().is_some_and(|known| entry.is_usable(known)) {
        thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn the_rate_without_a_count_is_that_of_the_cells() -> Result<()> {
    for spec in specs() {
        let store = in_memory()?;
        let (entry, _) = store.create(b"a", Settings::of(spec.clone()))?;
        // Up to twice as many keys as it was sized for.
        for start in (0..120_000).step_by(20_000) {
            add(&store, &entry, start..start + 20_000)?;
            wait_until_no_rate_is_known(&entry);
            let (without, fpr) = (Entry::stats(&entry), entry.read().fpr());
            assert!(without.fill.is_none() && without.details.is_empty());
            assert!((without.fpr - fpr).abs() <= 0.05 * fpr, "{}: {} for {fpr}", spec.line(), without.fpr);
            assert_eq!(entry.is_over_capacity(), entry.read().is_over_capacity(), "{}", spec.line());
        }
    }
    Ok(())
}
