//! [`ForeignCuckooFilter`]: a cuckoo filter that grows.

use fullbloom_core::container::REDISBLOOM_CUCKOO;
use fullbloom_core::foreign::redisbloom::cuckoo::{Cuckoo, Shape};
use pyo3::exceptions::PyKeyError;

use super::*;

dump_class! {
    /// A cuckoo filter of RedisBloom (CF.*) in this process, byte for byte: it answers, grows and is dumped as there.
    ///
    /// capacity, bucket_size, iterations, expansion: as for CF.RESERVE. Keys are str, as UTF-8, and bytes. add() adds a key that
    /// is present once more, as CF.ADD. Raises ParameterError, FilterMemoryError.
    ///
    /// >>> from fullbloom import ForeignCuckooFilter
    /// >>> seen = ForeignCuckooFilter(1000)
    /// >>> seen.add("x"), seen.discard("x"), "x" in seen
    /// (True, True, False)
    ForeignCuckooFilter, Cuckoo, REDISBLOOM_CUCKOO, Tables, {
        #[new]
        #[pyo3(signature = (
            capacity: "int", *, bucket_size: "int" = None, iterations: "int" = None, expansion: "int" = None
        ))]
        #[pyo3(text_signature = "(capacity, *, bucket_size=2, iterations=20, expansion=1)")]
        fn new(
            py: Python<'_>,
            capacity: &Bound<'_, PyAny>,
            bucket_size: Option<&Bound<'_, PyAny>>,
            iterations: Option<&Bound<'_, PyAny>>,
            expansion: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let capacity = parameters::parse_whole("capacity", capacity, 1)?;
            let bucket_size = read_number("bucket_size", bucket_size, 2, u8::MAX.into())?;
            let iterations = read_number("iterations", iterations, 20, u16::MAX)?;
            let expansion = read_number("expansion", expansion, 1, MOST_EXPANSION)?;
            py.detach(|| Cuckoo::construct(Shape::new(capacity, bucket_size, iterations, expansion)?))
                .or_raise(py)
                .map(Self::wrap)
        }

        /// Removes a key once, as CF.DEL; KeyError if it was certainly never added. Removing a key that was never added may
        /// remove another one.
        #[pyo3(signature = (key: "Key", /) -> "None")]
        fn remove(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
            if self.discard(key)? { Ok(()) } else { Err(PyKeyError::new_err((key.clone().unbind(),))) }
        }

        /// As remove, but returns True when the key was removed, False when remove raises KeyError.
        #[pyo3(signature = (key: "Key", /) -> "bool")]
        fn discard(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
            let [hash, _] = keys::digest_key(&Cuckoo::HASHING, key)?;
            self.lock.change(key.py(), |filter| filter.remove(hash)).or_raise(key.py())
        }

        /// Discards many keys; takes what contains_many takes, skips nulls, returns results in the same container type.
        #[pyo3(signature = (keys: "Keys") -> "Answers[bool]")]
        fn discard_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
            self.batch(Job::Discard, 1).run(keys)
        }

        /// One count per key, in the same container type; takes what contains_many takes, null counts null.
        #[pyo3(signature = (keys: "Keys") -> "Answers[int]")]
        fn count_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
            Batch::<_, u64>::new(&self.lock, Cuckoo::HASHING, Job::Check, 1).run(keys)
        }

        /// Slots in use, each of which has a key, and the deviation, 0: O(nbytes). num_added is the program's count.
        #[pyo3(signature = () -> "tuple[float, float]")]
        fn approx_count(&self, py: Python<'_>) -> (f64, f64) {
            (self.lock.look(py, Cuckoo::used) as f64, 0.0)
        }

        /// Slots of all tables.
        #[getter]
        fn capacity(&self, py: Python<'_>) -> u64 {
            self.lock.read(py, Cuckoo::nbytes)
        }

        /// How often a key was added, as CF.COUNT: never too low.
        #[pyo3(signature = (key: "Key") -> "int")]
        fn count(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
            let [hash, _] = keys::digest_key(&Cuckoo::HASHING, key)?;
            Ok(self.lock.read(key.py(), |filter| filter.count(hash)))
        }
    }
}

impl ForeignCuckooFilter {
    fn describe(&self, py: Python<'_>, info: &Bound<'_, PyDict>) -> PyResult<()> {
        let shape = self.lock.read(py, |filter| *filter.shape());
        info.set_item("capacity", self.capacity(py))?;
        info.set_item("num_buckets", shape.buckets)?;
        info.set_item("bucket_size", shape.bucket_size)?;
        info.set_item("iterations", shape.iterations)?;
        info.set_item("expansion", shape.expansion)?;
        info.set_item("num_removed", self.lock.read(py, Cuckoo::deletes))
    }
}
