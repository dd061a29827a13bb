//! `CountingBloomFilter`.

use bloomery_core::counting::filter::COUNTER_BITS;
use bloomery_core::counting::{CountingBloomFilter as Core, Layout, Shape};
use bloomery_core::key::KeyHasher;
use bloomery_core::key::source::CHUNK;
use bloomery_core::registry::COUNTING;
use bloomery_core::structure::HashSource;
use pyo3::prelude::*;

use super::{addable_methods, countable_methods, estimating_methods, filter_methods};
use super::{mergeable_methods, plain_methods, removable_methods};
use crate::biased_lock::BiasedLock;
use crate::errors::{OrRaise, parameter};
use crate::keys::batch::{self, Operation};
use crate::keys::scalar::hash_key;
use crate::params;

/// A Bloom filter of counters: keys can be removed, and counted.
///
/// capacity: expected number of distinct keys. fpr: rate of false positives at capacity.
/// counter_bits: 2, 3, 4, 8 or 16; a counter that reaches its maximum stays there for ever, so that
/// count() says "so many or more" from there on. threshold: the occurrences that matter, 1 for plain
/// membership; size and number of probes are chosen so that contains(key, at_least=threshold) is
/// wrong at a rate of at most fpr for keys never added, and fpr() speaks of that rate.
/// layout: "blocked" (one cache line a key; not for 3 bits), "classic" (least space), or "auto":
/// blocked while it costs at most 1.6 times the space of classic. seed, secret: as for BloomFilter.
///
/// No key is denied that was added more often than removed, as long as only keys were removed that
/// had been added: removing a key that merely seems to be there takes from the counters of others.
/// num_added is the number of additions less that of removals, repeated keys included; the warning
/// past capacity goes by distinct keys. merge() adds the counters of another filter.
///
/// Raises ParameterError, ParameterTypeError, FilterMemoryError, before anything is allocated;
/// remove() raises KeyError for a key that was certainly never added, and changes nothing.
/// Cost: 38.3 bits a key at 1 % (classic, four times a BloomFilter), 45.7 blocked.
/// Source: Fan, Cao, Almeida, Broder, IEEE/ACM ToN 8(3), 2000; rate (1 - (1 - 1/m)^(kn))^k, with a
/// threshold t P(Bin(kn, 1/m) >= t)^k; P(any of m counters of 4 bits overflows) <= 1.37e-15 m.
///
/// >>> from bloomery import CountingBloomFilter
/// >>> f = CountingBloomFilter(1000)
/// >>> f.update(["a", "b", "a"])
/// >>> f.count("a"), f.contains("a", at_least=2), f.contains("b", at_least=2)
/// (2, True, False)
/// >>> f.remove("b")
/// >>> "b" in f
/// False
#[pyclass(frozen, module = "bloomery", name = "CountingBloomFilter")]
pub(crate) struct CountingBloomFilter {
    pub(crate) hasher: KeyHasher,
    pub(crate) lock: BiasedLock<Core>,
}

filter_methods!(CountingBloomFilter, Core, COUNTING, "CountingBloomFilter");
addable_methods!(CountingBloomFilter, Core, "CountingBloomFilter");
removable_methods!(CountingBloomFilter);
countable_methods!(CountingBloomFilter);
mergeable_methods!(CountingBloomFilter, "The filter of both multisets, in place: counters add, up to their maximum.");
estimating_methods!(CountingBloomFilter);
plain_methods!(CountingBloomFilter, COUNTING, "CountingBloomFilter");

/// Checking against a number of occurrences.
struct Reach<'a> {
    lock: &'a BiasedLock<Core>,
    least: u64,
}

impl Operation for Reach<'_> {
    type Out = u8;
    const SKIPS_NULLS: bool = false;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [u8]>) -> PyResult<()> {
        let Some(out) = out else { return Ok(()) };
        self.lock.detach(py, |session| {
            let mut hashes = [0u64; CHUNK];
            for (i, out) in out.chunks_mut(CHUNK).enumerate() {
                let hashes = &mut hashes[..out.len()];
                source.fill(i * CHUNK, hashes);
                session.read(|filter| filter.reach_hashes(hashes, self.least, out));
            }
        });
        Ok(())
    }
}

/// Checks `at_least=`.
fn least(value: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    value.map_or(Ok(1), |value| params::whole("at_least", value, 1))
}

#[pymethods]
impl CountingBloomFilter {
    #[new]
    #[pyo3(signature = (
        capacity: "int", fpr: "float" = params::Fpr(0.01), *, counter_bits: "int" = None, threshold: "int" = None,
        layout: "str" = params::LayoutChoice(None), seed: "int" = None, secret: "bytes | bool | None" = None
    ))]
    #[pyo3(text_signature = "(capacity, fpr=0.01, *, counter_bits=4, threshold=1, layout='auto', seed=0, secret=None)")]
    #[allow(clippy::too_many_arguments)] // the public signature
    fn new(
        capacity: &Bound<'_, PyAny>,
        fpr: params::Fpr,
        counter_bits: Option<&Bound<'_, PyAny>>,
        threshold: Option<&Bound<'_, PyAny>>,
        layout: params::LayoutChoice,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = capacity.py();
        let capacity = params::whole("capacity", capacity, 1)?;
        let bits = counter_bits.map_or(Ok(u64::from(COUNTER_BITS)), |bits| params::whole("counter_bits", bits, 1))?;
        let bits = u32::try_from(bits).unwrap_or(u32::MAX);
        let threshold = threshold.map_or(Ok(1), |least| params::whole("threshold", least, 1))?;
        let hasher = params::hasher(seed.map_or(Ok(0), params::seed)?, params::secret(secret)?);
        let shape = match layout.0 {
            None => Shape::auto(bits, threshold, capacity, fpr.0),
            Some(named) => {
                let known = Layout::from_name(named.name()).ok_or_else(|| {
                    parameter(py, format!("layout must be auto, classic or blocked, got {:?}", named.name()))
                })?;
                Shape::for_capacity(known, bits, threshold, capacity, fpr.0)
            }
        };
        let shape = shape.or_raise(py)?;
        py.detach(|| Core::new(shape, capacity, fpr.0, hasher)).or_raise(py).map(Self::wrap)
    }

    /// True when the key seems to have been added `at_least` times more than removed, False when it
    /// certainly was not. Beyond the counters' maximum the answer is that for the maximum.
    #[pyo3(signature = (key: "object", /, *, at_least: "int" = None))]
    #[pyo3(text_signature = "($self, key, /, *, at_least=1)")]
    fn contains(&self, key: &Bound<'_, PyAny>, at_least: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let least = least(at_least)?;
        let hash = hash_key(&self.hasher, key)?;
        Ok(self.lock.read(key.py(), |f| f.reaches(hash, least)))
    }

    /// As contains, for many keys; takes and answers what contains_many does.
    #[pyo3(signature = (keys: "object", at_least: "int") -> "Any")]
    fn contains_many_at_least<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        at_least: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let reach = Reach { lock: &self.lock, least: least(Some(at_least))? };
        batch::run(&reach, &self.hasher, keys, true)
    }

    /// Rate at which contains(key, at_least=...) is wrong now for keys never added, if no key came
    /// twice. Counts the counters in use: O(nbytes).
    #[pyo3(signature = (at_least: "int"))]
    fn fpr_at_least(&self, at_least: &Bound<'_, PyAny>) -> PyResult<f64> {
        let least = least(Some(at_least))?;
        Ok(self.lock.read(at_least.py(), |f| f.fpr_at_least(least)))
    }

    /// m, the number of counters.
    #[getter]
    fn num_counters(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, |f| f.shape().num_cells)
    }

    /// Bits of a counter.
    #[getter]
    fn counter_bits(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, |f| f.shape().counter_bits)
    }

    /// k, the number of counters of a key.
    #[getter]
    fn num_hashes(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, |f| f.shape().num_hashes)
    }

    /// Occurrences for which the rate was asked.
    #[getter]
    fn threshold(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, |f| f.shape().threshold)
    }

    /// The layout's name.
    #[getter]
    fn layout(&self, py: Python<'_>) -> &'static str {
        self.lock.read(py, |f| f.shape().layout.name())
    }

    /// True when the counters live in a file.
    #[getter]
    fn mapped(&self, py: Python<'_>) -> bool {
        self.lock.read(py, Core::is_mapped)
    }
}
