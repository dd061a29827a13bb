//! `in`, `add`, `remove` and `discard`: by [`hot`](super::hot), and for stubs as ordinary methods.

/// The text of `add`'s documentation.
macro_rules! add_text {
    ($Class:ident, $times:literal) => {
        concat!(
            "Adds a key; True when it was certainly new, False when it was probably added before.\n\n",
            $times,
            "Cost: one hash and, in layout blocked, one cache line. Of two threads that add one new key,\n",
            "exactly one receives True. Raises KeyTypeError, ReadOnlyFilter; warns CapacityWarning once past\n",
            "capacity.\n\n",
            ">>> from fullbloom import ",
            stringify!($Class),
            "\n",
            ">>> f = ",
            stringify!($Class),
            "(1000)\n",
            ">>> f.add(7), f.add(7)\n(True, False)"
        )
    };
}

/// The text of `remove`'s.
macro_rules! remove_text {
    ($times:literal) => {
        concat!(
            "Removes one occurrence of a key; KeyError when it was certainly never added or cannot be removed (a note\n",
            "then says so), and nothing changes. Removing a key that was never added may remove others: see the class.",
            $times
        )
    };
}

/// The text of `discard`'s.
macro_rules! discard_text {
    ($times:literal) => {
        concat!("As remove, but returns True when the key was removed, False when remove raises KeyError.", $times)
    };
}

#[cfg(not(feature = "stubs"))]
/// A text as a C string with the signature in front, as CPython reads it.
macro_rules! signed {
    ($signature:literal, $text:expr) => {
        match std::ffi::CStr::from_bytes_with_nul(concat!($signature, "\n--\n\n", $text, "\0").as_bytes()) {
            Ok(text) => text,
            Err(_) => c"",
        }
    };
}

/// The methods of one key, with a number of times if the registry says that the structure counts.
macro_rules! one_key_methods {
    ([count $($more:ident)*] $can:tt $Class:ident $Core:ident) => {
        crate::classes::one_key::add_method!(times $Class $Core);
        crate::classes::one_key::remove_methods!($can times $Class);
    };
    ([$other:ident $($more:ident)*] $can:tt $Class:ident $Core:ident) => {
        crate::classes::one_key::one_key_methods!([$($more)*] $can $Class $Core);
    };
    ([] $can:tt $Class:ident $Core:ident) => {
        crate::classes::one_key::add_method!(once $Class $Core);
        crate::classes::one_key::remove_methods!($can once $Class);
    };
}

/// `in` and `add`.
macro_rules! add_method {
    (once $Class:ident $Core:ident) => {
        crate::classes::hot::hot_methods!(
            $Class,
            $Core,
            crate::classes::hot::Add,
            crate::classes::one_key::signed!("add($self, key, /)", crate::classes::one_key::add_text!($Class, ""))
        );

        #[cfg(feature = "stubs")]
        #[pymethods]
        impl $Class {
            #[doc = crate::classes::one_key::add_text!($Class, "")]
            #[pyo3(signature = (key: "Key", /))]
            fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                shared::add_one(py, &self.lock, crate::classes::hot::hash_key(self, key)?)
            }
        }
        crate::classes::one_key::contains_method!($Class);
    };
    (times $Class:ident $Core:ident) => {
        crate::classes::hot::hot_methods!(
            $Class,
            $Core,
            crate::classes::hot::Times<crate::classes::hot::Add>,
            crate::classes::one_key::signed!("add($self, key, times=1, /)", crate::classes::one_key::add_text!(
                $Class, "times: how often, as that many calls would; if the filter becomes full, the additions before that\nare kept.\n\n"))
        );

        #[cfg(feature = "stubs")]
        #[pymethods]
        impl $Class {
            #[doc = crate::classes::one_key::add_text!(
                $Class, "times: how often, as that many calls would; if the filter becomes full, the additions before that\nare kept.\n\n")]
            #[pyo3(signature = (key: "Key", times: "int" = 1, /))]
            fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>, times: u64) -> PyResult<bool> {
                crate::classes::times::add(py, &self.lock, crate::classes::hot::hash_key(self, key)?, times)
            }
        }
        crate::classes::one_key::contains_method!($Class);
    };
}

/// `in`, for its signature.
macro_rules! contains_method {
    ($Class:ident) => {
        #[cfg(feature = "stubs")]
        #[pymethods]
        impl $Class {
            /// True when the key was probably added, False when it certainly was not.
            ///
            /// Cost: one hash and, in layout blocked, one cache line.
            fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                let hash = scalar::hash_key(&self.hasher, key)?;
                Ok(self.lock.read(py, |filter| filter.contains_hash(hash)))
            }
        }
    };
}

/// `remove` and `discard`, if keys can be removed.
macro_rules! remove_methods {
    ([remove $($more:ident)*] $how:ident $Class:ident) => {
        crate::classes::one_key::remove_methods!(@ $how $Class);
    };
    ([delete $($more:ident)*] $how:ident $Class:ident) => {
        crate::classes::one_key::remove_methods!(@ $how $Class);
    };
    ([$other:ident $($more:ident)*] $how:ident $Class:ident) => {
        crate::classes::one_key::remove_methods!([$($more)*] $how $Class);
    };
    ([] $how:ident $Class:ident) => {
        /// A class that cannot remove keys names those that can.
        #[cfg(not(feature = "stubs"))]
        #[pymethods]
        impl $Class {
            #[classattr]
            fn remove() -> crate::classes::absent::AbsentMethod {
                crate::classes::absent::AbsentMethod::remove(stringify!($Class))
            }
        }
    };
    (@ once $Class:ident) => {
        crate::classes::hot::hot_items!($Class, c"remove", crate::classes::hot::Remove,
            crate::classes::one_key::signed!("remove($self, key, /)", crate::classes::one_key::remove_text!("")), []);
        crate::classes::hot::hot_items!($Class, c"discard", crate::classes::hot::Discard,
            crate::classes::one_key::signed!("discard($self, key, /)", crate::classes::one_key::discard_text!("")), []);

        #[cfg(feature = "stubs")]
        #[pymethods]
        impl $Class {
            #[doc = crate::classes::one_key::remove_text!("")]
            #[pyo3(signature = (key: "Key", /) -> "None")]
            fn remove(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
                shared::remove_one(&self.lock, scalar::hash_key(&self.hasher, key)?, key)
            }

            #[doc = crate::classes::one_key::discard_text!("")]
            #[pyo3(signature = (key: "Key", /))]
            fn discard(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
                let (py, hash) = (key.py(), scalar::hash_key(&self.hasher, key)?);
                self.lock.write(py, |f| f.remove_hash(hash)).or_raise(py)
            }
        }
    };
    (@ times $Class:ident) => {
        crate::classes::hot::hot_items!($Class, c"remove",
            crate::classes::hot::Times<crate::classes::hot::Remove>,
            crate::classes::one_key::signed!("remove($self, key, times=1, /)", crate::classes::one_key::remove_text!(
                "\n\ntimes: this many occurrences, or none if there are fewer.")), []);
        crate::classes::hot::hot_items!($Class, c"discard",
            crate::classes::hot::Times<crate::classes::hot::Discard>,
            crate::classes::one_key::signed!("discard($self, key, times=1, /)", crate::classes::one_key::discard_text!("")), []);

        #[cfg(feature = "stubs")]
        #[pymethods]
        impl $Class {
            #[doc = crate::classes::one_key::remove_text!(
                "\n\ntimes: this many occurrences, or none if there are fewer.")]
            #[pyo3(signature = (key: "Key", times: "int" = 1, /) -> "None")]
            fn remove(&self, key: &Bound<'_, PyAny>, times: u64) -> PyResult<()> {
                let (py, hash) = (key.py(), scalar::hash_key(&self.hasher, key)?);
                crate::classes::times::remove(py, &self.lock, hash, times).map(drop)
            }

            #[doc = crate::classes::one_key::discard_text!("")]
            #[pyo3(signature = (key: "Key", times: "int" = 1, /))]
            fn discard(&self, key: &Bound<'_, PyAny>, times: u64) -> PyResult<bool> {
                let (py, hash) = (key.py(), scalar::hash_key(&self.hasher, key)?);
                crate::classes::times::remove(py, &self.lock, hash, times)
            }
        }
    };
}

#[cfg(not(feature = "stubs"))]
pub(crate) use signed;
pub(crate) use {add_method, add_text, contains_method, discard_text, one_key_methods, remove_methods, remove_text};
