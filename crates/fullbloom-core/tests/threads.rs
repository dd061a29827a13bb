//! Batches on several threads leave the bits, and give the answers, of one thread. `make tsan` runs this under
//! ThreadSanitizer.

#![allow(clippy::unwrap_used)] // a test says no more

use fullbloom_core::bloom::BloomFilter;
use fullbloom_core::hash::splitmix;
use fullbloom_core::key::KeyHasher;
use fullbloom_core::registry;
use fullbloom_core::structure::batch::{contains, contains_threads};
use fullbloom_core::structure::{Addable, Filter, Sizable};

/// Enough for four threads.
const KEYS: usize = 1 << 19;
const THREADS: usize = 4;

fn keys(seed: u64) -> Vec<u64> {
    // Every key comes twice, far apart or beside itself.
    (0..KEYS as u64).map(|i| splitmix::at(seed, if i % 2 == 0 { i / 2 } else { i % 7 * i / 14 })).collect()
}

fn bytes(filter: &BloomFilter) -> Vec<u8> {
    let mut bytes = Vec::new();
    let container = filter.container();
    container.write_with(&container.head().unwrap(), &mut bytes).unwrap();
    bytes
}

#[test]
fn adding_and_looking_up_on_threads_is_that_of_one_thread() {
    let layouts = registry::VARIANTS[0].layouts;
    for (seed, &layout) in layouts.iter().enumerate() {
        let make =
            || BloomFilter::for_capacity(KEYS as u64, 0.01, &[("layout", layout)], KeyHasher::seeded(0)).unwrap();
        let [mut one, mut many, mut silent] = [0, 1, 2].map(|_| make());
        let source = keys(seed as u64);
        let [mut new_to_one, mut new_to_many] = [0, 1].map(|_| vec![9; KEYS]);
        one.add_source(&source.as_slice(), 1, Some(&mut new_to_one)).unwrap();
        many.add_source(&source.as_slice(), THREADS, Some(&mut new_to_many)).unwrap();
        silent.add_source(&source.as_slice(), THREADS, None).unwrap();
        assert!(new_to_one == new_to_many, "{layout}: other answers");
        assert!(bytes(&one) == bytes(&many) && bytes(&one) == bytes(&silent), "{layout}: other bits");
        let probes = keys(100 + seed as u64);
        let [mut found_by_one, mut found_by_many] = [0, 1].map(|_| vec![9; KEYS]);
        contains(&one, &probes.as_slice(), 0, &mut found_by_one);
        contains_threads(&many, &probes.as_slice(), 0, &mut found_by_many, THREADS);
        assert!(found_by_one == found_by_many, "{layout}: other finds");
    }
}
