//! Tests of the file above.

use super::*;
use crate::structure::Loadable;

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
            if let Ok(mut loaded) = Generations::<Rolling>::load(&lie, *filter.hasher(), &mut memory) {
                loaded.add_hashes(&[1, 2, 3], None).unwrap();
                loaded.info();
                let _ = loaded.advance(1e9);
            }
        }
    }
}
