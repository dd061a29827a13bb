//! Filters whose cells a server holds: keys to commands, replies to answers in the caller's kind. What sends and receives
//! the bytes is Python.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex};

use bloomery_core::bloom::{BloomFilter as CoreFilter, Layout, Shape};
use bloomery_core::cells::allocation::{reserve, zeroed};
use bloomery_core::parallel::workers::lock;
use bloomery_core::structure::HashSource;
use bloomery_core::wire::exchange::Batch;
use bloomery_core::wire::reply::Reply;
use bloomery_core::wire::{Cells, Exchange, Shard};
use bloomery_core::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList};

use crate::classes::bloom::BloomFilter;
use crate::classes::shared::bytes_of;
use crate::errors::{OrRaise, parameter, parameter_type};
use crate::keys::batch::{self, Operation};
use crate::keys::scalar::hash_key;
use crate::{objects, params, turns};

mod arguments {
    crate::classes::declared::readers!(
        num_bits: "int"; num_hashes: "int"; layout: "str"; scheme: "str | None"; hash: "str"; shards: "int"; adding: "bool";
        asking: "bool";
        capacity: "int"; strict: "bool";
    );

    /// Readers of whole numbers from 0 on.
    macro_rules! from_zero {
        ($($name:ident)*) => {
            $(pub(super) fn $name(value: &pyo3::Bound<'_, pyo3::PyAny>) -> pyo3::PyResult<u64> {
                crate::params::whole(stringify!($name), value, 0)
            })*
        };
    }
    from_zero! { shard ones start stop }
}

/// Bytes from which on other threads run meanwhile.
const DETACHED: usize = 1 << 13;

/// The cells of a plain filter as strings of a server, in shards.
#[pyclass(frozen, module = "bloomery._core")]
pub(crate) struct WireCells {
    core: Arc<Cells>,
}

#[pymethods]
impl WireCells {
    #[new]
    #[pyo3(signature = (
        num_bits: "int", num_hashes: "int", *, layout: "str" = "blocked", scheme: "str | None" = None, hash: "str" = "xxh3",
        shards: "int" = 1, seed: "int" = 0, secret: "bytes | None" = None
    ))]
    #[allow(clippy::too_many_arguments)] // one a parameter
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::num_bits)] num_bits: u64,
        #[pyo3(from_py_with = arguments::num_hashes)] num_hashes: u64,
        #[pyo3(from_py_with = arguments::layout)] layout: &str,
        #[pyo3(from_py_with = arguments::scheme)] scheme: Option<&str>,
        #[pyo3(from_py_with = arguments::hash)] hash: &str,
        #[pyo3(from_py_with = arguments::shards)] shards: u64,
        #[pyo3(from_py_with = params::seed)] seed: u64,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let hasher = bloomery_core::bloom::based(params::given_hasher(seed, secret)?, hash).or_raise(py)?;
        let made = || {
            let layout = bloomery_core::structure::declaration::choice("layout", layout, Layout::NAMES)?;
            let layout = layout.ok_or_else(|| Error::parameter("layout must be one of its own, got 'auto'"))?;
            let shape = Shape::explicit(layout, Shape::scheme_named(scheme)?, num_bits, num_hashes)?;
            Ok(WireCells { core: Arc::new(Cells::new(shape, hasher, shards)?) })
        };
        made().or_raise(py)
    }

    /// m.
    #[getter]
    fn num_bits(&self) -> u64 {
        self.core.shape().num_bits
    }

    /// k.
    #[getter]
    fn num_hashes(&self) -> u32 {
        self.core.shape().num_hashes
    }

    /// The scheme's name.
    #[getter]
    fn scheme(&self) -> &'static str {
        self.core.shape().scheme.name()
    }

    /// Number of strings.
    #[getter]
    fn shards(&self) -> u64 {
        self.core.shards()
    }

    /// True when the strings have the bytes of the filter in memory.
    #[getter]
    fn has_lines(&self) -> bool {
        self.core.has_lines()
    }

    /// Bytes of a line, which is what a key is looked for in; of all cells where there are no lines.
    #[getter]
    fn line_bytes(&self) -> u64 {
        self.core.unit()
    }

    /// What recognises the secret without telling it; 0 without one.
    #[getter]
    fn secret_fingerprint(&self) -> u64 {
        self.core.hasher().secret_fingerprint()
    }

    /// The first byte of a shard in the filter, and how many it has, without its mark.
    #[pyo3(signature = (shard: "int") -> "tuple[int, int]")]
    fn range(&self, py: Python<'_>, #[pyo3(from_py_with = arguments::shard)] shard: u64) -> PyResult<(u64, u64)> {
        if shard >= self.core.shards() {
            return Err(parameter(py, format!("shard must be below {}, got {shard}", self.core.shards())));
        }
        Ok(self.core.range(shard))
    }

    /// Rate at so many set bits.
    #[pyo3(signature = (ones: "int") -> "float")]
    fn fpr(&self, #[pyo3(from_py_with = arguments::ones)] ones: u64) -> f64 {
        self.core.fpr(ones)
    }

    /// Estimated number of keys at so many set bits, with its standard deviation.
    #[pyo3(signature = (ones: "int") -> "tuple[float, float]")]
    fn approx_count(&self, #[pyo3(from_py_with = arguments::ones)] ones: u64) -> (f64, f64) {
        self.core.approx_count(ones)
    }

    /// Share of set bits.
    #[pyo3(signature = (ones: "int") -> "float")]
    fn fill(&self, #[pyo3(from_py_with = arguments::ones)] ones: u64) -> f64 {
        self.core.fill(ones)
    }

    /// The hashes of keys of any kind that contains_many() takes, to be looked for or added; nulls are no keys.
    #[pyo3(signature = (keys: "Keys", *, adding: "bool" = false) -> "WireKeys")]
    fn keys(
        &self,
        keys: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::adding)] adding: bool,
    ) -> PyResult<WireKeys> {
        let gather = Gather(RefCell::new(Vec::new()));
        batch::run(&gather, self.core.hasher(), keys, false)?;
        self.of(keys.py(), gather.0.into_inner(), adding)
    }

    /// As keys(), of ready hashes: 8 bytes each, in the order of bytes of this machine.
    #[pyo3(signature = (hashes: "bytes", *, adding: "bool" = false) -> "WireKeys")]
    fn hashed(
        &self,
        hashes: &Bound<'_, PyBytes>,
        #[pyo3(from_py_with = arguments::adding)] adding: bool,
    ) -> PyResult<WireKeys> {
        let (words, _) = hashes.as_bytes().as_chunks::<8>();
        self.of(hashes.py(), words.iter().map(|word| u64::from_ne_bytes(*word)).collect(), adding)
    }

    /// One key, to be looked for or added.
    #[pyo3(signature = (key: "Key", *, adding: "bool" = false) -> "WireBatch")]
    fn one(
        &self,
        key: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::adding)] adding: bool,
    ) -> PyResult<WireBatch> {
        let hash = hash_key(self.core.hasher(), key)?;
        let core = Batch::new(&self.core, vec![hash], adding).or_raise(key.py())?;
        Ok(WireBatch { core: Mutex::new(core), start: 0 })
    }

    /// An empty filter in memory of this shape and hash.
    #[pyo3(signature = (capacity: "int", fpr: "float", *, strict: "bool" = false) -> "BloomFilter")]
    fn memory(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::capacity)] capacity: u64,
        fpr: params::Fpr,
        #[pyo3(from_py_with = arguments::strict)] strict: bool,
    ) -> PyResult<BloomFilter> {
        let (shape, hasher) = (*self.core.shape(), *self.core.hasher());
        py.detach(|| CoreFilter::new(shape, capacity, fpr.0, hasher, strict)).or_raise(py).map(BloomFilter::wrap)
    }

    /// Writes bytes of strings over the cells of a filter from memory(), from a byte of the filter on.
    #[pyo3(signature = (filter: "BloomFilter", start: "int", data: "bytes") -> "None")]
    fn write(
        &self,
        filter: &Bound<'_, BloomFilter>,
        #[pyo3(from_py_with = arguments::start)] start: u64,
        data: &Bound<'_, PyBytes>,
    ) -> PyResult<()> {
        let (py, mut bytes) = (data.py(), data.as_bytes().to_vec());
        self.core.turn(&mut bytes);
        filter.get().lock.detach(py, |session| session.write(|filter| filter.write_cells(start, &bytes))).or_raise(py)
    }

    /// Takes the number of keys of a filter from its cells, by estimate.
    #[pyo3(signature = (filter: "BloomFilter") -> "None")]
    fn recount(&self, filter: &Bound<'_, BloomFilter>) {
        filter.get().lock.detach(filter.py(), |session| session.write(CoreFilter::recount));
    }

    /// The bytes of cells as strings have them.
    #[pyo3(signature = (data: "bytes | memoryview") -> "bytes")]
    fn turned<'py>(&self, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = bytes_of("data", data)?.into_owned();
        self.core.turn(&mut bytes);
        objects::bytes(data.py(), &bytes)
    }
}

impl WireCells {
    fn of(&self, py: Python<'_>, hashes: Vec<u64>, adding: bool) -> PyResult<WireKeys> {
        let answers = Mutex::new(zeroed(hashes.len()).or_raise(py)?);
        Ok(WireKeys { cells: Arc::clone(&self.core), hashes, adding, answers })
    }
}

/// Collects hashes.
struct Gather(RefCell<Vec<u64>>);

impl Operation for Gather {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, _: Option<&mut [u8]>) -> PyResult<()> {
        let mut all = self.0.borrow_mut();
        let before = all.len();
        reserve(&mut all, source.len()).or_raise(py)?;
        all.resize(before + source.len(), 0);
        let out = &mut all[before..];
        turns::over(py, out.len(), || source.fill(0, out));
        Ok(())
    }
}

/// Hands out answers that are there.
struct Hand<'a> {
    answers: &'a [u8],
    at: Cell<usize>,
}

impl Operation for Hand<'_> {
    type Out = u8;
    const SKIPS_NULLS: bool = true;

    fn run(&self, py: Python<'_>, source: &dyn HashSource, out: Option<&mut [u8]>) -> PyResult<()> {
        let end = self.at.get() + source.len();
        let Some(answers) = self.answers.get(self.at.get()..end) else {
            return Err(parameter(py, "the keys changed while the server was asked; pass a copy of them"));
        };
        self.at.set(end);
        if let Some(out) = out {
            out.copy_from_slice(answers);
        }
        Ok(())
    }
}

/// The hashes of many keys, and their answers as they come in.
#[pyclass(frozen, module = "bloomery._core")]
pub(crate) struct WireKeys {
    cells: Arc<Cells>,
    hashes: Vec<u64>,
    adding: bool,
    answers: Mutex<Vec<u8>>,
}

#[pymethods]
impl WireKeys {
    fn __len__(&self) -> usize {
        self.hashes.len()
    }

    /// Some of them, to be sent together; for other cells with the same hash, if they are given.
    #[pyo3(signature = (start: "int", stop: "int", cells: "WireCells | None" = None) -> "WireBatch")]
    fn batch(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::start)] start: u64,
        #[pyo3(from_py_with = arguments::stop)] stop: u64,
        cells: Option<&Bound<'_, WireCells>>,
    ) -> PyResult<WireBatch> {
        let cells = cells.map_or(&self.cells, |cells| &cells.get().core);
        let stop = usize::try_from(stop).unwrap_or(usize::MAX).min(self.hashes.len());
        let start = usize::try_from(start).unwrap_or(usize::MAX).min(stop);
        let hashes = self.hashes[start..stop].to_vec();
        let core = py.detach(|| Batch::new(cells, hashes, self.adding)).or_raise(py)?;
        Ok(WireBatch { core: Mutex::new(core), start })
    }

    /// Keeps the answers of a batch; what an earlier one found new stays new.
    #[pyo3(signature = (batch: "WireBatch") -> "None")]
    fn take(&self, batch: &Bound<'_, WireBatch>) {
        let batch = batch.get();
        let (core, mut answers) = (lock(&batch.core), lock(&self.answers));
        let end = answers.len().min(batch.start + core.answers().len());
        let start = batch.start.min(end);
        for (answer, &told) in answers[start..end].iter_mut().zip(core.answers()) {
            *answer = if self.adding { *answer | told } else { told };
        }
    }

    /// Takes answers that came otherwise, 1 or 0 for each key.
    #[pyo3(signature = (answers: "bytes") -> "None")]
    fn give(&self, answers: &Bound<'_, PyBytes>) -> PyResult<()> {
        let mut all = lock(&self.answers);
        if all.len() != answers.as_bytes().len() {
            let message = format!("there are {} keys and {} answers", all.len(), answers.as_bytes().len());
            return Err(parameter(answers.py(), message));
        }
        all.copy_from_slice(answers.as_bytes());
        Ok(())
    }

    /// The answers in the kind of the keys, which must be those that the hashes are of.
    #[pyo3(signature = (keys: "Keys") -> "Answers[bool]")]
    fn answers<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let answers = lock(&self.answers).clone();
        let hand = Hand { answers: &answers, at: Cell::new(0) };
        let told = batch::run(&hand, self.cells.hasher(), keys, true)?;
        if hand.at.get() != answers.len() {
            return Err(parameter(keys.py(), "the keys changed while the server was asked; pass a copy of them"));
        }
        Ok(told)
    }
}

/// Hashes that are sent together, by shard.
#[pyclass(frozen, module = "bloomery._core")]
pub(crate) struct WireBatch {
    core: Mutex<Batch>,
    start: usize,
}

#[pymethods]
impl WireBatch {
    fn __len__(&self) -> usize {
        lock(&self.core).answers().len()
    }

    /// The shards that they lie in, rising.
    #[getter]
    fn shards(&self) -> Vec<u64> {
        lock(&self.core).shards().collect()
    }

    /// The commands for some of its shards: (number, name of the string). With `asking` each goes behind an ASKING.
    #[pyo3(signature = (shards: "list[tuple[int, bytes]]", *, asking: "bool" = false) -> "WireExchange")]
    fn exchange(
        &self,
        py: Python<'_>,
        shards: Vec<(u64, Vec<u8>)>,
        #[pyo3(from_py_with = arguments::asking)] asking: bool,
    ) -> PyResult<WireExchange> {
        let shards = shards.into_iter().map(|(number, key)| Shard { number, key }).collect();
        let make = || lock(&self.core).exchange(shards, asking); // locked inside: who waits for a lock holds no interpreter
        let made = if lock(&self.core).answers().len() > 64 { py.detach(make) } else { make() };
        Ok(WireExchange { core: Mutex::new(made.or_raise(py)?) })
    }

    /// Keeps the answers of an exchange; what an earlier one found new stays new.
    #[pyo3(signature = (exchange: "WireExchange") -> "None")]
    fn take(&self, exchange: &Bound<'_, WireExchange>) {
        lock(&self.core).take(&lock(&exchange.get().core));
    }

    /// True when any key was found, or new: the answer of a batch of one.
    #[getter]
    fn any(&self) -> bool {
        lock(&self.core).answers().contains(&1)
    }

    /// How many keys were found, or new.
    #[getter]
    fn count(&self) -> u64 {
        lock(&self.core).answers().iter().map(|&answer| u64::from(answer)).sum()
    }

    /// 1 for each key that was found, or new, in the order of the keys; 0 for the others.
    #[getter]
    fn answers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        objects::bytes(py, lock(&self.core).answers())
    }

    /// The hashes, 8 bytes each, those of a shard together.
    #[getter]
    fn hashes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes: Vec<u8> = lock(&self.core).hashes().iter().flat_map(|hash| hash.to_ne_bytes()).collect();
        objects::bytes(py, &bytes)
    }
}

/// The commands of a batch for one server, and their replies.
#[pyclass(frozen, module = "bloomery._core")]
pub(crate) struct WireExchange {
    core: Mutex<Exchange>,
}

/// Shard, mark, whether the string was too short for a key, bits that were set.
type State<'py> = (u64, Bound<'py, PyBytes>, bool, u64);

#[pymethods]
impl WireExchange {
    /// What is to be sent.
    #[getter]
    fn buffer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        objects::bytes(py, lock(&self.core).buffer())
    }

    /// Replies that are due.
    #[getter]
    fn due(&self) -> usize {
        lock(&self.core).due()
    }

    /// Takes bytes as they come; True when all replies have. Raises FormatError for what is no answer to the commands.
    #[pyo3(signature = (data: "bytes | bytearray | memoryview") -> "bool")]
    fn feed(&self, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = data.py();
        let bytes = bytes_of("data", data)?;
        let fed = |bytes: &[u8]| -> Result<bool> { lock(&self.core).feed(bytes) };
        if bytes.len() < DETACHED { fed(&bytes) } else { py.detach(|| fed(&bytes)) }.or_raise(py)
    }

    /// Takes the next reply as a client library read it; True when all have come.
    #[pyo3(signature = (reply: "int | bytes | list[int] | None") -> "bool")]
    fn accept(&self, reply: &Bound<'_, PyAny>) -> PyResult<bool> {
        let mut core = lock(&self.core);
        let taken = if reply.is_none() {
            core.accept(Reply::Nil)
        } else if let Ok(bytes) = reply.cast::<PyBytes>() {
            core.accept(Reply::Bulk(bytes.as_bytes()))
        } else if let Ok(number) = reply.cast::<PyInt>() {
            core.accept(Reply::Integer(number.extract()?))
        } else if let Ok(list) = reply.cast::<PyList>() {
            let mut array = Vec::new();
            for item in list {
                array.extend_from_slice(format!(":{}\r\n", item.extract::<i64>()?).as_bytes());
            }
            core.accept(Reply::Array(&array))
        } else {
            let class = reply.get_type().name()?;
            return Err(parameter_type(reply.py(), format!("a reply is an int, bytes, a list or None, got {class}")));
        };
        taken.or_raise(reply.py())?;
        Ok(core.is_done())
    }

    /// Takes a refusal as the next reply: its code, a blank, the text.
    #[pyo3(signature = (text: "str") -> "bool")]
    fn refuse(&self, text: &Bound<'_, PyAny>) -> PyResult<bool> {
        let mut core = lock(&self.core);
        core.accept(Reply::Error(params::text("text", text)?.as_bytes())).or_raise(text.py())?;
        Ok(core.is_done())
    }

    /// Begins anew, for the same commands sent once more.
    fn restart(&self) {
        lock(&self.core).restart();
    }

    /// What the server refused: (shard, text), each once for all replies in a row that repeat it.
    #[getter]
    fn refusals(&self) -> Vec<(u64, String)> {
        lock(&self.core).refusals().iter().map(|refusal| (refusal.shard, refusal.text.clone())).collect()
    }

    /// Of each shard: (number, mark, whether the string was too short for a key, bits that were set).
    #[getter]
    fn states<'py>(&self, py: Python<'py>) -> PyResult<Vec<State<'py>>> {
        let core = lock(&self.core);
        let state =
            |(shard, mark, short, set): (u64, &[u8], bool, u64)| Ok((shard, objects::bytes(py, mark)?, short, set));
        core.states().map(state).collect()
    }
}
