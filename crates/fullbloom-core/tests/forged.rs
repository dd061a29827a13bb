//! Files of every structure that lie in a field, a section or the parts of one, under checksums that hold: they are
//! refused, or hold a structure that answers, takes keys and finds them, and saves what opens again. The generator and
//! what files are held to are those of the fuzz target `container`; `FULLBLOOM_LONG=10` makes it a million files.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::panic, clippy::expect_used)] // a test says no more

#[path = "../../../fuzz/src/file.rs"]
mod file;
#[path = "../../../fuzz/src/structures.rs"]
mod structures;

use fullbloom_core::hash::splitmix;

/// Files without `FULLBLOOM_LONG`.
const FILES: u64 = 10_000;

fn originals() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "bloom"))
        .collect();
    files.sort();
    files.iter().map(|path| (path.display().to_string(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn a_forged_file_is_refused_or_holds_a_structure_that_keeps_its_promises() {
    let originals = originals();
    assert!(
        originals
            .iter()
            .all(|(name, data)| structures::is_sound(data) && structures::check(data) || panic!("{name} is refused"))
    );
    let long: u64 = std::env::var("FULLBLOOM_LONG").ok().and_then(|long| long.parse().ok()).unwrap_or(0);
    let (files, mut accepted) = (FILES * (10 * long).max(1), 0u64);
    for number in 0..files {
        let (name, original) = &originals[(number % originals.len() as u64) as usize];
        let mut forged = original.clone();
        for change in 0..1 + splitmix::at(number, 0) % 3 {
            let _ = file::mutate(&mut forged, splitmix::at(number, 1 + change));
        }
        file::repair(&mut forged);
        let held = std::panic::catch_unwind(|| structures::check(&forged));
        match held {
            Ok(sound) => accepted += u64::from(sound),
            Err(_) => panic!("forged file number {number}, made of {name}: {forged:?}"),
        }
    }
    // Nearly all are read: a repair that left nothing to read would make this a test of nothing.
    assert!(accepted * 10 > files * 9, "{accepted} of {files}");
    println!("{files} forged files, {accepted} of them read");
}
