//! What only `FilterCascade` has: it is built from a closed world and answers only for its keys.

use std::cell::Cell;

use fullbloom_core::chain::FilterCascade as Core;
use fullbloom_core::chain::cascade::{LevelKind, Plan, Shapes, common};
use fullbloom_core::key::KeyHasher;
use fullbloom_core::key::source::CHUNK;
use fullbloom_core::registry::CASCADE;
use fullbloom_core::structure::opening::from_bytes_hashing;
use fullbloom_core::structure::{Filter, HashSource};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::build::{BuildOptions, record_domains};
use crate::classes::cascade::FilterCascade;
use crate::errors::{OrRaise, parameter};
use crate::keys::batch::{self, Operation};
use crate::locking::biased_lock::BiasedLock;
use crate::locking::slices;
use crate::operations::FindHash;
use crate::operations::warnings::{expect_batch, hash_lookup};
use crate::python_objects::bytes::read_bytes;
use crate::{operations, parameters};

/// Counts the keys with a wrong result.
struct CountErrors<'a> {
    lock: &'a BiasedLock<Core>,
    expected: u8,
    errors: Cell<u64>,
}

impl Operation for CountErrors<'_> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        expect_batch(py, self.lock, source)?;
        let (mut hashes, mut found, mut errors) = ([0u64; CHUNK], [0u8; CHUNK], 0);
        let expected = self.expected;
        slices::run_locked(self.lock, py, source.len(), |session, start| {
            let len = CHUNK.min(source.len() - start);
            let (hashes, found) = (&mut hashes[..len], &mut found[..len]);
            source.fill(start, hashes);
            session.read(|cascade| cascade.contains_hashes(hashes, found));
            errors += found.iter().filter(|&&found| found != expected).count() as u64;
            Ok(start + len)
        })?;
        self.errors.set(self.errors.get() + errors);
        Ok(())
    }
}

/// The error for two sets with a common hash, with the number of the key in each set that can be read again.
fn overlap(hasher: &KeyHasher, sets: [&Bound<'_, PyAny>; 2], hash: u64) -> PyErr {
    let [included, excluded] = sets.map(|keys| {
        let mut first = None;
        // Keys that cannot be read again have no numbers.
        let _ = batch::run(&FindHash::new(hash, |i| first = first.or(Some(i))), hasher, keys, false);
        first.map_or_else(String::new, |i| format!(" {i}"))
    });
    let why = format!(
        "included and excluded overlap: key{included} of included and key{excluded} of excluded (counted from 0, nulls left \
         out) have the hash {hash}; a key must be in one of them only"
    );
    parameter(sets[0].py(), why)
}

/// Arguments of build.
mod arguments {
    use super::FilterCascade;
    use crate::errors::parameter_type;
    use crate::parameters;
    use pyo3::prelude::*;

    pub(super) fn kind<'a>(value: &'a Bound<'a, PyAny>) -> PyResult<&'a str> {
        parameters::text("kind", value)
    }

    pub(super) fn layout<'a>(value: &'a Bound<'a, PyAny>) -> PyResult<&'a str> {
        parameters::text("layout", value)
    }

    pub(super) fn like(value: &Bound<'_, PyAny>) -> PyResult<Option<Py<FilterCascade>>> {
        if value.is_none() {
            return Ok(None);
        }
        let like = value.cast::<FilterCascade>().map(|like| Some(like.clone().unbind()));
        like.or_else(|_| {
            let message = format!("like must be a FilterCascade or None, got {}", value.get_type().name()?);
            Err(parameter_type(value.py(), message))
        })
    }
}

/// The kind of levels, their hasher, and their shapes.
struct Levels {
    kind: LevelKind,
    hasher: KeyHasher,
    shapes: Option<Shapes>,
}

impl Levels {
    /// By the names of a kind and a layout.
    fn new(py: Python<'_>, kind: &str, layout: &str, hasher: KeyHasher) -> PyResult<Self> {
        Ok(Levels { kind: LevelKind::new(kind, layout).or_raise(py)?, hasher, shapes: None })
    }

    /// As the levels of another cascade, which `self` must not contradict.
    fn like(self, py: Python<'_>, like: &FilterCascade) -> PyResult<Self> {
        let (kind, shapes) = like.lock.look(py, |like| Ok((like.level_kind(), like.shapes()?))).or_raise(py)?;
        let own = &self.hasher;
        if self.kind != LevelKind::Packed && self.kind != kind {
            return Err(parameter(py, "like is a cascade of another kind or layout; drop kind and layout"));
        }
        if own.is_keyed() || own.seed() != 0 && own.seed() != like.hasher.seed() {
            return Err(parameter(py, "like is a cascade with a seed and a secret of its own; drop seed and secret"));
        }
        Ok(Levels { kind, hasher: like.hasher, shapes: Some(shapes) })
    }
}

#[pymethods]
impl FilterCascade {
    /// The values of `kind`.
    #[staticmethod]
    #[pyo3(signature = () -> "list[str]")]
    fn kinds() -> Vec<&'static str> {
        LevelKind::rows().map(|row| row.name).collect()
    }

    /// The cascade that separates the keys of `included` from those of `excluded`; each takes what contains_many takes
    /// elsewhere, nulls are skipped, repeated keys count once.
    ///
    /// kind: the structure of levels, one of kinds(): the first, and those of 8,192 keys and more; smaller ones are Bloom filters
    /// anyway. layout: of levels of kind "bloom"; "auto" puts the bits of all in one section, the smallest for that kind. like: a
    /// cascade of another version of the sets. This one takes its kind, seed and secret, the shapes of levels that are within
    /// an eighth of its own, and such levels themselves if they are filters, with bits for new keys beside them: then
    /// delta_to() between the two is short.
    ///
    /// The same sets give the same bytes, in any order, with the same `like`. seed, secret: as of filters.
    /// threads: how many may be used; the GIL
    /// is released. progress: called with (done, total) now and then; an exception from it ends the work, as Ctrl-C does.
    /// memory: bytes that collecting may take; keys beyond it are in nameless files in the folder for temporary files.
    /// Raises ParameterError for a key in both sets, with an example, KeyTypeError, FilterMemoryError, OSError. Cost: some
    /// 0.03 us per key (32 ns at 10 million), 8 bytes of memory for each.
    ///
    /// >>> from fullbloom import FilterCascade
    /// >>> cascade = FilterCascade.build(range(10), range(10, 1000))
    /// >>> cascade.includes_many([0, 9, 10, 999])
    /// [True, True, False, False]
    /// >>> FilterCascade.build(range(10), range(10, 1000), kind="ribbon").kind
    /// 'ribbon'
    #[staticmethod]
    #[pyo3(signature = (
        included: "Keys", excluded: "Keys", *, kind: "str" = "bloom", layout: "str" = "auto",
        like: "FilterCascade | None" = None, seed: "int" = 0, secret: "bytes | bool | None" = None, threads: "int" = 1,
        progress: "Callable[[int, int], object] | None" = None, memory: "int | None" = None
    ))]
    #[allow(clippy::too_many_arguments)] // the public signature
    fn build(
        included: &Bound<'_, PyAny>,
        excluded: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::kind)] kind: &str,
        #[pyo3(from_py_with = arguments::layout)] layout: &str,
        #[pyo3(from_py_with = arguments::like)] like: Option<Py<Self>>,
        #[pyo3(from_py_with = parameters::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = parameters::threads)] threads: usize,
        progress: Option<&Bound<'_, PyAny>>,
        memory: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = included.py();
        let levels = Levels::new(py, kind, layout, parameters::create_hasher(seed, secret)?)?;
        let levels = match like {
            Some(like) => levels.like(py, like.get())?,
            None => levels,
        };
        let (options, sets, hasher) =
            (BuildOptions::read(threads, progress, memory)?, [included, excluded], levels.hasher);
        let plan = Plan { kind: levels.kind, hasher, like: levels.shapes.as_ref() };
        let (built, domains) =
            options.build_from_two(&hasher, sets, |included, excluded, job| match common(included, excluded)? {
                Some(hash) => Ok(Err(hash)),
                None => Core::build(included, excluded, plan, job).map(Ok),
            })?;
        built.map(|built| Self::wrap(record_domains(built, domains))).map_err(|hash| overlap(&hasher, sets, hash))
    }

    /// True for a key of `included`, False for one of `excluded`. For any other key the result means nothing: query
    /// only keys of the world that it was built from.
    #[pyo3(signature = (key: "Key", /))]
    fn includes(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = hash_lookup(&self.lock, &self.hasher, key)?;
        Ok(self.lock.read(key.py(), |cascade| cascade.contains_hash(hash)))
    }

    /// As includes for many keys, in the same container type; takes what contains_many takes elsewhere, null returns null.
    #[pyo3(signature = (keys: "Keys", *, threads: "int" = 1) -> "Answers[bool]")]
    fn includes_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = parameters::threads)] threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        batch::run(&operations::Check { lock: &self.lock, threads }, &self.hasher, keys, true)
    }

    /// The number of wrong results over a whole world: 0 for the one that it was built from.
    ///
    /// More means that the sets differ: some of their keys were in neither set, or in the other. Takes what build takes.
    /// Cost: a lookup per key.
    #[pyo3(signature = (included: "Keys", excluded: "Keys"))]
    fn verify(&self, included: &Bound<'_, PyAny>, excluded: &Bound<'_, PyAny>) -> PyResult<u64> {
        let errors = |keys, expected| {
            let errors = CountErrors { lock: &self.lock, expected, errors: Cell::new(0) };
            batch::run(&errors, &self.hasher, keys, false).map(|_| errors.errors.get())
        };
        Ok(errors(included, 1)? + errors(excluded, 0)?)
    }

    /// The bytes by which apply_delta() turns this cascade into `other`: far fewer than its file if few keys have changed.
    ///
    /// other: a cascade of the same seed and secret, built with like=this one; otherwise no bit is where it was. Compare len() of
    /// the bytes with that of to_bytes() to see what is saved. Of a run of bits only the changed ones are sent, of a filter
    /// that did not change only its name, other filters whole. Raises IncompatibleFilters for another seed or secret,
    /// SecretError if take_secret() was not called. Cost: some ns per byte of both.
    ///
    /// >>> from fullbloom import FilterCascade
    /// >>> monday = FilterCascade.build(range(1000), range(1000, 20_000))
    /// >>> tuesday = FilterCascade.build(range(1, 1003), range(1003, 20_100), like=monday)
    /// >>> delta = monday.delta_to(tuesday)
    /// >>> len(delta) < len(tuesday.to_bytes()) / 4, monday.apply_delta(delta) == tuesday
    /// (True, True)
    #[pyo3(signature = (other: "Self") -> "bytes")]
    fn delta_to<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = parameters::other::<FilterCascade>)] other: Py<Self>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        crate::secrets::check_secret_taken(py, &self.hasher)?;
        let delta = self.lock.look_both(&other.get().lock, py, Core::delta_to).or_raise(py)?;
        Ok(PyBytes::new(py, &delta))
    }

    /// The cascade that `delta`, from delta_to(), turns this one into; this one does not change.
    ///
    /// The result is checked like a file, and is byte for byte the cascade that was passed to delta_to(). Raises
    /// IncompatibleFilters for a delta from another version than this one, FormatError for anything but a complete delta,
    /// FilterMemoryError. No more memory is taken than the files of both versions and the delta.
    #[pyo3(signature = (delta: "bytes | bytearray | memoryview") -> "Self")]
    fn apply_delta(&self, delta: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = delta.py();
        let bytes = read_bytes("delta", delta)?;
        let patched = |base: &Core| from_bytes_hashing(&base.apply_delta(&bytes)?, CASCADE, base.hasher());
        self.lock.look(py, patched).or_raise(py).map(Self::wrap)
    }
}
