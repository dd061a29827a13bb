//! Tests of the file above.

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
    use super::super::rolling::Rolling;
    let plan = Plan { capacity: 100, fpr: 0.01, generations: 3, refresh: true, window: Some(5.0) };
    let mut filter = Generations::<Rolling>::new(plan, KeyHasher::seeded(0)).unwrap();
    filter.advance(5.0).unwrap();
    let header = filter.container().header;
    for at in 0..header.params.len() {
        for value in [0, 1, 2, 17, u64::MAX, f64::NAN.to_bits(), f64::INFINITY.to_bits(), 1 << 58] {
            let mut lie = header.clone();
            lie.params[at].2 = value;
            let mut memory = |_: u32, _: u32, words: u64| {
                if words == filter.nbytes() / 8 { Memory::zeroed(words) } else { Err(Error::format("length")) }
            };
            if let Ok(mut loaded) = Generations::<Rolling>::load(&lie, &mut memory, None) {
                loaded.add_hashes(&[1, 2, 3], None).unwrap();
                loaded.facts();
                let _ = loaded.advance(1e9);
            }
        }
    }
}
