//! Reconciliation over any transport: the rateless stream, the characteristic polynomial, and the number of differences.

use std::time::{Duration, Instant};

use fullbloom_core::Error;
use fullbloom_core::key::KeyHasher;
use fullbloom_core::reconcile::characteristic::CharacteristicSketch as Sketch;
use fullbloom_core::reconcile::rateless::{Decoder, Encoder};
use fullbloom_core::reconcile::strata::Strata;
use fullbloom_core::reconcile::{DecodedKeys as Core, peel};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::errors::{OrRaise, parameter};
use crate::keys::{batch, ready};
use crate::locking::biased_lock::BiasedLock;
use crate::operations::CollectHashes;
use crate::parameters;
use crate::python_objects::bytes::{self, read_bytes};
use crate::python_objects::lists;

/// The most symbols that a decoder takes by default: 3M differences.
const MAX_SYMBOLS: u64 = 1 << 22;
/// The most symbols that one call creates: 14 MB.
const AT_ONCE: u64 = 1 << 20;

/// How hashes are listed as keys.
#[derive(Clone, Copy)]
pub(crate) enum Keys<'a, 'py> {
    /// As hashes.
    Hashes,
    /// As the integers with these hashes.
    Numbers(&'a KeyHasher),
    /// As a function returns them, or as the hash if it returns None.
    Lookup(&'a Bound<'py, PyAny>),
}

impl Keys<'_, '_> {
    fn list<'py>(self, py: Python<'py>, hashes: &[u64]) -> PyResult<Bound<'py, PyList>> {
        match self {
            Keys::Hashes => lists::create_ints(py, hashes),
            Keys::Numbers(hasher) => {
                let list = PyList::empty(py);
                hashes
                    .iter()
                    .filter_map(|&hash| hasher.invert_signed(hash))
                    .try_for_each(|number| list.append(number))?;
                list.sort()?;
                Ok(list)
            }
            Keys::Lookup(lookup) => {
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

/// The differences of two sets: `mine`, `theirs`, and whether these are all (`complete`).
#[pyclass(frozen, module = "fullbloom._core", sequence)]
pub(crate) struct SetDifference {
    /// Keys of this side only.
    #[pyo3(get)]
    mine: Py<PyAny>,
    /// Keys of the other side only.
    #[pyo3(get)]
    theirs: Py<PyAny>,
    /// True when these are all differences.
    #[pyo3(get)]
    complete: bool,
}

impl SetDifference {
    /// Lists the hashes as `keys` says.
    pub(crate) fn new(py: Python<'_>, core: &peel::DecodedKeys, keys: Keys<'_, '_>) -> PyResult<Self> {
        let Core { mine, theirs, complete } = core;
        let [mine, theirs] = [mine, theirs].map(|hashes| keys.list(py, hashes).map(|list| list.into_any().unbind()));
        Ok(SetDifference { mine: mine?, theirs: theirs?, complete: *complete })
    }
}

#[pymethods]
impl SetDifference {
    fn __len__(&self) -> usize {
        3
    }

    /// Unpacks to mine, theirs, complete.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let all = (self.mine.clone_ref(py), self.theirs.clone_ref(py), self.complete);
        Ok(all.into_pyobject(py)?.into_any().cast_into::<PyTuple>()?.try_iter()?.into_any())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (mine, theirs) = (self.mine.bind(py).len()?, self.theirs.bind(py).len()?);
        let complete = if self.complete { "True" } else { "False" };
        Ok(format!("<SetDifference mine: {mine} keys, theirs: {theirs} keys, complete={complete}>"))
    }
}

/// The hashes of `keys`, or `keys` themselves if they are `hashed`.
fn collect(keys: &Bound<'_, PyAny>, hasher: &KeyHasher, hashed: bool) -> PyResult<Vec<u64>> {
    let hashes = CollectHashes::default();
    if hashed {
        ready::run(&hashes, keys)?
    } else {
        batch::run(&hashes, hasher, keys, false)?
    };
    Ok(hashes.into_hashes())
}

/// Arguments, read under their names.
mod arguments {
    use pyo3::prelude::*;

    crate::parameters::readers!(hashed: "bool"; max_symbols: "int | None";);

    /// Reads `symbols=`.
    pub(super) fn symbols(value: &Bound<'_, PyAny>) -> PyResult<u64> {
        crate::parameters::parse_whole("symbols", value, 1)
    }
}

/// The infinite stream of coded symbols of a set: a peer with a similar set needs 1.35 to 1.45 of them per difference, more
/// below 150.
///
/// keys: what contains_many takes, nulls skipped, repetitions counted once. hashed: they are ready 64-bit hashes (see
/// hash_many()). seed, secret: as for filters; the peer's must be the same. With a shared secret, nobody else can
/// choose keys that break the decoding. Raises KeyTypeError, FilterMemoryError. Cost: 16 bytes and 0.2 us per key. Source: Yang,
/// Gilad, Alizadeh, "Practical rateless set reconciliation", SIGCOMM 2024.
///
/// >>> from fullbloom.compose import RatelessDecoder, RatelessEncoder
/// >>> there, here = RatelessEncoder(range(1000)), RatelessDecoder(range(10, 1003))
/// >>> while not here.feed(there.produce(8)):
/// ...     pass
/// >>> here.decoded()
/// <SetDifference mine: 3 keys, theirs: 10 keys, complete=True>
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
        #[pyo3(from_py_with = parameters::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (py, hasher) = (keys.py(), parameters::read_hasher(seed, secret)?);
        let hashes = collect(keys, &hasher, hashed)?;
        let encoder = py.detach(|| Encoder::new(hashes, &hasher)).or_raise(py)?;
        Ok(RatelessEncoder { lock: BiasedLock::new(encoder, |encoder| encoder.nbytes() as u64) })
    }

    /// The next `symbols` symbols, each 12 bytes and a count of 1 to 3 bytes; before the first, a header of 24 bytes.
    ///
    /// Raises ParameterError above 1,048,576 per call, FilterFull beyond 2**31 in total. Cost: some 10 ns for each key in a
    /// symbol: symbol i contains one key in 1 + i/2.
    #[pyo3(signature = (symbols: "int") -> "bytes")]
    fn produce<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::symbols)] symbols: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        if symbols > AT_ONCE {
            return Err(parameter(
                py,
                format!("symbols must be between 1 and {AT_ONCE}, got {symbols}; call it more often"),
            ));
        }
        let mut out = Vec::new();
        let send = |encoder: &mut Encoder| encoder.send(symbols as usize, &mut out);
        self.lock.detach(py, |session| session.write(send)).or_raise(py)?;
        bytes::create(py, &out)
    }

    /// Number of distinct keys.
    #[getter]
    fn num_keys(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, Encoder::keys)
    }

    /// Symbols created so far.
    #[getter]
    fn symbols(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, Encoder::num_sent)
    }
}

/// Finds the differences between a set and that of a peer from the peer's symbols.
///
/// keys, hashed, seed, secret: as for RatelessEncoder. max_symbols: more are refused, 4,194,304 if it is None; memory is at
/// most 50 bytes per received symbol, whatever the peer sends. Raises KeyTypeError, FilterMemoryError. Cost: 16 bytes and
/// 0.2 us per key, and about a microsecond per difference.
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
        #[pyo3(from_py_with = parameters::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (py, hasher) = (keys.py(), parameters::read_hasher(seed, secret)?);
        let hashes = collect(keys, &hasher, hashed)?;
        let limit = max_symbols.unwrap_or(MAX_SYMBOLS);
        let decoder = py.detach(|| Decoder::new(hashes, &hasher, limit)).or_raise(py)?;
        Ok(RatelessDecoder { lock: BiasedLock::new(decoder, |decoder| decoder.nbytes() as u64) })
    }

    /// Takes bytes of the stream, split anywhere; True when no more are needed: later bytes are ignored.
    ///
    /// Raises FormatError for other bytes, IncompatibleFilters for symbols under another seed or secret, FilterFull beyond
    /// max_symbols, FilterMemoryError; decoded() still returns the differences found before.
    #[pyo3(signature = (data: "bytes | bytearray | memoryview") -> "bool")]
    fn feed(&self, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, bytes) = (data.py(), read_bytes("data", data)?);
        self.lock.detach(py, |session| session.write(|decoder| decoder.feed(&bytes))).or_raise(py)
    }

    /// The differences found so far: SetDifference(mine, theirs, complete), keys as their hashes, ascending.
    #[pyo3(signature = () -> "SetDifference")]
    fn decoded(&self, py: Python<'_>) -> PyResult<SetDifference> {
        let decoded = self.lock.look(py, Decoder::decoded);
        SetDifference::new(py, &decoded, Keys::Hashes)
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

    /// Number of keys that the peer reports; None before its header has arrived.
    #[getter]
    fn peer_keys(&self, py: Python<'_>) -> Option<u64> {
        self.lock.read(py, Decoder::peer_keys)
    }

    /// Symbols received so far.
    #[getter]
    fn symbols(&self, py: Python<'_>) -> u64 {
        self.lock.read(py, Decoder::num_received)
    }
}

/// Estimates the number of differences of two sets, from 41 kB of each, whatever their sizes.
///
/// keys, hashed, seed, secret: as for RatelessEncoder, except that keys must not repeat. Cost: 30 ns per key. Source:
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
        #[pyo3(from_py_with = parameters::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (py, hasher) = (keys.py(), parameters::read_hasher(seed, secret)?);
        let hashes = collect(keys, &hasher, hashed)?;
        let strata = py.detach(|| {
            let mut strata = Strata::new(hasher);
            hashes.iter().for_each(|&hash| strata.add(hash));
            strata
        });
        Ok(StrataEstimator { lock: BiasedLock::new(strata, |_| 0), hasher })
    }

    /// Estimated number of keys that are in only one of the two sets: exact to about 50, within some 20 % above.
    ///
    /// other: the bytes of the other estimator. Raises FormatError, IncompatibleFilters.
    #[pyo3(signature = (other: "bytes | bytearray | memoryview") -> "int")]
    fn differences(&self, other: &Bound<'_, PyAny>) -> PyResult<u64> {
        let (py, bytes) = (other.py(), read_bytes("other", other)?);
        let other = Strata::from_bytes(&bytes, self.hasher).or_raise(py)?;
        self.lock.look(py, |strata| strata.differences(&other)).or_raise(py)
    }

    /// The estimator as bytes, to send.
    #[pyo3(signature = () -> "bytes")]
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.lock.look(py, Strata::to_bytes);
        bytes::create(py, &bytes)
    }
}

/// Time between two checks for signals while values are computed.
const PAUSE: Duration = Duration::from_millis(50);

/// Up to `bound` differences of two sets from one message of 8 bytes each: values of a characteristic polynomial.
///
/// keys, hashed, seed, secret: as for RatelessEncoder. bound: the most differences that it can find, up to 1024. Beyond it
/// the result is empty and not complete. Raises KeyTypeError, ParameterError, FilterMemoryError. Cost: some 5 ns for each key
/// and each of the bound + 3 values; differences() takes time with the square of the bound. Sources: Minsky,
/// Trachtenberg, Zippel, "Set reconciliation with nearly optimal communication complexity", IEEE TIT 49(9), 2003;
/// Starobinski, Trachtenberg, Agarwal, "Efficient PDA synchronization", IEEE TMC 2(1), 2003.
///
/// >>> from fullbloom.compose import CharacteristicSketch
/// >>> here, there = CharacteristicSketch(range(1000), 20), CharacteristicSketch(range(10, 1003), 20)
/// >>> len(there.to_bytes()), here.differences(there.to_bytes())
/// (208, <SetDifference mine: 10 keys, theirs: 3 keys, complete=True>)
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
        #[pyo3(from_py_with = parameters::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (py, hasher) = (keys.py(), parameters::read_hasher(seed, secret)?);
        let bound = parameters::parse_whole("bound", bound, 1)?;
        let hashes = collect(keys, &hasher, hashed)?;
        let (mut last, mut raised) = (Instant::now(), None);
        let mut check = || {
            if last.elapsed() < PAUSE {
                return Ok(());
            }
            last = Instant::now();
            Python::attach(|py| py.check_signals()).map_err(|error| {
                raised = Some(error);
                Error::parameter("ended by the caller")
            })
        };
        let sketch = py.detach(|| Sketch::new(hashes, bound, &hasher, &mut check));
        raised.map_or(Ok(()), Err)?;
        Ok(CharacteristicSketch { sketch: sketch.or_raise(py)? })
    }

    /// The differences: SetDifference(mine, theirs, complete), keys as their hashes, ascending.
    ///
    /// other: the bytes of the other sketch; the smaller of the two bounds applies. complete is False, and both lists are
    /// empty, if there are more differences than that, or if the peer sends wrong values: two values beyond those that are
    /// needed must agree, by chance 2^-100, and each key must be present or absent here as the difference says. Raises
    /// FormatError, IncompatibleFilters for another seed or secret.
    #[pyo3(signature = (other: "bytes | bytearray | memoryview") -> "SetDifference")]
    fn differences(&self, other: &Bound<'_, PyAny>) -> PyResult<SetDifference> {
        let (py, bytes) = (other.py(), read_bytes("other", other)?);
        let decoded = py.detach(|| self.sketch.decode(&bytes)).or_raise(py)?;
        SetDifference::new(py, &decoded, Keys::Hashes)
    }

    /// The values as bytes, to send: 24 bytes, and 8 for each value.
    #[pyo3(signature = () -> "bytes")]
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bytes::create(py, &self.sketch.to_bytes())
    }

    /// The most differences that it can find.
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
