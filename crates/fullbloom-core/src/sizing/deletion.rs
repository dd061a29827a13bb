//! Laws of bit filters that take keys out: deletable and retouched.

use super::any_of;

/// Share of the keys of a deletable filter that can be deleted, as it stands: `1 - (1 - free / throws)^k`, each of
/// the k throws of a key being one of the `free` set bits in regions where no keys met; 1 for an empty filter.
/// Rothenberg, Macapuna, Verdi and Magalhaes, "The deletable Bloom filter", 2010.
pub fn deletability(free: f64, throws: f64, num_hashes: u32) -> f64 {
    if throws <= 0.0 {
        return 1.0;
    }
    any_of((free / throws).min(1.0), f64::from(num_hashes))
}

/// Share of the keys of a retouched filter that are missed when a share of their bits was cleared: `1 - (1 - x)^k`.
/// Donnet, Baynat and Friedman, "Retouched Bloom filters", 2006.
pub fn missed(lost: f64, num_hashes: f64) -> f64 {
    any_of(lost, num_hashes)
}
