//! `RetouchedBloomFilter`.

use bloomery_core::bloom::RetouchedBloomFilter as Core;
use bloomery_core::bloom::retouched::{CHOICES, Choice};
use bloomery_core::key::KeyHasher;
use bloomery_core::key::source::CHUNK;
use bloomery_core::registry::RETOUCHED;
use bloomery_core::scheme::positions::Positions;
use bloomery_core::structure::HashSource;
use pyo3::prelude::*;

use super::{addable_methods, filter_methods, plain_methods};
use crate::biased_lock::BiasedLock;
use crate::errors::{OrRaise, parameter, parameter_type};
use crate::keys::batch::{self, Operation};
use crate::keys::scalar::hash_key;
use crate::params;

/// A Bloom filter whose troublesome false positives are cleared away, at the price of denying some
/// of its members.
///
/// capacity: expected number of distinct keys. fpr: rate of false positives at capacity, before any
/// bit is cleared. seed, secret: as for BloomFilter.
///
/// Train it: add members, then add_false_positive() keys that are known to be admitted wrongly, then
/// retouch() those that hurt. False negatives: by design, from the first bit that is cleared; fnr()
/// estimates their rate. Each of the schemes but "random" removes several times as many false
/// positives as it denies members, while few are retouched; clear_random() removes just as many.
/// Raises ParameterError, ParameterTypeError, FilterMemoryError. Cost: BloomFilter's classic layout and
/// two counters of 8 bits beside each bit, which are saved with it: 163 bits a key at 1 %.
/// Source: Donnet, Baynat, Friedman, CoNEXT 2006; a share x of the set bits cleared at random leaves a
/// rate of (fill (1 - x))^k and denies 1 - (1 - x)^k of the members.
///
/// >>> from bloomery import RetouchedBloomFilter
/// >>> f = RetouchedBloomFilter(10, 0.2)
/// >>> f.update(range(10))
/// >>> wrong = [key for key in range(1000, 2000) if f.add_false_positive(key)]
/// >>> f.retouch(wrong[0]), wrong[0] in f
/// (True, False)
/// >>> 0 < f.fnr() < 1
/// True
#[pyclass(frozen, module = "bloomery", name = "RetouchedBloomFilter")]
pub(crate) struct RetouchedBloomFilter {
    pub(crate) hasher: KeyHasher,
    pub(crate) lock: BiasedLock<Core>,
}

filter_methods!(RetouchedBloomFilter, Core, RETOUCHED);
addable_methods!(RetouchedBloomFilter, Core);
plain_methods!(RetouchedBloomFilter, RETOUCHED);

/// What is done with a batch of false positives.
struct Train<'a, W> {
    lock: &'a BiasedLock<Core>,
    work: W,
}

impl<W: Fn(&mut Core, u64) -> bloomery_core::Result<bool> + Sync> Operation for Train<'_, W> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, mut out: Option<&mut [u8]>) -> PyResult<()> {
        let done = self.lock.detach(py, |session| {
            let mut hashes = [0u64; CHUNK];
            for start in (0..source.len()).step_by(CHUNK) {
                let hashes = &mut hashes[..CHUNK.min(source.len() - start)];
                source.fill(start, hashes);
                session.write(|filter| {
                    for (i, &hash) in hashes.iter().enumerate() {
                        let answer = (self.work)(filter, hash)?;
                        if let Some(out) = out.as_deref_mut() {
                            out[start + i] = u8::from(answer);
                        }
                    }
                    Ok(())
                })?;
            }
            Ok(())
        });
        done.or_raise(py)
    }
}

/// The `scheme=` argument.
struct SchemeChoice(Choice);

/// Its default.
const RATIO: SchemeChoice = SchemeChoice(Choice::Ratio);

impl<'py> FromPyObject<'_, 'py> for SchemeChoice {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = value.py();
        let Ok(name) = value.extract::<String>() else {
            return Err(parameter_type(py, format!("scheme must be a str, got {}", value.repr()?)));
        };
        Choice::from_name(&name).map(SchemeChoice).ok_or_else(|| {
            let names: Vec<&str> = CHOICES.iter().map(|(_, name)| *name).collect();
            parameter(py, format!("scheme must be one of {}, got {name:?}", names.join(", ")))
        })
    }
}

#[pymethods]
impl RetouchedBloomFilter {
    #[new]
    #[pyo3(signature = (
        capacity: "int", fpr: "float" = params::Fpr(0.01), *, seed: "int" = None,
        secret: "bytes | bool | None" = None
    ))]
    #[pyo3(text_signature = "(capacity, fpr=0.01, *, seed=0, secret=None)")]
    fn new(
        capacity: &Bound<'_, PyAny>,
        fpr: params::Fpr,
        seed: Option<&Bound<'_, PyAny>>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = capacity.py();
        let capacity = params::whole("capacity", capacity, 1)?;
        let hasher = params::hasher(seed.map_or(Ok(0), params::seed)?, params::secret(secret)?);
        let positions = Positions::for_capacity(capacity, fpr.0).or_raise(py)?;
        py.detach(|| Core::new(positions, capacity, fpr.0, hasher)).or_raise(py).map(Self::wrap)
    }

    /// Takes note of a key that is admitted and should not be, for the schemes of retouch; nothing is
    /// cleared. False, and no change, when it is not admitted.
    #[pyo3(signature = (key: "object", /))]
    fn add_false_positive(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = hash_key(&self.hasher, key)?;
        let py = key.py();
        self.lock.write(py, |f| f.note_false_positive(hash)).or_raise(py)
    }

    /// As add_false_positive for many keys, in the caller's kind; takes what contains_many takes,
    /// skips nulls.
    #[pyo3(signature = (keys: "object") -> "Any")]
    fn add_false_positives<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        batch::run(&Train { lock: &self.lock, work: Core::note_false_positive }, &self.hasher, keys, true)
    }

    /// Clears one bit of a key, so that it is admitted no more; False when it was not.
    ///
    /// scheme: "random"; "minimum-fn", the bit that fewest members set; "maximum-fp", the bit that most
    /// known false positives need; "ratio", the bit with most of these a member.
    #[pyo3(signature = (key: "object", scheme: "str" = RATIO))]
    #[pyo3(text_signature = "($self, key, scheme='ratio')")]
    fn retouch(&self, key: &Bound<'_, PyAny>, scheme: SchemeChoice) -> PyResult<bool> {
        let hash = hash_key(&self.hasher, key)?;
        let py = key.py();
        self.lock.write(py, |f| f.retouch(hash, scheme.0)).or_raise(py)
    }

    /// As retouch for many keys, one after the other, in the caller's kind; takes what contains_many
    /// takes, skips nulls.
    #[pyo3(signature = (keys: "object", scheme: "str" = RATIO) -> "Any")]
    #[pyo3(text_signature = "($self, keys, scheme='ratio')")]
    fn retouch_many<'py>(&self, keys: &Bound<'py, PyAny>, scheme: SchemeChoice) -> PyResult<Bound<'py, PyAny>> {
        let work = |f: &mut Core, hash| f.retouch(hash, scheme.0);
        batch::run(&Train { lock: &self.lock, work }, &self.hasher, keys, true)
    }

    /// Clears a share of the set bits, chosen by seed, and answers how many: O(nbytes).
    #[pyo3(signature = (share: "float", seed: "int" = None))]
    #[pyo3(text_signature = "($self, share, seed=0)")]
    fn clear_random(&self, share: &Bound<'_, PyAny>, seed: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
        let py = share.py();
        let (share, seed) = (params::real("share", share)?, seed.map_or(Ok(0), params::seed)?);
        self.lock.write(py, |f| f.clear_random(share, seed)).or_raise(py)
    }

    /// Estimated share of the members that are denied, from the cells: O(nbytes).
    fn fnr(&self, py: Python<'_>) -> f64 {
        self.lock.read(py, Core::fnr)
    }

    /// m.
    #[getter]
    fn num_bits(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, |f| f.positions().num_bits)
    }

    /// k.
    #[getter]
    fn num_hashes(&self, py: Python<'_>) -> u32 {
        self.lock.read(py, |f| f.positions().num_hashes)
    }
}
