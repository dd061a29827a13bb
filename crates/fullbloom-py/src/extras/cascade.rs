//! What only `FilterCascade` has: it is made of a closed world and asked for nothing else.

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

use crate::biased_lock::BiasedLock;
use crate::building::{How, holding};
use crate::classes::cascade::FilterCascade;
use crate::classes::secrets;
use crate::classes::shared;
use crate::domains::{expect_all, looked_up};
use crate::errors::{OrRaise, parameter};
use crate::keys::batch::{self, Operation};
use crate::{operations, params, turns};

/// Counts the keys of which the answer is another one.
struct Errors<'a> {
    lock: &'a BiasedLock<Core>,
    wanted: u8,
    errors: Cell<u64>,
}

impl Operation for Errors<'_> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        expect_all(py, self.lock, source)?;
        let (mut hashes, mut found, mut errors) = ([0u64; CHUNK], [0u8; CHUNK], 0);
        let wanted = self.wanted;
        turns::of(self.lock, py, source.len(), |session, start| {
            let len = CHUNK.min(source.len() - start);
            let (hashes, found) = (&mut hashes[..len], &mut found[..len]);
            source.fill(start, hashes);
            session.read(|cascade| cascade.contains_hashes(hashes, found));
            errors += found.iter().filter(|&&found| found != wanted).count() as u64;
            Ok(start + len)
        })?;
        self.errors.set(self.errors.get() + errors);
        Ok(())
    }
}

/// Finds the first key of a batch that has a hash.
struct Find {
    hash: u64,
    seen: Cell<usize>,
    at: Cell<Option<usize>>,
}

impl Operation for Find {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, _: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        let mut hashes = [0u64; CHUNK];
        for start in (0..source.len()).step_by(CHUNK) {
            let hashes = &mut hashes[..CHUNK.min(source.len() - start)];
            source.fill(start, hashes);
            if let (None, Some(i)) = (self.at.get(), hashes.iter().position(|&hash| hash == self.hash)) {
                self.at.set(Some(self.seen.get() + start + i));
            }
        }
        self.seen.set(self.seen.get() + source.len());
        Ok(())
    }
}

/// Why two sets with a common hash are refused, with the place of the key in each, where they can be gone through again.
fn overlap(hasher: &KeyHasher, sets: [&Bound<'_, PyAny>; 2], hash: u64) -> PyErr {
    let [included, excluded] = sets.map(|keys| {
        let find = Find { hash, seen: Cell::new(0), at: Cell::new(None) };
        // What cannot be gone through again has no places.
        let _ = batch::run(&find, hasher, keys, false);
        find.at.get().map_or_else(String::new, |at| format!(" {at}"))
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
    use crate::params;
    use pyo3::prelude::*;

    pub(super) fn kind<'a>(value: &'a Bound<'a, PyAny>) -> PyResult<&'a str> {
        params::text("kind", value)
    }

    pub(super) fn layout<'a>(value: &'a Bound<'a, PyAny>) -> PyResult<&'a str> {
        params::text("layout", value)
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

/// What levels are made of, under which hash, and in which shapes.
struct Chosen {
    kind: LevelKind,
    hasher: KeyHasher,
    shapes: Option<Shapes>,
}

impl Chosen {
    /// By the names of a kind and a layout.
    fn of(py: Python<'_>, kind: &str, layout: &str, hasher: KeyHasher) -> PyResult<Self> {
        Ok(Chosen { kind: LevelKind::new(kind, layout).or_raise(py)?, hasher, shapes: None })
    }

    /// As another cascade, of which `self` says nothing else.
    fn like(self, py: Python<'_>, like: &FilterCascade) -> PyResult<Self> {
        let (kind, shapes) = like.lock.look(py, |like| Ok((like.level_kind(), like.shapes()?))).or_raise(py)?;
        let own = &self.hasher;
        if self.kind != LevelKind::Packed && self.kind != kind {
            return Err(parameter(py, "like is a cascade of another kind or layout; drop kind and layout"));
        }
        if own.is_keyed() || own.seed() != 0 && own.seed() != like.hasher.seed() {
            return Err(parameter(py, "like is a cascade with a seed and a secret of its own; drop seed and secret"));
        }
        Ok(Chosen { kind, hasher: like.hasher, shapes: Some(shapes) })
    }
}

#[pymethods]
impl FilterCascade {
    /// What `kind` may be.
    #[staticmethod]
    #[pyo3(signature = () -> "list[str]")]
    fn kinds() -> Vec<&'static str> {
        LevelKind::rows().map(|row| row.name).collect()
    }

    /// The cascade that tells the keys of `included` from those of `excluded`; each takes what contains_many takes elsewhere,
    /// nulls are skipped, repeated keys count once.
    ///
    /// kind: the structure of levels, one of kinds(): the first, and those of 8,192 keys and more; smaller ones are Bloom filters
    /// anyway. layout: of levels of kind "bloom"; "auto" puts the bits of all in one section, the smallest for that kind. like: a
    /// cascade of another version of the sets, whose kind, seed and secret this one takes, the shapes of levels that are within
    /// an eighth of its own, and such levels themselves where they are filters, with bits for new keys beside them: then
    /// delta_to() of the two is short.
    ///
    /// The same sets give the same bytes, in any order, with the same `like`. seed, secret: as of filters.
    /// threads: how many may be used; the GIL
    /// is released. progress: called with (done, total) now and then; an exception of it ends the work, as Ctrl-C does.
    /// memory: bytes that gathering may take; what does not fit lies in nameless files of the folder for temporary files.
    /// Raises ParameterError for a key in both sets, with an example, KeyTypeError, FilterMemoryError, OSError. Cost: some
    /// 0.03 us a key (32 ns at 10 million), 8 bytes of memory for each.
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
        #[pyo3(from_py_with = params::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = params::threads)] threads: usize,
        progress: Option<&Bound<'_, PyAny>>,
        memory: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = included.py();
        let chosen = Chosen::of(py, kind, layout, params::hasher(seed, secret)?)?;
        let chosen = match like {
            Some(like) => chosen.like(py, like.get())?,
            None => chosen,
        };
        let (how, sets, hasher) = (How::read(threads, progress, memory)?, [included, excluded], chosen.hasher);
        let plan = Plan { kind: chosen.kind, hasher, like: chosen.shapes.as_ref() };
        let (made, domains) =
            how.build_of_two(&hasher, sets, |included, excluded, job| match common(included, excluded)? {
                Some(hash) => Ok(Err(hash)),
                None => Core::build(included, excluded, plan, job).map(Ok),
            })?;
        made.map(|made| Self::wrap(holding(made, domains))).map_err(|hash| overlap(&hasher, sets, hash))
    }

    /// True for a key of `included`, False for one of `excluded`. For any other key the answer means nothing: ask only
    /// for keys of the world that it was built of.
    #[pyo3(signature = (key: "Key", /))]
    fn includes(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = looked_up(&self.lock, &self.hasher, key)?;
        Ok(self.lock.read(key.py(), |cascade| cascade.contains_hash(hash)))
    }

    /// As includes for many keys, in the caller's kind; takes what contains_many takes elsewhere, null answers null.
    #[pyo3(signature = (keys: "Keys", *, threads: "int" = 1) -> "Answers[bool]")]
    fn includes_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = params::threads)] threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        batch::run(&operations::Check { lock: &self.lock, threads }, &self.hasher, keys, true)
    }

    /// The number of wrong answers over a whole world: 0 for the one that it was built of.
    ///
    /// More tells that the sets are others: some of their keys were in neither set, or in the other. Takes what build takes.
    /// Cost: a look-up a key.
    #[pyo3(signature = (included: "Keys", excluded: "Keys"))]
    fn verify(&self, included: &Bound<'_, PyAny>, excluded: &Bound<'_, PyAny>) -> PyResult<u64> {
        let errors = |keys, wanted| {
            let errors = Errors { lock: &self.lock, wanted, errors: Cell::new(0) };
            batch::run(&errors, &self.hasher, keys, false).map(|_| errors.errors.get())
        };
        Ok(errors(included, 1)? + errors(excluded, 0)?)
    }

    /// The bytes by which apply_delta() turns this cascade into `other`: far fewer than its file where few keys have changed.
    ///
    /// other: a cascade of the same seed and secret, built with like=this one, or no bit of it lies where it lay. len() of the
    /// bytes beside that of to_bytes() tells what is saved. Runs of bits are sent by those that changed, filters that were kept
    /// by name, others whole. Raises IncompatibleFilters for another seed or secret,
    /// SecretError where nobody has the secret. Cost: some ns a byte of both.
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
        #[pyo3(from_py_with = params::other::<FilterCascade>)] other: Py<Self>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        secrets::check_kept(py, &self.hasher)?;
        let delta = self.lock.look_both(&other.get().lock, py, Core::delta_to).or_raise(py)?;
        Ok(PyBytes::new(py, &delta))
    }

    /// The cascade that `delta`, made by delta_to(), turns this one into; this one stays as it is.
    ///
    /// What comes out is checked as a file is, and is byte for byte the one that the delta was made of. Raises
    /// IncompatibleFilters for the delta of another version than this one, FormatError for anything that is no whole delta,
    /// FilterMemoryError. No more memory is taken than the files of both versions and the delta.
    #[pyo3(signature = (delta: "bytes | bytearray | memoryview") -> "Self")]
    fn apply_delta(&self, delta: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = delta.py();
        let bytes = shared::bytes_of("delta", delta)?;
        let patched = |base: &Core| from_bytes_hashing(&base.patched(&bytes)?, CASCADE, base.hasher());
        self.lock.look(py, patched).or_raise(py).map(Self::wrap)
    }
}
