//! Reconciliation over any transport: the rateless stream, and how many differences there are.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use fullbloom_core::Error;
use fullbloom_core::cells::allocation::reserve;
use fullbloom_core::key::KeyHasher;
use fullbloom_core::parallel::workers::lock;
use fullbloom_core::reconcile::characteristic::CharacteristicSketch as Sketch;
use fullbloom_core::reconcile::rateless::{Decoder, Encoder};
use fullbloom_core::reconcile::strata::Strata;
use fullbloom_core::reconcile::{Decoded as Core, peel};
use fullbloom_core::structure::HashSource;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::biased_lock::BiasedLock;
use crate::classes::shared::bytes_of;
use crate::errors::{OrRaise, parameter};
use crate::gathering::each_chunk;
use crate::keys::batch::{self, Operation};
use crate::keys::ready;
use crate::{objects, params};

/// The most symbols that a decoder takes unless it is told another number: 3M differences.
const MAX_SYMBOLS: u64 = 1 << 22;
/// The most symbols that one call makes: 14 MB.
const AT_ONCE: u64 = 1 << 20;

/// What the keys of a list of hashes are.
#[derive(Clone, Copy)]
pub(crate) enum Keys<'a, 'py> {
    /// The hashes.
    Hashes,
    /// The integers that have these hashes.
    Numbers(&'a KeyHasher),
    /// What a function answers, or the hash where that is None.
    LookedUp(&'a Bound<'py, PyAny>),
}

impl Keys<'_, '_> {
    fn list<'py>(self, py: Python<'py>, hashes: &[u64]) -> PyResult<Bound<'py, PyList>> {
        match self {
            Keys::Hashes => objects::ints(py, hashes),
            Keys::Numbers(hasher) => {
                let list = PyList::empty(py);
                hashes.iter().filter_map(|&hash| hasher.signed_of(hash)).try_for_each(|number| list.append(number))?;
                list.sort()?;
                Ok(list)
            }
            Keys::LookedUp(lookup) => {
                let list = PyList::empty(py);
                for &hash in hashes {
                    let key = lookup.call1((hash,))?;
                    if key.is_none() { list.append(hash)? } else { list.append(key)? }
                }
                Ok(list)
            }
        }
    }
}

/// What two sets have not in common: `mine`, `theirs`, and whether that is all (`complete`).
#[pyclass(frozen, module = "fullbloom._core", sequence)]
pub(crate) struct Decoded {
    /// Keys of the own side alone.
    #[pyo3(get)]
    mine: Py<PyAny>,
    /// Keys of the other side alone.
    #[pyo3(get)]
    theirs: Py<PyAny>,
    /// True when these are all.
    #[pyo3(get)]
    complete: bool,
}

impl Decoded {
    /// With keys for the hashes.
    pub(crate) fn of(py: Python<'_>, core: &peel::Decoded, keys: Keys<'_, '_>) -> PyResult<Self> {
        let Core { mine, theirs, complete } = core;
        let [mine, theirs] = [mine, theirs].map(|hashes| keys.list(py, hashes).map(|list| list.into_any().unbind()));
        Ok(Decoded { mine: mine?, theirs: theirs?, complete: *complete })
    }
}

#[pymethods]
impl Decoded {
    fn __len__(&self) -> usize {
        3
    }

    /// The three, so that they can be unpacked.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let all = (self.mine.clone_ref(py), self.theirs.clone_ref(py), self.complete);
        Ok(all.into_pyobject(py)?.into_any().cast_into::<PyTuple>()?.try_iter()?.into_any())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (mine, theirs) = (self.mine.bind(py).len()?, self.theirs.bind(py).len()?);
        let complete = if self.complete { "True" } else { "False" };
        Ok(format!("<Decoded mine: {mine} keys, theirs: {theirs} keys, complete={complete}>"))
    }
}

/// Gathers the hashes of a batch.
#[derive(Default)]
struct Gather {
    hashes: Mutex<Vec<u64>>,
}

impl Operation for Gather {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        reserve(&mut lock(&self.hashes), source.len()).or_raise(py)?;
        each_chunk(py, source, |_, hashes| {
            lock(&self.hashes).extend_from_slice(hashes);
            Ok(())
        })
    }
}

/// The hashes of `keys`, or `keys` themselves where they are `hashed`.
fn gathered(keys: &Bound<'_, PyAny>, hasher: &KeyHasher, hashed: bool) -> PyResult<Vec<u64>> {
    let gather = Gather::default();
    if hashed {
        ready::run(&gather, keys)?
    } else {
        batch::run(&gather, hasher, keys, false)?
    };
    Ok(gather.hashes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// Arguments, read under their names.
mod arguments {
    use pyo3::prelude::*;

    crate::classes::declared::readers!(hashed: "bool"; max_symbols: "int | None";);

    /// Symbols asked for.
    pub(super) fn symbols(value: &Bound<'_, PyAny>) -> PyResult<u64> {
        crate::params::whole("symbols", value, 1)
    }
}

/// The coded symbols of a set, without end: a peer with a similar set needs 1.35 to 1.45 of them a difference, more below 150.
///
/// keys: what contains_many takes, nulls skipped, repetitions counted once. hashed: they are ready 64-bit hashes (see
/// hash_many()). seed, secret: as for filters; the peer's must be the same. Under a secret of both nobody else can make keys
/// that break the decoding. Raises KeyTypeError, FilterMemoryError. Cost: 16 bytes and 0.2 us a key. Source: Yang,
/// Gilad, Alizadeh, "Practical rateless set reconciliation", SIGCOMM 2024.
///
/// >>> from fullbloom.compose import RatelessDecoder, RatelessEncoder
/// >>> there, here = RatelessEncoder(range(1000)), RatelessDecoder(range(10, 1003))
/// >>> while not here.feed(there.produce(8)):
/// ...     pass
/// >>> here.decoded()
/// <Decoded mine: 3 keys, theirs: 10 keys, complete=True>
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct RatelessEncoder {
    lock: BiasedLock<Encoder>,
}

#[pymethods]
impl RatelessEncoder {
    #[new]
    #[pyo3(signature = (
        keys: "object", *, hashed: "bool" = false, seed: "int" = 0, secret: "bytes | None" = None
    ))]
    fn new(
        keys: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::hashed)] hashed: bool,
        #[pyo3(from_py_with = params::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (py, hasher) = (keys.py(), params::given_hasher(seed, secret)?);
        let hashes = gathered(keys, &hasher, hashed)?;
        let encoder = py.detach(|| Encoder::new(hashes, &hasher)).or_raise(py)?;
        Ok(RatelessEncoder { lock: BiasedLock::new(encoder, |encoder| encoder.nbytes() as u64) })
    }

    /// The next so many symbols as bytes, 12 and a count of 1 to 3 each; before the first, a head of 24.
    ///
    /// Raises ParameterError above 1,048,576 at once, FilterFull beyond 2**31 in all. Cost: some 10 ns for each key that
    /// a symbol holds: symbol i holds one in 1 + i/2.
    #[pyo3(signature = (symbols: "int") -> "bytes")]
    fn produce<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::symbols)] symbols: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        if symbols > AT_ONCE {
            return Err(parameter(
                py,
                format!("symbols must be between 1 and {AT_ONCE}, got {symbols}; ask more often"),
            ));
        }
        let mut out = Vec::new();
        let send = |encoder: &mut Encoder| encoder.send(symbols as usize, &mut out);
        self.lock.detach(py, |session| session.write(send)).or_raise(py)?;
        objects::bytes(py, &out)
    }

    /// Number of distinct keys.
    #[getter]
    fn num_keys(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, Encoder::keys)
    }

    /// Symbols made so far.
    #[getter]
    fn symbols(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, Encoder::sent)
    }
}

/// Tells, from the symbols of a peer, what its set and the own one have not in common.
///
/// keys, hashed, seed, secret: as for RatelessEncoder. max_symbols: more are refused, 4,194,304 where it is None; memory is
/// at most 50 bytes a symbol that came, whatever the peer says. Raises KeyTypeError, FilterMemoryError. Cost: 16 bytes and
/// 0.2 us a key, and about a microsecond a difference.
///
/// >>> from fullbloom.compose import RatelessDecoder, RatelessEncoder
/// >>> here = RatelessDecoder(["a", "b"])
/// >>> here.feed(RatelessEncoder(["b", "c"]).produce(40))
/// True
/// >>> from fullbloom import hash_key
/// >>> mine, theirs, complete = here.decoded()
/// >>> mine == [hash_key("a")], theirs == [hash_key("c")], complete
/// (True, True, True)
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct RatelessDecoder {
    lock: BiasedLock<Decoder>,
}

#[pymethods]
impl RatelessDecoder {
    #[new]
    #[pyo3(signature = (
        keys: "object", *, hashed: "bool" = false, max_symbols: "int | None" = None, seed: "int" = 0,
        secret: "bytes | None" = None
    ))]
    fn new(
        keys: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::hashed)] hashed: bool,
        #[pyo3(from_py_with = arguments::max_symbols)] max_symbols: Option<u64>,
        #[pyo3(from_py_with = params::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (py, hasher) = (keys.py(), params::given_hasher(seed, secret)?);
        let hashes = gathered(keys, &hasher, hashed)?;
        let limit = max_symbols.unwrap_or(MAX_SYMBOLS);
        let decoder = py.detach(|| Decoder::new(hashes, &hasher, limit)).or_raise(py)?;
        Ok(RatelessDecoder { lock: BiasedLock::new(decoder, |decoder| decoder.nbytes() as u64) })
    }

    /// Takes bytes of the stream, cut anywhere; True when no more are needed, and from then on bytes are passed over.
    ///
    /// Raises FormatError for bytes of something else, IncompatibleFilters for symbols under another seed or secret,
    /// FilterFull beyond max_symbols, FilterMemoryError; what came out before can be had.
    #[pyo3(signature = (data: "bytes | bytearray | memoryview") -> "bool")]
    fn feed(&self, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, bytes) = (data.py(), bytes_of("data", data)?);
        self.lock.detach(py, |session| session.write(|decoder| decoder.feed(&bytes))).or_raise(py)
    }

    /// What is known by now: Decoded(mine, theirs, complete), keys as their hashes, ascending.
    #[pyo3(signature = () -> "Decoded")]
    fn decoded(&self, py: Python<'_>) -> PyResult<Decoded> {
        let decoded = self.lock.look(py, Decoder::decoded);
        Decoded::of(py, &decoded, Keys::Hashes)
    }

    /// True when all differences are known.
    #[getter]
    fn complete(&self, py: Python<'_>) -> bool {
        self.lock.read(py, Decoder::is_complete)
    }

    /// Number of distinct own keys.
    #[getter]
    fn num_keys(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, Decoder::keys)
    }

    /// Number of keys that the peer says to have; None before its head came.
    #[getter]
    fn peer_keys(&self, py: Python<'_>) -> Option<u64> {
        self.lock.read(py, Decoder::peer_keys)
    }

    /// Symbols taken so far.
    #[getter]
    fn symbols(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, Decoder::received)
    }
}

/// Estimates how many keys two sets have not in common, from 41 kB of each, whatever their sizes.
///
/// keys, hashed, seed, secret: as for RatelessEncoder, but that repetitions may not come. Cost: 30 ns a key. Source:
/// Eppstein, Goodrich, Uyeda, Varghese, "What's the difference?", SIGCOMM 2011.
///
/// >>> from fullbloom.compose import StrataEstimator
/// >>> here, there = StrataEstimator(range(5000)), StrataEstimator(range(7, 5007))
/// >>> here.differences(there.to_bytes())
/// 14
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct StrataEstimator {
    lock: BiasedLock<Strata>,
    hasher: KeyHasher,
}

#[pymethods]
impl StrataEstimator {
    #[new]
    #[pyo3(signature = (
        keys: "object", *, hashed: "bool" = false, seed: "int" = 0, secret: "bytes | None" = None
    ))]
    fn new(
        keys: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::hashed)] hashed: bool,
        #[pyo3(from_py_with = params::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (py, hasher) = (keys.py(), params::given_hasher(seed, secret)?);
        let hashes = gathered(keys, &hasher, hashed)?;
        let strata = py.detach(|| {
            let mut strata = Strata::new(hasher);
            hashes.iter().for_each(|&hash| strata.add(hash));
            strata
        });
        Ok(StrataEstimator { lock: BiasedLock::new(strata, |_| 0), hasher })
    }

    /// Estimated number of keys that one of the two sets has alone: exact to about 50, within some 20 % above.
    ///
    /// other: the bytes of the other estimator. Raises FormatError, IncompatibleFilters.
    #[pyo3(signature = (other: "bytes | bytearray | memoryview") -> "int")]
    fn differences(&self, other: &Bound<'_, PyAny>) -> PyResult<u64> {
        let (py, bytes) = (other.py(), bytes_of("other", other)?);
        let other = Strata::from_bytes(&bytes, self.hasher).or_raise(py)?;
        self.lock.look(py, |strata| strata.differences(&other)).or_raise(py)
    }

    /// The estimator as bytes, to be sent.
    #[pyo3(signature = () -> "bytes")]
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.lock.look(py, Strata::to_bytes);
        objects::bytes(py, &bytes)
    }
}

/// Time between two looks for signals while values are made.
const PAUSE: Duration = Duration::from_millis(50);

/// Up to `bound` differences of two sets from one message of 8 bytes each: values of a characteristic polynomial.
///
/// keys, hashed, seed, secret: as for RatelessEncoder. bound: the most differences that it tells, up to 1024. Beyond it the
/// answer is none, and says so. Raises KeyTypeError, ParameterError, FilterMemoryError. Cost: some 5 ns for each key and
/// each value, of which there are bound + 3; differences() takes time with the square of the bound. Sources: Minsky,
/// Trachtenberg, Zippel, "Set reconciliation with nearly optimal communication complexity", IEEE TIT 49(9), 2003;
/// Starobinski, Trachtenberg, Agarwal, "Efficient PDA synchronization", IEEE TMC 2(1), 2003.
///
/// >>> from fullbloom.compose import CharacteristicSketch
/// >>> here, there = CharacteristicSketch(range(1000), 20), CharacteristicSketch(range(10, 1003), 20)
/// >>> len(there.to_bytes()), here.differences(there.to_bytes())
/// (208, <Decoded mine: 10 keys, theirs: 3 keys, complete=True>)
/// >>> here.differences(CharacteristicSketch(range(30, 1003), 20).to_bytes()).complete
/// False
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct CharacteristicSketch {
    sketch: Sketch,
}

#[pymethods]
impl CharacteristicSketch {
    #[new]
    #[pyo3(signature = (
        keys: "object", bound: "int", *, hashed: "bool" = false, seed: "int" = 0, secret: "bytes | None" = None
    ))]
    fn new(
        keys: &Bound<'_, PyAny>,
        bound: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::hashed)] hashed: bool,
        #[pyo3(from_py_with = params::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (py, hasher) = (keys.py(), params::given_hasher(seed, secret)?);
        let bound = params::whole("bound", bound, 1)?;
        let hashes = gathered(keys, &hasher, hashed)?;
        let (mut last, mut raised) = (Instant::now(), None);
        let mut look = || {
            if last.elapsed() < PAUSE {
                return Ok(());
            }
            last = Instant::now();
            Python::attach(|py| py.check_signals()).map_err(|error| {
                raised = Some(error);
                Error::parameter("ended by the caller")
            })
        };
        let made = py.detach(|| Sketch::new(hashes, bound, &hasher, &mut look));
        raised.map_or(Ok(()), Err)?;
        Ok(CharacteristicSketch { sketch: made.or_raise(py)? })
    }

    /// What both sets have not in common: Decoded(mine, theirs, complete), keys as their hashes, ascending.
    ///
    /// other: the bytes of the other sketch; the smaller bound of the two counts. complete is False, and both lists are
    /// empty, where there are more differences than that, or the peer does not say the truth: two values beyond those that
    /// are needed have to agree, by chance 2^-100, and each key has to be here or missing here as it should. Raises
    /// FormatError, IncompatibleFilters for another seed or secret.
    #[pyo3(signature = (other: "bytes | bytearray | memoryview") -> "Decoded")]
    fn differences(&self, other: &Bound<'_, PyAny>) -> PyResult<Decoded> {
        let (py, bytes) = (other.py(), bytes_of("other", other)?);
        let decoded = py.detach(|| self.sketch.decode(&bytes)).or_raise(py)?;
        Decoded::of(py, &decoded, Keys::Hashes)
    }

    /// The values as bytes, to be sent: 24, and 8 for each.
    #[pyo3(signature = () -> "bytes")]
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        objects::bytes(py, &self.sketch.to_bytes())
    }

    /// The most differences that it tells.
    #[getter]
    fn bound(&self) -> u64 {
        self.sketch.bound()
    }

    /// Number of distinct keys.
    #[getter]
    fn num_keys(&self) -> u64 {
        self.sketch.keys()
    }
}
