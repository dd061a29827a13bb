//! What windows of generations have in common, and what only `StableBloomFilter` has.

use pyo3::prelude::*;

use crate::classes::aging::AgingBloomFilter;
use crate::classes::rolling::RollingBloomFilter;
use crate::classes::stable::StableBloomFilter;
use crate::errors::{OrRaise, parameter};
use crate::parameters;

macro_rules! generation_methods {
    ($Class:ident) => {
        #[pymethods]
        impl $Class {
            #[doc = concat!(
                "Lets time pass until `now`, in seconds of any clock; returns how many generations expired.\n\n",
                "None: the oldest generation expires at once, whatever it holds, and a new one takes the keys from here\n",
                "on, in windows of keys, too; earlier keys are then forgotten sooner than the window promises.\n\n",
                "A time is for a filter built with window=. A key is remembered for at least `window` seconds after the\n",
                "advance before its add; keys added before the first advance count as added at it. Raises\n",
                "ParameterError when now goes back, or without window=; ReadOnlyFilter.\n\n",
                ">>> from fullbloom import ", stringify!($Class), "\n",
                ">>> f = ", stringify!($Class), "(1000, window=60.0)\n",
                ">>> f.advance(0.0), f.add(\"a\"), f.advance(59.0) >= 0, \"a\" in f\n(0, True, True, True)\n",
                ">>> f.advance(200.0) > 0, \"a\" in f\n(True, False)")]
            #[pyo3(signature = (now: "float | None" = None))]
            fn advance(&self, py: Python<'_>, now: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
                let Some(now) = now else {
                    return self.lock.change(py, |f| f.advance_by_hand()).or_raise(py).map(|()| 1);
                };
                let now = parameters::real("now", now)?;
                self.lock.change(py, |f| f.advance(now)).or_raise(py)
            }

            /// Keys written to each generation in memory, oldest first; the last one takes new keys.
            #[pyo3(signature = () -> "list[int]")]
            fn generation_counts(&self, py: Python<'_>) -> Vec<u64> {
                self.lock.read(py, |f| f.generation_counts())
            }
        }
    };
}
generation_methods!(AgingBloomFilter);
generation_methods!(RollingBloomFilter);

#[pymethods]
impl StableBloomFilter {
    /// Model chance that a key is still found after `age` other keys, on a stream in its stable state.
    #[pyo3(signature = (age: "float"))]
    fn recall(&self, age: &Bound<'_, PyAny>) -> PyResult<f64> {
        let (py, keys) = (age.py(), parameters::real("age", age)?);
        if keys.is_nan() || keys < 0.0 {
            return Err(parameter(py, format!("age must be at least 0, got {keys}")));
        }
        Ok(self.lock.read(py, |f| f.shape().recall(keys)))
    }
}
