//! How full a [`Chain`] is.

use super::bloom::{Chain, Layer};
use crate::sizing::Law;
use crate::sizing::classic::Classic;

impl Chain {
    /// Rate of the bits as they are.
    pub fn fpr(&self) -> f64 {
        let missed = |layer: &Layer| 1.0 - (layer.ones() as f64 / layer.bits as f64).powi(layer.hashes as i32);
        1.0 - self.layers().iter().map(missed).product::<f64>()
    }

    /// Share of bits that are set.
    pub fn fill(&self) -> f64 {
        self.layers().iter().map(Layer::ones).sum::<u64>() as f64 / (self.nbytes() as f64 * 8.0)
    }

    /// Estimated number of keys, and its standard deviation: the sum over its layers.
    pub fn approx_count(&self) -> (f64, f64) {
        let (keys, variance) = self.layers().iter().fold((0.0, 0.0), |(keys, variance), layer| {
            let law = Classic { num_bits: layer.bits, num_hashes: layer.hashes };
            let (items, deviation) = law.estimate(layer.ones() as f64 / layer.bits as f64);
            (keys + items, variance + deviation * deviation)
        });
        (keys, variance.sqrt())
    }
}
