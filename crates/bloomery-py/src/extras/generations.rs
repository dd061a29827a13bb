//! What windows made of generations have.

use pyo3::prelude::*;

use crate::classes::aging::AgingBloomFilter;
use crate::classes::rolling::RollingBloomFilter;
use crate::errors::OrRaise;
use crate::params;

macro_rules! generation_methods {
    ($Class:ident) => {
        #[pymethods]
        impl $Class {
            #[doc = concat!(
                "Lets time pass until `now`, in seconds of any clock; returns how many generations expired.\n\n",
                "For a filter built with window=. A key is remembered for at least `window` seconds after the\n",
                "advance before its add; keys added before the first advance count as added at it. Raises\n",
                "ParameterError when now goes back, or without window=; ReadOnlyFilter.\n\n",
                ">>> from bloomery import ", stringify!($Class), "\n",
                ">>> f = ", stringify!($Class), "(1000, window=60.0)\n",
                ">>> f.advance(0.0), f.add(\"a\"), f.advance(59.0) >= 0, \"a\" in f\n(0, True, True, True)\n",
                ">>> f.advance(200.0) > 0, \"a\" in f\n(True, False)")]
            #[pyo3(signature = (now: "float"))]
            fn advance(&self, now: &Bound<'_, PyAny>) -> PyResult<u64> {
                let (py, now) = (now.py(), params::real("now", now)?);
                self.lock.change(py, |f| f.advance(now)).or_raise(py)
            }

            /// Keys written to each generation that is held, oldest first; the last one takes new keys.
            #[pyo3(signature = () -> "list[int]")]
            fn generation_counts(&self, py: Python<'_>) -> Vec<u64> {
                self.lock.read(py, |f| f.generation_counts())
            }
        }
    };
}
generation_methods!(AgingBloomFilter);
generation_methods!(RollingBloomFilter);
