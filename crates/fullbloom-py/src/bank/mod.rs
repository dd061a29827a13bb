//! [`FilterBank`] as a class: keys come in pairs with their owners, so it is made by hand rather than from the registry.
//!
//! * [`pairs`]: two columns to pairs of hashes;
//! * [`files`]: banks to and from files and bytes, and copies.

mod files;
mod pairs;

use std::path::PathBuf;

use fullbloom_core::bank::{Exported, FilterBank as Core, Plan};
use fullbloom_core::key::{KeyDomains, KeyHasher};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::classes::bloom::BloomFilter;
use crate::classes::scalable::ScalableBloomFilter;
use crate::errors::OrRaise;
use crate::keys::batch;
use crate::keys::ready;
use crate::keys::scalar::hash_key_in;
use crate::locking::biased_lock::BiasedLock;
use crate::parameters;
use crate::python_objects::lists;

use pairs::{PairOperation, Pairs};

/// Millions of small Bloom filters, one per owner (a user, a tenant, a block), in one memory or one mapped file.
///
/// capacity: keys of an owner, up to which its rate of false positives is at most fpr. max_fpr: bound on the rate of an
/// owner that grows beyond its capacity, 2 * fpr by default; with max_fpr=fpr such keys are refused with FilterFull.
/// growth: factor between the capacities of successive stages of an owner. max_owners: more are refused with FilterFull.
/// seed, secret: as for filters; both hash owners and keys.
///
/// Each filter is of layout "blocked" and a key touches one cache line. An owner costs nothing until its first key: then
/// the lines of its filter and 16 bytes of a table that is 80 to 90 % full. Owners are distinguished by 64-bit hashes: among n,
/// two share one with probability n**2 / 2**65, 3e-6 for ten million. Names of owners are not stored.
///
/// Raises ParameterError, ParameterTypeError, FilterMemoryError. Cost: 10 bits per key at 1 %, in whole lines of 64 bytes per
/// owner. Source: Almeida et al., 2007, for the stages of an owner that grows.
///
/// >>> from fullbloom import FilterBank
/// >>> read = FilterBank(500, fpr=0.01)
/// >>> read.add("ada", "article 1"), read.add("ada", "article 1")
/// (True, False)
/// >>> ("ada", "article 1") in read, ("alan", "article 1") in read
/// (True, False)
/// >>> read.contains_many(["ada", "alan"], ["article 1", "article 1"])
/// [True, False]
#[pyclass(frozen, module = "fullbloom")]
pub(crate) struct FilterBank {
    lock: BiasedLock<Core>,
    hasher: KeyHasher,
    path: Option<PathBuf>,
    max_bytes: u64,
}

/// Arguments, read under their names.
mod arguments {
    crate::parameters::readers!(capacity: "int"; owners: "int"; growth: "float"; max_fpr: "float | None";
        max_owners: "int | None"; keys: "int | None";);
}

impl FilterBank {
    fn wrap(bank: Core, max_bytes: u64) -> Self {
        FilterBank { hasher: bank.hasher().fresh(), lock: BiasedLock::new(bank, Core::nbytes), path: None, max_bytes }
    }

    /// The hash of an owner.
    fn owner(&self, owner: &Bound<'_, PyAny>) -> PyResult<u64> {
        hash_key_in(&self.hasher, owner).map(|(hash, _)| hash)
    }

    fn pairs<'py>(
        &self,
        (owners, keys): (&Bound<'py, PyAny>, &Bound<'py, PyAny>),
        (job, threads): (PairOperation, usize),
        (hashed, wanted): (bool, bool),
    ) -> PyResult<Bound<'py, PyAny>> {
        pairs::with_owners(&self.hasher, owners, hashed, &|owners| {
            let pairs = Pairs::new(&self.lock, owners, job, threads);
            let answers =
                if hashed { ready::run(&pairs, keys)? } else { batch::run(&pairs, &self.hasher, keys, wanted)? };
            pairs.finish(keys.py())?;
            Ok(answers)
        })
    }

    /// The error for an owner that is not in the bank.
    fn absent(owner: &Bound<'_, PyAny>) -> PyErr {
        PyKeyError::new_err((owner.clone().unbind(),))
    }
}

#[pymethods]
impl FilterBank {
    #[new]
    #[pyo3(signature = (
        capacity: "int", fpr: "float" = parameters::Fpr(0.01), *, max_fpr: "float | None" = None, growth: "float" = 2.0,
        max_owners: "int | None" = None, seed: "int" = 0, secret: "bytes | bool | None" = None
    ))]
    #[pyo3(text_signature = "(capacity, fpr=0.01, *, max_fpr=None, growth=2.0, max_owners=None, seed=0, secret=None)")]
    #[allow(clippy::too_many_arguments)] // the public signature
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::capacity)] capacity: u64,
        fpr: parameters::Fpr,
        #[pyo3(from_py_with = arguments::max_fpr)] max_fpr: Option<f64>,
        #[pyo3(from_py_with = arguments::growth)] growth: f64,
        #[pyo3(from_py_with = arguments::max_owners)] max_owners: Option<u64>,
        #[pyo3(from_py_with = parameters::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let hasher = parameters::create_hasher(seed, secret)?;
        let plan = Plan::new(capacity, fpr.0, max_fpr, growth, max_owners.unwrap_or(0));
        Core::new(plan, hasher).or_raise(py).map(|bank| Self::wrap(bank, u64::MAX))
    }

    /// Bytes of a bank of `owners` owners with `keys` keys each (capacity by default): its lines, and tables nine tenths
    /// full. Nothing is allocated.
    ///
    /// Raises ParameterError if they exceed the 2**32 lines of a bank.
    ///
    /// >>> from fullbloom import FilterBank
    /// >>> FilterBank.nbytes_for(10_000_000, 5000, fpr=0.01) / 1e9
    /// 63.537777792
    #[staticmethod]
    #[pyo3(signature = (
        owners: "int", capacity: "int", fpr: "float" = parameters::Fpr(0.01), *, keys: "int | None" = None,
        max_fpr: "float | None" = None, growth: "float" = 2.0
    ))]
    #[pyo3(text_signature = "(owners, capacity, fpr=0.01, *, keys=None, max_fpr=None, growth=2.0)")]
    fn nbytes_for(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::owners)] owners: u64,
        #[pyo3(from_py_with = arguments::capacity)] capacity: u64,
        fpr: parameters::Fpr,
        #[pyo3(from_py_with = arguments::keys)] keys: Option<u64>,
        #[pyo3(from_py_with = arguments::max_fpr)] max_fpr: Option<f64>,
        #[pyo3(from_py_with = arguments::growth)] growth: f64,
    ) -> PyResult<u64> {
        let plan = Plan::new(capacity, fpr.0, max_fpr, growth, 0);
        py.detach(|| plan.check()?.nbytes(owners, keys.unwrap_or(capacity))).or_raise(py)
    }

    /// True when the key of a pair (owner, key) was probably added for the owner, False when it certainly was not.
    fn __contains__(&self, pair: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, (owner, key)) = (pair.py(), pairs::split(pair)?);
        crate::cpython::learn(py);
        let (owner, (key, domain)) = (self.owner(&owner)?, hash_key_in(&self.hasher, &key)?);
        pairs::expect_domain(py, &self.lock, domain)?;
        Ok(self.lock.read(py, |bank| bank.contains(owner, key)))
    }

    /// Adds a key for an owner: True if it was certainly new.
    ///
    /// Raises KeyTypeError, ReadOnlyFilter, FilterMemoryError; FilterFull for an owner past max_owners, for a key past the
    /// capacity of an owner that may not grow, and when the bank has 2**32 lines.
    #[pyo3(signature = (owner: "Key", key: "Key", /) -> "bool")]
    fn add(&self, owner: &Bound<'_, PyAny>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = key.py();
        crate::cpython::learn(py);
        let (owner, (key, domain)) = (self.owner(owner)?, hash_key_in(&self.hasher, key)?);
        let add = |bank: &mut Core| {
            let new = bank.add(owner, key)?;
            bank.hasher_mut().domains_mut().insert(KeyDomains::of(domain));
            Ok(new)
        };
        self.lock.write(py, add).or_raise(py)
    }

    /// Adds pairs in order: keys[i] for owners[i], or every key for one owner.
    ///
    /// owners, keys: any batches of one length, as contains_many of other classes takes them; neither may have nulls.
    /// owners may be one key that is not a container, such as a text or an int. Raises as add() and ParameterError for
    /// batches of different lengths; pairs before a refused one are added, and none behind it.
    ///
    /// >>> from fullbloom import FilterBank
    /// >>> bank = FilterBank(100)
    /// >>> bank.update([1, 1, 2], ["a", "b", "a"])
    /// >>> bank.update(3, ["a", "b"])
    /// >>> len(bank), bank.num_added
    /// (3, 5)
    #[pyo3(signature = (owners: "Keys | Key", keys: "Keys") -> "None")]
    fn update(&self, owners: &Bound<'_, PyAny>, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        self.pairs((owners, keys), (PairOperation::Add, 1), (false, false)).map(drop)
    }

    /// As update; one result per pair, True if it was new, in the same container type as the keys.
    #[pyo3(signature = (owners: "Keys | Key", keys: "Keys") -> "Answers[bool]")]
    fn add_many<'py>(&self, owners: &Bound<'py, PyAny>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.pairs((owners, keys), (PairOperation::Add, 1), (false, true))
    }

    /// One result per pair, in the same container type as the keys; the GIL is released.
    ///
    /// owners, keys: as for update. threads: how many may be used.
    #[pyo3(signature = (owners: "Keys | Key", keys: "Keys", *, threads: "int" = 1) -> "Answers[bool]")]
    fn contains_many<'py>(
        &self,
        owners: &Bound<'py, PyAny>,
        keys: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = parameters::threads)] threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.pairs((owners, keys), (PairOperation::Check, threads), (false, true))
    }

    /// add_many for ready 64-bit hashes of owners and keys (see hash_many, with the bank's seed and secret).
    #[pyo3(signature = (owners: "Hashes | SupportsIndex", keys: "Hashes") -> "Answers[bool]")]
    fn add_hashed<'py>(&self, owners: &Bound<'py, PyAny>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.pairs((owners, keys), (PairOperation::Add, 1), (true, true))
    }

    /// contains_many for ready 64-bit hashes of owners and keys.
    #[pyo3(signature = (owners: "Hashes | SupportsIndex", keys: "Hashes") -> "Answers[bool]")]
    fn contains_hashed<'py>(
        &self,
        owners: &Bound<'py, PyAny>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.pairs((owners, keys), (PairOperation::Check, 1), (true, true))
    }

    /// Number of owners.
    fn __len__(&self, py: Python<'_>) -> usize {
        self.lock.read(py, |bank| bank.len() as usize)
    }

    fn __bool__(&self, py: Python<'_>) -> bool {
        self.lock.read(py, |bank| !bank.is_empty())
    }

    /// True for an owner to which a key was added and that was not removed.
    #[pyo3(signature = (owner: "Key") -> "bool")]
    fn has_owner(&self, py: Python<'_>, owner: &Bound<'_, PyAny>) -> PyResult<bool> {
        let owner = self.owner(owner)?;
        Ok(self.lock.read(py, |bank| bank.has_owner(owner)))
    }

    /// The hashes of all owners (see hash_key), in the order of their table: their names are not stored.
    #[pyo3(signature = () -> "list[int]")]
    fn owners<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let owners: Vec<u64> = self.lock.look(py, |bank| bank.each_owner().map(|(owner, _)| owner).collect());
        lists::create_ints(py, &owners)
    }

    /// Removes an owner and its keys; the next owners take its lines. Raises KeyError if it is not in the bank.
    #[pyo3(signature = (owner: "Key") -> "None")]
    fn remove_owner(&self, py: Python<'_>, owner: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.discard_owner(py, owner)? { Ok(()) } else { Err(Self::absent(owner)) }
    }

    /// As remove_owner, but returns False if the owner is not in the bank.
    #[pyo3(signature = (owner: "Key") -> "bool")]
    fn discard_owner(&self, py: Python<'_>, owner: &Bound<'_, PyAny>) -> PyResult<bool> {
        let owner = self.owner(owner)?;
        self.lock.write(py, |bank| bank.remove_owner(owner)).or_raise(py)
    }

    /// Removes the keys of an owner, which remains. Raises KeyError if it is not in the bank.
    #[pyo3(signature = (owner: "Key") -> "None")]
    fn clear_owner(&self, py: Python<'_>, owner: &Bound<'_, PyAny>) -> PyResult<()> {
        let hash = self.owner(owner)?;
        let cleared = self.lock.write(py, |bank| bank.clear_owner(hash)).or_raise(py)?;
        if cleared { Ok(()) } else { Err(Self::absent(owner)) }
    }

    /// Removes all owners.
    #[pyo3(signature = () -> "None")]
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.lock.change(py, Core::clear).or_raise(py)
    }

    /// The filter of an owner as one of its own, whose answers equal the bank's: a BloomFilter, or a ScalableBloomFilter of
    /// an owner that has grown. Raises KeyError if it is not in the bank.
    ///
    /// >>> from fullbloom import FilterBank
    /// >>> bank = FilterBank(100)
    /// >>> bank.update("ada", [1, 2])
    /// >>> bank.export("ada").contains_many([1, 3])
    /// [True, False]
    #[pyo3(signature = (owner: "Key") -> "BloomFilter | ScalableBloomFilter")]
    fn export<'py>(&self, py: Python<'py>, owner: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let hash = self.owner(owner)?;
        match self.lock.read(py, |bank| bank.export(hash)).or_raise(py)? {
            None => Err(Self::absent(owner)),
            Some(Exported::One(filter)) => Ok(Bound::new(py, BloomFilter::wrap(filter))?.into_any()),
            Some(Exported::Grown(filter)) => Ok(Bound::new(py, ScalableBloomFilter::wrap(filter))?.into_any()),
        }
    }

    /// Estimated number of keys of an owner, with its standard deviation, from its set bits; (0, 0) for an owner that is
    /// not in the bank.
    #[pyo3(signature = (owner: "Key") -> "tuple[float, float]")]
    fn approx_count(&self, py: Python<'_>, owner: &Bound<'_, PyAny>) -> PyResult<(f64, f64)> {
        let owner = self.owner(owner)?;
        self.lock.read(py, |bank| bank.owner_estimate(owner)).or_raise(py)
    }

    /// Model rate of false positives of an owner at its present load; 0 for one that is not in the bank.
    #[pyo3(signature = (owner: "Key") -> "float")]
    fn fpr(&self, py: Python<'_>, owner: &Bound<'_, PyAny>) -> PyResult<f64> {
        let owner = self.owner(owner)?;
        self.lock.read(py, |bank| bank.owner_fpr(owner)).or_raise(py)
    }

    /// Parameters and state of the bank, or of one owner (KeyError if it is not in the bank), as a dict of plain values.
    #[pyo3(signature = (owner: "Key | None" = None) -> "dict[str, Any]")]
    fn info<'py>(&self, py: Python<'py>, owner: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyDict>> {
        let info = PyDict::new(py);
        let Some(name) = owner.filter(|owner| !owner.is_none()) else {
            info.set_item("class", "FilterBank")?;
            let plan = self.lock.read(py, |bank| *bank.plan());
            info.set_item("capacity", plan.capacity)?;
            info.set_item("target_fpr", plan.fpr)?;
            info.set_item("max_fpr", plan.max_fpr)?;
            info.set_item("growth", plan.growth)?;
            info.set_item("max_owners", (plan.max_owners > 0).then_some(plan.max_owners))?;
            let numbers = self.lock.read(py, |bank| {
                [
                    ("owners", bank.len()),
                    ("later_stages", bank.num_later()),
                    ("num_added", bank.num_added()),
                    ("nbytes", bank.nbytes()),
                    ("line_bytes", bank.line_bytes()),
                    ("directory_bytes", bank.directory_bytes()),
                ]
            });
            numbers.into_iter().try_for_each(|(name, number)| info.set_item(name, number))?;
            info.set_item("mapped", self.lock.read(py, Core::is_mapped))?;
            return Ok(info);
        };
        let owner = self.owner(name)?;
        let state = self.lock.read(py, |bank| {
            let numbers = (bank.num_keys(owner), bank.num_stages(owner), bank.owner_bytes(owner));
            Ok((numbers, bank.owner_fpr(owner)?, bank.owner_estimate(owner)?))
        });
        let ((keys, stages, bytes), fpr, (items, deviation)) = state.or_raise(py)?;
        let Some(keys) = keys else { return Err(Self::absent(name)) };
        info.set_item("num_added", keys)?;
        info.set_item("stages", stages)?;
        info.set_item("nbytes", bytes)?;
        info.set_item("fpr", fpr)?;
        info.set_item("approx_count", items)?;
        info.set_item("approx_count_sd", deviation)?;
        Ok(info)
    }

    /// Adds the owners and keys of another bank of equal capacity, fpr, max_fpr, growth and hash.
    ///
    /// Filters of one owner are merged stage by stage and its number of keys is estimated. If that exceeds its capacity,
    /// its rate exceeds fpr, which info(owner) shows. Raises IncompatibleFilters, naming the fields that differ.
    #[pyo3(signature = (other: "Self"))]
    fn merge(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = parameters::other::<FilterBank>)] other: Py<Self>,
    ) -> PyResult<()> {
        let other = other.get();
        if std::ptr::eq(&self.lock, &other.lock) {
            return Ok(());
        }
        self.lock.change_from(&other.lock, py, Core::merge).or_raise(py)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.lock.look_both(&other.get().lock, py, Core::same_as))
    }

    /// Keys of an owner before it grows.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, |bank| bank.plan().capacity)
    }

    /// Rate of an owner at its capacity.
    #[getter]
    fn target_fpr(&self, py: Python<'_>) -> f64 {
        self.lock.read(py, |bank| bank.plan().fpr)
    }

    /// Bound on the rate of an owner, however many keys it has.
    #[getter]
    fn max_fpr(&self, py: Python<'_>) -> f64 {
        self.lock.read(py, |bank| bank.plan().max_fpr)
    }

    /// Factor between the capacities of successive stages.
    #[getter]
    fn growth(&self, py: Python<'_>) -> f64 {
        self.lock.read(py, |bank| bank.plan().growth)
    }

    /// Most owners, or None.
    #[getter]
    fn max_owners(&self, py: Python<'_>) -> Option<u64> {
        Some(self.lock.read(py, |bank| bank.plan().max_owners)).filter(|&most| most > 0)
    }

    /// Keys of all owners that were new when they were added, less those of removed owners.
    #[getter]
    fn num_added(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, Core::num_added)
    }

    /// Bytes of all lines and tables.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, Core::nbytes)
    }

    /// Seed of the key hash.
    #[getter]
    fn seed(&self) -> u64 {
        self.hasher.seed()
    }

    /// True when owners and keys are hashed under a secret.
    #[getter]
    fn keyed(&self) -> bool {
        self.hasher.is_keyed()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (plan, owners, keys, bytes) =
            self.lock.read(py, |bank| (*bank.plan(), bank.len(), bank.num_added(), bank.nbytes()));
        let Plan { capacity, fpr, .. } = plan;
        format!("FilterBank(capacity={capacity}, fpr={fpr}: {owners} owners, {keys} keys, {bytes} bytes)")
    }
}
