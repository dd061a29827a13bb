//! How full a [`Chain`] is.

use super::bloom::{Chain, Layer};
use crate::sizing::Law;
use crate::sizing::classic::Classic;

impl Chain {
    /// Rate of the bits as they are.
    pub fn fpr(&self) -> f64 {
        self.fpr_of(&self.ones())
    }

    /// Share of bits that are set.
    pub fn fill(&self) -> f64 {
        self.fill_of(&self.ones())
    }

    /// Number of set bits of each layer.
    fn ones(&self) -> Vec<u64> {
        self.layers().iter().map(Layer::ones).collect()
    }

    fn fpr_of(&self, ones: &[u64]) -> f64 {
        let layers = self.layers().iter().zip(ones);
        let missed = layers.map(|(layer, &ones)| 1.0 - (ones as f64 / layer.bits as f64).powi(layer.hashes as i32));
        1.0 - missed.product::<f64>()
    }

    fn fill_of(&self, ones: &[u64]) -> f64 {
        ones.iter().sum::<u64>() as f64 / (self.nbytes() as f64 * 8.0)
    }

    /// Share of set bits and rate, from one count.
    pub fn fill_and_fpr(&self) -> (f64, f64) {
        self.fill_and_fpr_of(&self.ones())
    }

    /// [`Chain::fill_and_fpr`] if each layer has so many set bits.
    pub fn fill_and_fpr_of(&self, ones: &[u64]) -> (f64, f64) {
        (self.fill_of(ones), self.fpr_of(ones))
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
