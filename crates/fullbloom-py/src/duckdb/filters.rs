//! Filters that a query visits without the interpreter: those of the classes in the registry whose entries are keys.

use fullbloom_core::key::{KeyDomains, KeyHasher};
use fullbloom_core::structure::{Filter, HashSource, batch};
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;

use crate::locking::biased_lock::{BiasedLock, Visitor};
use crate::operations::warnings;

/// A filter that a thread of a query visits.
pub(super) trait VisitedFilter: Send {
    /// The hasher of its keys.
    fn hasher(&self) -> &KeyHasher;

    /// Looks keys up. False if a lookup of keys of `domains` needs a warning; then nothing is looked up. The thread must
    /// not be attached.
    fn contains(&self, keys: &dyn HashSource, domains: KeyDomains, found: &mut [u8]) -> bool;

    /// Ends the visit; the filter is not looked up in again.
    fn leave(&mut self);

    /// Warns of a lookup of keys of `domains`, once per filter; raises if warnings are errors.
    fn warn(&self, py: Python<'_>, domains: KeyDomains) -> PyResult<()>;
}

struct Visited<C: PyClass<Frozen = True> + Sync, F: Filter> {
    visitor: Visitor<C, F>,
    hasher: KeyHasher,
}

impl<C: PyClass<Frozen = True> + Sync, F: Filter> VisitedFilter for Visited<C, F> {
    fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    fn contains(&self, keys: &dyn HashSource, domains: KeyDomains, found: &mut [u8]) -> bool {
        self.visitor.read(|filter| {
            let expected = filter.expects(domains);
            if expected {
                batch::contains(filter, keys, 0, found);
            }
            expected
        })
    }

    fn leave(&mut self) {
        self.visitor.leave();
    }

    fn warn(&self, py: Python<'_>, domains: KeyDomains) -> PyResult<()> {
        warnings::expect(py, self.visitor.lock(), domains)
    }
}

/// The filter, if its class is among those; it counts as visited until the visit ends.
pub(super) fn visit(filter: &Bound<'_, PyAny>) -> Option<Box<dyn VisitedFilter>> {
    /// A cast for each row whose entries are keys.
    macro_rules! casts {
        ({} $({
            $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
            adds: $when:ident $entry:tt, $($rest:tt)*
        })*) => {
            $(casts!(@ $entry $module $family $Class);)*
        };
        (@ [key] $module:ident $family:ident $Class:ident) => {
            if let Ok(filter) = filter.cast::<crate::classes::$module::$Class>() {
                let lock: fn(&crate::classes::$module::$Class) -> &BiasedLock<_> = |filter| &filter.lock;
                let visitor = Visitor::new(filter, lock);
                return Some(Box::new(Visited { visitor, hasher: filter.get().hasher }));
            }
        };
        (@ $other:tt $module:ident $family:ident $Class:ident) => {};
    }
    fullbloom_core::variants!(casts! {});
    None
}
