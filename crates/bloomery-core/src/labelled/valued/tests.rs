//! Tests of the file above.

use super::super::compact::CompactApproximator;
use super::*;

/// A well-mixed hash of a counter.
pub(crate) fn hash(i: u64) -> u64 {
    crate::hash::splitmix::at(0, i)
}

type Load<F> = fn(&Header, &mut dyn FnMut(u32, u32, u64) -> Result<Memory>, Option<&[u8; 16]>) -> Result<F>;

/// The structure as it comes back from its file.
pub(crate) fn reload<F: Filter>(filter: &F, load: Load<F>) -> F {
    let container = filter.container();
    let bytes = container.sections[0].bytes.to_vec();
    let mut memory = |_: u32, _: u32, words: u64| {
        let mut memory = Memory::zeroed(words)?;
        memory.copy_from_bytes(&bytes)?;
        Ok(memory)
    };
    load(&container.header, &mut memory, None).unwrap()
}

#[test]
fn lying_headers_are_refused() {
    let filter = CompactApproximator::new(50, 0.1, Lattice::Min, 5, KeyHasher::seeded(0)).unwrap();
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
            if let Ok(mut loaded) = CompactApproximator::load(&lie, &mut memory, None) {
                let _ = loaded.put_hashes(&[1, 2, 3], &[1, 1, 1], None);
                loaded.facts();
                loaded.get_hash(7);
            }
        }
    }
}
