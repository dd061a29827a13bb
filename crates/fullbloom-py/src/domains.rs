//! Lookups of keys that cannot be there: keys of a domain of which none was added. The core keeps the domains
//! beside the hash of every structure; here a lookup is compared with them, and the warning given once.

use fullbloom_core::key::{KeyDomains, KeyHasher, Surprise};
use fullbloom_core::structure::{Filter, HashSource};
use pyo3::prelude::*;

use crate::biased_lock::BiasedLock;
use crate::keys::scalar::hash_key_in;

/// Warns where no key of the `domains` of a lookup was added, once a filter; raises if warnings are errors.
#[inline]
pub(crate) fn expect<F: Filter>(py: Python<'_>, lock: &BiasedLock<F>, domains: KeyDomains) -> PyResult<()> {
    if lock.read(py, |filter| filter.expects(domains)) { Ok(()) } else { surprised(py, lock, domains) }
}

#[cold]
fn surprised<F: Filter>(py: Python<'_>, lock: &BiasedLock<F>, domains: KeyDomains) -> PyResult<()> {
    let surprise = lock.write(py, |filter| filter.hasher_mut().added_mut().surprise(domains));
    surprise.map_or(Ok(()), |surprise| warn(py, surprise))
}

/// [`expect`] of a batch; one without keys looks nothing up.
pub(crate) fn expect_all<F: Filter>(py: Python<'_>, lock: &BiasedLock<F>, source: &dyn HashSource) -> PyResult<()> {
    if source.is_empty() { Ok(()) } else { expect(py, lock, source.domains()) }
}

/// The hash of a key that is looked up.
pub(crate) fn looked_up<F: Filter>(lock: &BiasedLock<F>, hasher: &KeyHasher, key: &Bound<'_, PyAny>) -> PyResult<u64> {
    let (hash, domain) = hash_key_in(hasher, key)?;
    expect(key.py(), lock, KeyDomains::of(domain))?;
    Ok(hash)
}

fn warn(py: Python<'_>, surprise: Surprise) -> PyResult<()> {
    let message = format!(
        "{surprise}: equal texts and numbers are different keys (1 is not \"1\"), so none of them is found; look up keys \
         of the type that was added"
    );
    let category = py.import("fullbloom.errors")?.getattr("KeyDomainWarning")?;
    py.import("warnings")?.getattr("warn")?.call1((message, category))?;
    Ok(())
}
