//! [`class!`]: the Python class of a structure, from its row in the registry and its declaration in the core.

use pyo3::prelude::*;

use crate::params;

/// An argument as it came.
pub(crate) type Argument<'a> = &'a Bound<'a, PyAny>;

/// A parameter of a type that a declaration may name.
pub(crate) trait Parameter<'a>: Sized {
    /// Reads the argument `name`.
    fn read(name: &str, value: Argument<'a>) -> PyResult<Self>;
}

impl<'a> Parameter<'a> for u64 {
    fn read(name: &str, value: Argument<'a>) -> PyResult<Self> {
        params::whole(name, value, 1)
    }
}

impl<'a> Parameter<'a> for f64 {
    fn read(name: &str, value: Argument<'a>) -> PyResult<Self> {
        params::real(name, value)
    }
}

impl<'a> Parameter<'a> for bool {
    fn read(name: &str, value: Argument<'a>) -> PyResult<Self> {
        params::flag(name, value)
    }
}

impl<'a> Parameter<'a> for &'a str {
    fn read(name: &str, value: Argument<'a>) -> PyResult<Self> {
        params::text(name, value)
    }
}

impl<'a, T: Parameter<'a>> Parameter<'a> for Option<T> {
    fn read(name: &str, value: Argument<'a>) -> PyResult<Self> {
        if value.is_none() { Ok(None) } else { T::read(name, value).map(Some) }
    }
}

/// A function for each argument that reads it, under its name.
macro_rules! readers {
    ($($p:ident: $pt:tt;)*) => {
        $(pub(super) fn $p(
            value: crate::classes::declared::Argument<'_>,
        ) -> pyo3::PyResult<fullbloom_core::parameter_type!($pt)> {
            crate::classes::declared::Parameter::read(stringify!($p), value)
        })*
    };
}

/// Defines the class of one row; see [`fullbloom_core::structure::declaration`] for what comes in.
macro_rules! class {
    ({ $ID:ident $module:ident $family:ident $when:ident $entry:tt [$($can:ident)*] $merging:literal }
        $Class:ident
        [$($summary:tt)*]
        [$({[$d1:tt $($d2:tt)*] $p:ident $pt:tt [$($pd:tt)?]})*]
        [$({[$e1:tt $($e2:tt)*] $k:ident $kt:tt $kd:tt})*]
        [$($rest:tt)*]
        [$({[$($shown:tt)*] $s:ident ($st:ty)})*]
    ) => {
        pub(crate) mod $module {
            use fullbloom_core::$family::$Class as Core;
            #[allow(unused_imports)] // the types of fields
            use fullbloom_core::$family::*;
            use fullbloom_core::key::KeyHasher;
            use fullbloom_core::structure::declaration::FieldValue;
            #[allow(unused_imports)] // of what it can do
            use fullbloom_core::structure::{
                Addable, Countable, Declared, Filter, Intersectable, Mergeable, Planned, Positioned, Removable,
            };
            use pyo3::prelude::*;
            #[allow(unused_imports)] // of those that are built
            use pyo3::types::PyTuple;
            use pyo3::types::{PyBytes, PyDict};

            use crate::biased_lock::BiasedLock;
            use crate::classes::{secrets, shared};
            use crate::errors::OrRaise;
            #[allow(unused_imports)] // of what it can do
            use crate::keys::{batch, ready, scalar};
            #[allow(unused_imports)] // of what it can do
            use crate::{files, operations, params};

            const VARIANT: u16 = fullbloom_core::registry::$ID;

            $(#[doc = $summary])*
            #[doc = concat!(crate::classes::declared::made!($when $entry $Class))]
            $(#[doc = concat!(stringify!($p), ":", $d1)] $(#[doc = $d2])*)*
            $(#[doc = concat!(stringify!($k), ":", $e1)] $(#[doc = $e2])*)*
            /// seed: 64-bit seed of the key hash. secret: 16 bytes, or True to draw them (see take_secret), for a hash
            /// that outsiders cannot predict.
            #[doc = ""]
            $(#[doc = $rest])*
            #[allow(clippy::doc_lazy_continuation)] // what an example prints
            #[pyclass(frozen, module = "fullbloom")]
            pub(crate) struct $Class {
                pub(crate) hasher: KeyHasher,
                pub(crate) lock: BiasedLock<Core>,
                /// The file that it was opened from.
                pub(crate) path: Option<std::path::PathBuf>,
                /// Most bytes of cells that were to be taken from whom it is from.
                pub(crate) max_bytes: u64,
            }

            crate::classes::common::filter_methods!($Class, Core, VARIANT);
            crate::classes::common::open_world_methods!($Class, Core, $when $entry);
            crate::classes::declared::adding!($when $entry $Class Core [$($can)*]);
            $(crate::classes::declared::capability!($can $Class $merging);)*
            crate::classes::merging::taking_in!([$($can)*] $Class $when $entry);
            crate::classes::comparing::comparison!([$($can)*] $Class);

            /// The arguments of the constructor.
            mod arguments {
                crate::classes::declared::readers!($($p: $pt;)* $($k: $kt;)*);

                /// Those that may be missing.
                #[cfg(not(feature = "stubs"))]
                #[allow(dead_code)] // most of them
                pub(super) mod required {
                    $(pub(crate) fn $p(
                        value: crate::classes::declared::Argument<'_>,
                    ) -> pyo3::PyResult<Option<fullbloom_core::parameter_type!($pt)>> {
                        super::$p(value).map(Some)
                    })*
                }
            }

            crate::classes::declared::constructor!(
                $when $entry $Class [$({$p $pt [$($pd)?]})*] [$({$k $kt $kd})*]
            );

            #[pymethods]
            impl $Class {
                $($(#[doc = $shown])*
                #[getter]
                fn $s(&self, py: Python<'_>) -> <$st as FieldValue>::Shown {
                    // Some are counted.
                    FieldValue::shown(self.lock.look(py, |filter| filter.$s()))
                })*
            }
        }
    };
}

/// What the documentation of a class says where calling it makes none: it has no signature then, and help() shows no call.
macro_rules! made {
    (built [key] $Class:ident) => {
        concat!(
            "\nMade by ",
            stringify!($Class),
            ".build(keys, ...), which takes the following; the class is not called.\n"
        )
    };
    (built [key value] $Class:ident) => {
        concat!(
            "\nMade by ",
            stringify!($Class),
            ".build(keys, values, ...), which takes the following; the class is not called.\n"
        )
    };
    ($when:ident $entry:tt $Class:ident) => {
        ""
    };
}

/// How one is made: empty, or of all its keys; of a closed world by methods of its own.
macro_rules! constructor {
    (built [included excluded] $Class:ident $positional:tt $named:tt) => {
        crate::classes::declared::unmade!($Class "(included, excluded)");
    };
    (built [key] $Class:ident $positional:tt $named:tt) => {
        use crate::building::{Given, How};
        crate::building::build_methods!($Class $positional $named);
        crate::classes::declared::unmade!($Class "(keys, ...)");
    };
    (built [key value] $Class:ident $positional:tt $named:tt) => {
        use crate::building::{Given, How};
        crate::building::build_pairs_methods!($Class $positional $named);
        crate::classes::declared::unmade!($Class "(keys, values, ...)");
    };
    (open $entry:tt $Class:ident [$({$p:ident $pt:tt [$($pd:tt)?]})*] [$({$k:ident $kt:tt $kd:tt})*]) => {
        crate::classes::declared::new_method!($Class [$({$p $pt [$($pd)?]})*] [$({$k $kt $kd})*]);
        crate::classes::declared::regenerating!(
            $entry $Class [$({$p [$($pd)?]})*] [$({$k $kd})*]
        );
    };
}

/// The method behind a call of a class.
macro_rules! new_method {
    // The binding refuses a call without a required argument before anybody looks at the keywords, which may be those of
    // another library. So it takes the argument as one that may be missing, and the signature that people read says
    // what is so. A stub is written from the arguments: there it is required.
    ($Class:ident [{$r:ident $rt:tt []} $({$p:ident $pt:tt [$pd:tt]})*] [$({$k:ident $kt:tt $kd:tt})*]) => {
        #[cfg(feature = "stubs")]
        crate::classes::declared::new_method!(@ $Class [{$r $rt []} $({$p $pt [$pd]})*] [$({$k $kt $kd})*]);

        #[cfg(not(feature = "stubs"))]
        impl pyo3::impl_::pyclass::doc::PyClassNewTextSignature for $Class {
            const TEXT_SIGNATURE: &'static str = concat!(
                "(", stringify!($r),
                $(", ", stringify!($p), "=", crate::classes::declared::python!($pd),)*
                ", *",
                $(", ", stringify!($k), "=", crate::classes::declared::python!($kd),)*
                ", seed=0, secret=None, **unknown)"
            );
        }

        #[cfg(not(feature = "stubs"))]
        #[pymethods]
        impl $Class {
            #[new]
            #[pyo3(
                signature = ($r = None, $($p = $pd,)* *, $($k = $kd,)* seed = 0, secret = None, **unknown),
                text_signature = None
            )]
            #[allow(clippy::too_many_arguments)] // the public signature
            fn new(
                py: Python<'_>,
                #[pyo3(from_py_with = arguments::required::$r)] $r: Option<fullbloom_core::parameter_type!($rt)>,
                $(#[pyo3(from_py_with = arguments::$p)] $p: fullbloom_core::parameter_type!($pt),)*
                $(#[pyo3(from_py_with = arguments::$k)] $k: fullbloom_core::parameter_type!($kt),)*
                #[pyo3(from_py_with = params::seed)] seed: u64,
                secret: Option<&Bound<'_, PyAny>>,
                unknown: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<Self> {
                let known = [stringify!($r), $(stringify!($p),)* $(stringify!($k),)* "seed", "secret"];
                crate::keywords::none_unknown(stringify!($Class), unknown, &known)?;
                let Some($r) = $r else {
                    return Err(crate::keywords::missing(py, stringify!($Class), stringify!($r)));
                };
                let hasher = params::hasher(seed, secret)?;
                py.detach(|| Core::construct($r, $($p,)* $($k,)* hasher)).or_raise(py).map(Self::wrap)
            }
        }
    };
    ($Class:ident $positional:tt $named:tt) => {
        crate::classes::declared::new_method!(@ $Class $positional $named);
    };
    (@ $Class:ident [$({$p:ident $pt:tt [$($pd:tt)?]})*] [$({$k:ident $kt:tt $kd:tt})*]) => {
        #[pymethods]
        impl $Class {
            #[new]
            #[pyo3(signature = (
                $($p: $pt $(= $pd)?,)* *, $($k: $kt = $kd,)* seed: "int" = 0,
                secret: "bytes | bool | None" = None, **unknown
            ))]
            #[allow(clippy::too_many_arguments)] // the public signature
            fn new(
                py: Python<'_>,
                $(#[pyo3(from_py_with = arguments::$p)] $p: fullbloom_core::parameter_type!($pt),)*
                $(#[pyo3(from_py_with = arguments::$k)] $k: fullbloom_core::parameter_type!($kt),)*
                #[pyo3(from_py_with = params::seed)] seed: u64,
                secret: Option<&Bound<'_, PyAny>>,
                unknown: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<Self> {
                let known = [$(stringify!($p),)* $(stringify!($k),)* "seed", "secret"];
                crate::keywords::none_unknown(stringify!($Class), unknown, &known)?;
                let hasher = params::hasher(seed, secret)?;
                py.detach(|| Core::construct($($p,)* $($k,)* hasher)).or_raise(py).map(Self::wrap)
            }
        }
    };
}

/// A default as Python writes it.
#[cfg(not(feature = "stubs"))]
macro_rules! python {
    (true) => {
        "True"
    };
    (false) => {
        "False"
    };
    (None) => {
        "None"
    };
    ($literal:literal) => {
        stringify!($literal)
    };
}

/// `regenerate`, where keys come alone: parameters are those that the filter tells, or the defaults.
macro_rules! regenerating {
    ([key value] $($rest:tt)*) => {};
    ($entry:tt $Class:ident [$({$p:ident [$($pd:tt)?]})*] [$({$k:ident $kd:tt})*]) => {
        #[pymethods]
        impl $Class {
            #[doc = concat!(
                "A new ", stringify!($Class), " of `keys`, with the parameters, seed and secret of this one: what to do when more\n",
                "keys came than it was sized for, since a filter does not keep its own to be moved to a larger one.\n",
                "CapacityWarning tells when; as an error it ends the adding (docs/errors.md). Where max_bytes bounded this one, it\n",
                "bounds the new one, whose parameters a file from strangers chose.\n\n",
                "keys: all to hold, as contains_many takes them. capacity, fpr: others than those of this filter; numbers that\n",
                "a constructor chooses unless they are given, as bits of a fingerprint, are chosen for these. Raises what\n",
                "making and update() raise; warns CapacityWarning where the keys are more than capacity. Cost: that of update().")]
            #[pyo3(signature = (keys: "Keys", *, capacity: "int | None" = None, fpr: "float | None" = None) -> "Self")]
            fn regenerate(
                slf: &Bound<'_, Self>,
                keys: &Bound<'_, PyAny>,
                capacity: Option<&Bound<'_, PyAny>>,
                fpr: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Self> {
                let py = slf.py();
                let asked = crate::regenerating::Asked::of(slf.as_any(), Core::PARAMETERS, capacity, fpr)?;
                $(let $p = asked.value(stringify!($p))?;)*
                $(let $k = asked.value(stringify!($k))?;)*
                $(let $p = crate::classes::declared::told!(py, $p [$($pd)?]);)*
                $(let $k = crate::classes::declared::told!(py, $k [$kd]);)*
                let hasher = slf.get().hasher;
                let max_bytes = slf.get().max_bytes;
                let make = || {
                    let mut made = Core::construct($($p,)* $($k,)* hasher)?;
                    crate::files::check_room(&made, max_bytes)?;
                    fullbloom_core::structure::Loadable::bound(&mut made, max_bytes);
                    Ok(made)
                };
                let made = py.detach(make).or_raise(py).map(Self::wrap)?.within(max_bytes);
                made.update(&pyo3::types::PyTuple::new(py, [keys])?, 1)?;
                Ok(made)
            }
        }
    };
}

/// A parameter that the filter tells, or its default.
macro_rules! told {
    ($py:ident, $p:ident []) => {
        match &$p {
            Some(value) => arguments::$p(value)?,
            None => return Err(crate::errors::parameter($py, concat!("the filter does not tell its ", stringify!($p)))),
        }
    };
    ($py:ident, $p:ident [$default:tt]) => {
        match &$p {
            Some(value) => arguments::$p(value)?,
            None => $default,
        }
    };
}

/// The answer to a call of a class that is built: how it is made. The stub has none, so that checkers refuse the call.
macro_rules! unmade {
    ($Class:ident $of:literal) => {
        #[pymethods]
        impl $Class {
            #[new]
            #[pyo3(signature = (*_keys, **_parameters), text_signature = None)]
            fn new(
                py: Python<'_>,
                _keys: &Bound<'_, PyTuple>,
                _parameters: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<Self> {
                let (class, of) = (stringify!($Class), $of);
                let why = format!("{class} is made of all its keys at once and not empty; call {class}.build{of}");
                Err(crate::errors::parameter_type(py, why))
            }
        }
    };
}

/// How keys are added: alone, or with something else, for which the class has methods of its own.
macro_rules! adding {
    (open [key value] $Class:ident $Core:ident $can:tt) => {};
    (open $entry:tt $Class:ident $Core:ident $can:tt) => {
        crate::classes::capabilities::addable_methods!($Class);
        crate::classes::one_key::one_key_methods!($can $can $Class $Core);
    };
    (built [included excluded] $Class:ident $Core:ident $can:tt) => {
        /// What answers for the keys of a closed world alone names the method that does.
        #[cfg(not(feature = "stubs"))]
        #[pymethods]
        impl $Class {
            #[classattr]
            #[pyo3(name = "__contains__")]
            fn absent_contains() -> crate::classes::absent::AbsentMethod {
                crate::classes::absent::AbsentMethod::contains(stringify!($Class))
            }
        }
    };
    (built $entry:tt $Class:ident $Core:ident $can:tt) => {
        crate::classes::capabilities::asked_methods!($Class, $Core);
    };
}

/// The methods of one capability; those that are not here belong to one class.
macro_rules! capability {
    (remove $Class:ident $merging:literal) => {
        crate::classes::capabilities::removable_methods!($Class);
    };
    (delete $Class:ident $merging:literal) => {
        crate::classes::capabilities::removable_methods!($Class);
    };
    (positions $Class:ident $merging:literal) => {
        crate::classes::capabilities::positioned_methods!($Class);
    };
    (count $Class:ident $merging:literal) => {
        crate::classes::capabilities::countable_methods!($Class);
    };
    (estimate $Class:ident $merging:literal) => {
        crate::classes::capabilities::estimating_methods!($Class);
    };
    (merge $Class:ident $merging:literal) => {
        crate::classes::merging::mergeable_methods!($Class, $merging);
    };
    (map $Class:ident $merging:literal) => {
        crate::classes::common::plain_methods!($Class, VARIANT);
    };
    ($own:ident $Class:ident $merging:literal) => {};
}

#[cfg(not(feature = "stubs"))]
pub(crate) use python;
pub(crate) use {adding, capability, class, constructor, made, new_method, readers, regenerating, told, unmade};
