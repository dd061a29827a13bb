//! Warnings, each given once per filter: lookups of keys of a type that was never added, and more keys than the capacity. The
//! core records the domains of keys beside the hash of every structure; a lookup is compared with them here.

use fullbloom_core::key::{KeyDomains, KeyHasher, Surprise};
use fullbloom_core::labelled::valued::{Kind, Valued};
use fullbloom_core::structure::{Addable, Filter, HashSource};
use pyo3::prelude::*;

use crate::errors::{self, Overfull};
use crate::keys::scalar::hash_key_in;
use crate::locking::biased_lock::BiasedLock;

/// Warns if no key of the `domains` of a lookup was added, once per filter; raises if warnings are errors.
#[inline]
pub(crate) fn expect<F: Filter>(py: Python<'_>, lock: &BiasedLock<F>, domains: KeyDomains) -> PyResult<()> {
    if lock.read(py, |filter| filter.expects(domains)) { Ok(()) } else { warn_unexpected(py, lock, domains) }
}

#[cold]
fn warn_unexpected<F: Filter>(py: Python<'_>, lock: &BiasedLock<F>, domains: KeyDomains) -> PyResult<()> {
    let surprise = lock.write(py, |filter| filter.hasher_mut().domains_mut().surprise(domains));
    surprise.map_or(Ok(()), |surprise| warn(py, surprise))
}

/// [`expect`] for a batch; an empty one looks nothing up.
pub(crate) fn expect_batch<F: Filter>(py: Python<'_>, lock: &BiasedLock<F>, source: &dyn HashSource) -> PyResult<()> {
    if source.is_empty() { Ok(()) } else { expect(py, lock, source.domains()) }
}

/// Hashes a key that is looked up.
pub(crate) fn hash_lookup<F: Filter>(
    lock: &BiasedLock<F>,
    hasher: &KeyHasher,
    key: &Bound<'_, PyAny>,
) -> PyResult<u64> {
    let (hash, domain) = hash_key_in(hasher, key)?;
    expect(key.py(), lock, KeyDomains::of(domain))?;
    Ok(hash)
}

/// Warns of a lookup of keys of a type that was never added.
pub(crate) fn warn(py: Python<'_>, surprise: Surprise) -> PyResult<()> {
    let message = format!(
        "{surprise}: equal texts and numbers are different keys (1 is not \"1\"), so none of them is found; look up keys \
         of the type that was added"
    );
    let category = py.import("fullbloom.errors")?.getattr("KeyDomainWarning")?;
    py.import("warnings")?.getattr("warn")?.call1((message, category))?;
    Ok(())
}

/// Warns that a filter holds more keys than it was sized for: `count`, or the number of new ones. Cost: that of the rate,
/// O(nbytes) if cells are counted for it, once per filter.
#[cold]
pub(crate) fn warn_overfull<F: Filter>(py: Python<'_>, lock: &BiasedLock<F>, count: Option<u64>) -> PyResult<()> {
    let overfull = lock.look(py, |filter| Overfull {
        count: count.unwrap_or_else(|| filter.num_added()),
        capacity: filter.capacity(),
        fpr: filter.fpr(),
        target_fpr: filter.target_fpr(),
    });
    errors::warn_overfull(py, &overfull)
}

/// Counts the keys of a filter after a merge, for which num_added may be an estimate; `None` if they may fit its capacity,
/// which is within three deviations in 999 of 1000 filters that do.
pub(crate) fn count_excess<F: Filter>(py: Python<'_>, lock: &BiasedLock<F>) -> Option<u64> {
    if lock.read(py, |filter| filter.num_added() <= filter.capacity()) {
        return None;
    }
    lock.look(py, |filter| {
        let (count, capacity) = (filter.num_added(), filter.capacity());
        match filter.estimate_count() {
            Some((items, deviation)) if items.is_finite() => {
                (items - 3.0 * deviation > capacity as f64).then(|| items.round() as u64)
            }
            _ => (count > capacity).then_some(count),
        }
    })
}

/// Warns about capacity after keys came from another filter.
pub(crate) fn warn_if_overfull<F: Addable>(py: Python<'_>, lock: &BiasedLock<F>) -> PyResult<()> {
    let Some(count) = count_excess(py, lock) else { return Ok(()) };
    if lock.write(py, F::newly_overfull) { warn_overfull(py, lock, Some(count)) } else { Ok(()) }
}

/// Warns about the capacity of a filter of pairs.
pub(crate) fn warn_if_pairs_overfull<V: Kind>(py: Python<'_>, lock: &BiasedLock<Valued<V>>) -> PyResult<()>
where
    Valued<V>: Filter,
{
    let newly = lock.write(py, Valued::newly_overfull);
    newly.map_or(Ok(()), |count| warn_overfull(py, lock, Some(count)))
}
