//! The canonical bytes of any key, hashed in place or written as parts of a tuple.

use std::collections::BTreeMap;
use std::ops::Range;

use fullbloom_core::cells::allocation::reserve;
use fullbloom_core::key::decimal::{BESIDE_DIGITS, Decimal};
use fullbloom_core::key::{Domain, KeyHasher, PART_HEADER, end_part, float_bits};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyException, PyMemoryError, PyUnicodeEncodeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyMemoryView, PyString, PyTuple, PyType};

use super::refusals::refuse_key;
use super::{Sink, moments};
use crate::errors::{OrRaise, key_type};

/// Tuples nest; Python's own recursion limit bounds how deep they were built, this how deep we go.
const DEEPEST: usize = 64;

/// A tuple that holds another twice is twice as long: 40 such steps require 10^13 bytes. This many are written in 0.2 s.
/// Fuzzing reaches this bound and the next thousands of times a second.
const LONGEST: usize = if cfg!(fuzzing) { 1 << 10 } else { 16 << 20 };

/// From this many bytes on, a tuple remembers what it wrote for objects whose bytes come from method calls, 2 us each: a
/// tuple doubled 30 times holds one of them 600,000 times.
const REMEMBERS: usize = if cfg!(fuzzing) { 1 << 8 } else { 64 << 10 };
/// It remembers this many of them and keeps them alive; they take 50 kB.
const MAX_REMEMBERED: usize = 1000;

/// The hash of `key` by its canonical bytes, and its domain.
pub(super) fn hash(hasher: &KeyHasher, key: &Bound<'_, PyAny>) -> PyResult<(u64, Domain)> {
    let mut whole = Whole { hasher, hash: 0, domain: Domain::Text };
    encode(key, 0, &mut whole)?;
    Ok((whole.hash, whole.domain))
}

/// Passes the domain and the canonical bytes of `key` to `take`. Those of a tuple are not passed: no filter of another
/// program has such keys.
pub(crate) fn pass(key: &Bound<'_, PyAny>, take: &mut dyn FnMut(Domain, &[u8])) -> PyResult<()> {
    encode(key, 0, &mut Passed(take))
}

/// See [`pass`].
struct Passed<'a>(&'a mut dyn FnMut(Domain, &[u8]));

impl Sink for Passed<'_> {
    fn take(&mut self, _: Python<'_>, domain: Domain, bytes: &[u8]) -> PyResult<()> {
        (self.0)(domain, bytes);
        Ok(())
    }

    fn tuple(&mut self, _: &Bound<'_, PyTuple>, _: usize) -> PyResult<()> {
        (self.0)(Domain::Tuple, &[]);
        Ok(())
    }

    fn other(&mut self, key: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        encode_other(key, depth, self)
    }
}

/// The hash of a key that is not part of another.
struct Whole<'a> {
    hasher: &'a KeyHasher,
    hash: u64,
    domain: Domain,
}

impl Sink for Whole<'_> {
    fn take(&mut self, _: Python<'_>, domain: Domain, bytes: &[u8]) -> PyResult<()> {
        (self.hash, self.domain) = (self.hasher.bytes(domain, bytes), domain);
        Ok(())
    }

    fn tuple(&mut self, tuple: &Bound<'_, PyTuple>, depth: usize) -> PyResult<()> {
        let mut parts = Parts { bytes: Vec::new(), met: BTreeMap::new() };
        parts.all(tuple, depth)?;
        self.take(tuple.py(), Domain::Tuple, &parts.bytes)
    }

    fn other(&mut self, key: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        encode_other(key, depth, self)
    }
}

/// The parts of a tuple, each after its header.
struct Parts {
    bytes: Vec<u8>,
    /// By address and depth of an object: itself, so that its address is not reused, and where its bytes are.
    met: BTreeMap<(usize, usize), (Py<PyAny>, Range<usize>)>,
}

impl Parts {
    fn all(&mut self, tuple: &Bound<'_, PyTuple>, depth: usize) -> PyResult<()> {
        if depth > DEEPEST {
            return Err(key_type(tuple.py(), format!("a tuple key may nest {DEEPEST} levels, got more")));
        }
        tuple.iter().try_for_each(|part| encode(&part, depth, self))
    }

    /// Reserves memory for `more` bytes.
    fn expect(&mut self, py: Python<'_>, more: usize) -> PyResult<()> {
        if more > LONGEST - self.bytes.len() {
            let remedy = "hash its long parts and put the digests in their place";
            return Err(key_type(py, format!("a tuple key may take {LONGEST} bytes encoded, got more; {remedy}")));
        }
        reserve(&mut self.bytes, more).or_raise(py)
    }

    fn push(&mut self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        self.expect(py, bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// A part whose bytes `write` appends.
    fn part(&mut self, py: Python<'_>, domain: Domain, write: impl FnOnce(&mut Self) -> PyResult<()>) -> PyResult<()> {
        let start = self.bytes.len();
        self.push(py, &[0; PART_HEADER])?;
        write(self)?;
        end_part(&mut self.bytes, start, domain);
        Ok(())
    }
}

impl Sink for Parts {
    fn take(&mut self, py: Python<'_>, domain: Domain, bytes: &[u8]) -> PyResult<()> {
        self.part(py, domain, |parts| parts.push(py, bytes))
    }

    fn tuple(&mut self, tuple: &Bound<'_, PyTuple>, depth: usize) -> PyResult<()> {
        self.part(tuple.py(), Domain::Tuple, |parts| parts.all(tuple, depth))
    }

    fn other(&mut self, key: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        let (py, start) = (key.py(), self.bytes.len());
        if start < REMEMBERS {
            return encode_other(key, depth, self);
        }
        let met = (key.as_ptr() as usize, depth);
        if let Some((_, bytes)) = self.met.get(&met) {
            let bytes = bytes.clone();
            self.expect(py, bytes.len())?;
            self.bytes.extend_from_within(bytes);
            return Ok(());
        }
        encode_other(key, depth, self)?;
        if self.met.len() < MAX_REMEMBERED {
            self.met.insert(met, (key.clone().unbind(), start..self.bytes.len()));
        }
        Ok(())
    }
}

/// Passes the canonical bytes of `key`, nested in `depth` tuples, to `sink`.
fn encode(key: &Bound<'_, PyAny>, depth: usize, sink: &mut impl Sink) -> PyResult<()> {
    if encode_builtin(key, depth, sink)? { Ok(()) } else { sink.other(key, depth) }
}

/// As [`encode`] for classes that are known by name, and for an int beyond 64 bits.
fn encode_other(key: &Bound<'_, PyAny>, depth: usize, sink: &mut impl Sink) -> PyResult<()> {
    let py = key.py();
    if let Ok(int) = key.cast::<PyInt>() {
        return encode_long(int, sink);
    }
    let class = key.get_type();
    let module = class.module().map(|m| m.to_string()).unwrap_or_default();
    let name = class.qualname().map(|n| n.to_string()).unwrap_or_default();
    if module == "uuid" && name == "UUID" {
        return sink.take(py, Domain::Text, key.getattr("bytes")?.cast::<PyBytes>()?.as_bytes());
    }
    if module == "numpy" && encode_numpy(key, &name, depth, sink)? {
        return Ok(());
    }
    // NaT is derived from the classes of dates, but is missing.
    if name != "NaTType" && (moments::encode(key, sink)? || encode_decimal(key, sink)?) {
        return Ok(());
    }
    Err(refuse_key(key))
}

/// As [`encode`] for scalars of NumPy's, of the class `name`; false for anything else.
fn encode_numpy(key: &Bound<'_, PyAny>, name: &str, depth: usize, sink: &mut impl Sink) -> PyResult<bool> {
    if name == "datetime64" || name == "timedelta64" {
        return moments::encode_numpy(key, sink).map(|()| true);
    }
    // Arrays have item() as well.
    if key.hasattr("__array_finalize__")? || !key.hasattr("item")? || !key.hasattr("dtype")? {
        return Ok(false);
    }
    let item = key.call_method0("item").map_err(|error| unread(key, name, error))?;
    if matches!(name, "void" | "record")
        && let Ok(parts) = item.cast::<PyTuple>()
        && hides_dates(key, parts)?
    {
        let fields = (0..parts.len()).map(|i| key.get_item(i)).collect::<PyResult<Vec<_>>>()?;
        return sink.tuple(&PyTuple::new(key.py(), fields)?, depth + 1).map(|()| true);
    }
    if let Ok(int) = item.cast::<PyInt>()
        && int.extract::<i64>().is_err()
    {
        return encode_long(int, sink).map(|()| true);
    }
    encode_builtin(&item, depth, sink)
}

/// The error for a scalar that NumPy itself cannot read, such as a record with text of invalid characters: NumPy's own
/// is a SystemError.
#[cold]
fn unread(key: &Bound<'_, PyAny>, name: &str, error: PyErr) -> PyErr {
    let py = key.py();
    if !error.is_instance_of::<PyException>(py) || error.is_instance_of::<PyMemoryError>(py) {
        return error;
    }
    let why = error.cause(py).unwrap_or(error);
    key_type(py, format!("NumPy cannot read this numpy.{name} ({}); leave it out", why.value(py)))
}

/// Whether some of the `parts` that a record's item() gives may be numbers in the place of dates: those of some units
/// are.
fn hides_dates(record: &Bound<'_, PyAny>, parts: &Bound<'_, PyTuple>) -> PyResult<bool> {
    let dtype = record.getattr("dtype")?;
    for (i, part) in parts.iter().enumerate() {
        if part.is_exact_instance_of::<PyTuple>() {
            return Ok(true);
        }
        if part.is_exact_instance_of::<PyInt>()
            && matches!(dtype.get_item(i)?.getattr("kind")?.extract::<char>()?, 'M' | 'm')
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// As [`encode`] for the classes of the language; false for any other, and for an int beyond 64 bits.
fn encode_builtin(key: &Bound<'_, PyAny>, depth: usize, sink: &mut impl Sink) -> PyResult<bool> {
    let py = key.py();
    if let Ok(text) = key.cast::<PyString>() {
        sink.take(py, Domain::Text, utf8(text)?.as_bytes())?;
    } else if let Ok(bytes) = key.cast::<PyBytes>() {
        sink.take(py, Domain::Text, bytes.as_bytes())?;
    } else if let Ok(int) = key.cast::<PyInt>() {
        // One that is longer is worked out by methods, 1.5 us for each.
        let Ok(value) = int.extract::<i64>() else { return Ok(false) };
        sink.take(py, Domain::Integer, &value.to_le_bytes())?;
    } else if let Ok(float) = key.cast::<PyFloat>() {
        sink.take(py, Domain::Float, &float_bits(float.value()).to_le_bytes())?;
    } else if let Ok(tuple) = key.cast::<PyTuple>() {
        sink.tuple(tuple, depth + 1)?;
    } else if key.is_instance_of::<PyByteArray>() || key.is_instance_of::<PyMemoryView>() {
        encode_view(key, sink)?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn utf8<'a>(text: &'a Bound<'_, PyString>) -> PyResult<std::borrow::Cow<'a, str>> {
    text.to_cow().map_err(|error| {
        if error.is_instance_of::<PyUnicodeEncodeError>(text.py()) {
            let remedy = "a str key must encode to UTF-8, this one holds a lone surrogate; \
                          pass key.encode(\"utf-8\", \"surrogateescape\") instead";
            return key_type(text.py(), remedy);
        }
        error
    })
}

/// The shortest two's complement of an int, of 9 bytes or more where the 8 of the signed 64-bit range do not hold it:
/// no two integers share an encoding.
fn encode_long(int: &Bound<'_, PyInt>, sink: &mut impl Sink) -> PyResult<()> {
    let py = int.py();
    // int.bit_length of the value, or of its complement below zero, plus one bit for the sign.
    let negative = int.lt(0)?;
    let magnitude = if negative { int.call_method0("__invert__")? } else { int.as_any().clone() };
    let bits: usize = magnitude.call_method0("bit_length")?.extract()?;
    drop(magnitude);
    let options = PyDict::new(py);
    options.set_item("signed", true)?;
    let bytes = int.call_method("to_bytes", (bits / 8 + 1, "little"), Some(&options))?;
    sink.take(py, Domain::Integer, bytes.cast::<PyBytes>()?.as_bytes())
}

/// The bytes of a bytearray or a memoryview: in place if in one piece, else a copy in C order.
fn encode_view(key: &Bound<'_, PyAny>, sink: &mut impl Sink) -> PyResult<()> {
    let py = key.py();
    let buffer = PyUntypedBuffer::get(key)
        .map_err(|error| key_type(py, format!("the view shows no bytes ({}); pass bytes", error.value(py))))?;
    if buffer.format().to_bytes().contains(&b'O') {
        return Err(key_type(py, "a view of Python objects is not a key; pass the objects, or a tuple of them"));
    }
    // Without a GIL another thread may write meanwhile; a copy of one's own does not change while it is hashed.
    if !buffer.is_c_contiguous() || cfg!(Py_GIL_DISABLED) {
        let copy = py.get_type::<PyBytes>().call1((key,))?;
        return sink.take(py, Domain::Text, copy.cast::<PyBytes>()?.as_bytes());
    }
    let bytes = match buffer.len_bytes() {
        0 => &[],
        // SAFETY: the buffer is in one piece of this length, kept by `buffer` where it is; taking it runs no Python
        // code and the GIL is held, so no other thread writes to it meanwhile.
        len => unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>(), len) },
    };
    sink.take(py, Domain::Text, bytes)
}

/// As [`encode`] for `decimal.Decimal`; false for any other object.
fn encode_decimal(key: &Bound<'_, PyAny>, sink: &mut impl Sink) -> PyResult<bool> {
    let py = key.py();
    // Code that has such a key has imported the module: it is not imported for others.
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    let Some(module) = modules.get_item(intern!(py, "decimal"))? else { return Ok(false) };
    let Ok(class) = module.getattr(intern!(py, "Decimal")).and_then(|class| Ok(class.cast_into::<PyType>()?)) else {
        return Ok(false);
    };
    if !key.is_instance(&class)? {
        return Ok(false);
    }
    let (negative, numbers, exponent): (u8, Bound<'_, PyTuple>, Bound<'_, PyAny>) =
        key.call_method0(intern!(py, "as_tuple"))?.extract()?;
    let Ok(exponent) = exponent.extract::<i64>() else {
        return Err(key_type(py, format!("a decimal key must be a finite number, got {}; leave it out", key.str()?)));
    };
    let (mut digits, mut bytes) = (Vec::new(), Vec::new());
    reserve(&mut digits, numbers.len()).or_raise(py)?;
    reserve(&mut bytes, numbers.len() + BESIDE_DIGITS).or_raise(py)?;
    for number in &numbers {
        digits.push(b'0' + number.extract::<u8>()? % 10);
    }
    Decimal::new(negative != 0, &digits, exponent).write(&mut bytes)?;
    sink.take(py, Domain::Decimal, &bytes)?;
    Ok(true)
}
