//! What only `CountingBloomFilter` has: questions about a number of occurrences.

use bloomery_core::counting::CountingBloomFilter as Core;
use pyo3::prelude::*;

use crate::classes::counting::CountingBloomFilter;
use crate::keys::batch;
use crate::keys::scalar::hash_key;
use crate::operations::Ask;
use crate::params;

/// Checks `at_least=`.
fn least(value: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    value.map_or(Ok(1), |value| params::whole("at_least", value, 1))
}

#[pymethods]
impl CountingBloomFilter {
    /// True when the key seems to have been added `at_least` times more than removed, False when it
    /// certainly was not. Beyond the counters' maximum the answer is that for the maximum.
    #[pyo3(signature = (key: "Key", /, *, at_least: "int" = None))]
    #[pyo3(text_signature = "($self, key, /, *, at_least=1)")]
    fn contains(&self, key: &Bound<'_, PyAny>, at_least: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let least = least(at_least)?;
        let hash = hash_key(&self.hasher, key)?;
        Ok(self.lock.read(key.py(), |f| f.reaches(hash, least)))
    }

    /// As contains, for many keys; takes and answers what contains_many does.
    #[pyo3(signature = (keys: "Keys", at_least: "int") -> "Answers[bool]")]
    fn contains_many_at_least<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        at_least: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let least = least(Some(at_least))?;
        let reach = |f: &Core, hashes: &[u64], found: &mut [u8]| f.reach_hashes(hashes, least, found);
        batch::run(&Ask { lock: &self.lock, ask: &reach }, &self.hasher, keys, true)
    }

    /// Rate at which contains(key, at_least=...) is wrong now for keys never added, if no key came
    /// twice. Counts the counters in use: O(nbytes).
    #[pyo3(signature = (at_least: "int"))]
    fn fpr_at_least(&self, at_least: &Bound<'_, PyAny>) -> PyResult<f64> {
        let least = least(Some(at_least))?;
        Ok(self.lock.look(at_least.py(), |f| f.fpr_at_least(least)))
    }
}
