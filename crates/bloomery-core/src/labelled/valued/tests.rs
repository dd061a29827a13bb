//! Tests of the file above.

use super::super::compact::CompactApproximator;
use super::*;
use crate::structure::Loadable;

#[test]
fn lying_headers_are_refused() {
    let filter = CompactApproximator::construct(50, 0.1, "min", 5, KeyHasher::seeded(0)).unwrap();
    let header = filter.container().header;
    for at in 0..header.params.len() {
        for value in [0, 1, 2, 3, 8, 65, u64::MAX, f64::NAN.to_bits(), 1 << 58] {
            let mut lie = header.clone();
            lie.params[at].2 = value;
            let mut memory = |_: u32, _: u32, words: u64| {
                let mut memory = Memory::zeroed(filter.nbytes() / 8)?;
                memory.words_mut().unwrap().fill(u64::MAX);
                if words.div_ceil(8) == filter.nbytes() / 64 { Ok(memory) } else { Err(Error::format("length")) }
            };
            if let Ok(mut loaded) = CompactApproximator::load(&lie, *filter.hasher(), &mut memory) {
                let _ = loaded.put_hashes(&[1, 2, 3], &[1, 1, 1], None);
                loaded.info();
                loaded.get_hash(7);
            }
        }
    }
}
