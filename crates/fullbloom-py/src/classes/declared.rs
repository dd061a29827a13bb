//! [`class!`]: the Python class of a structure, from its row in the registry and its declaration in the core.

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

            use crate::classes::shared;
            use crate::errors::OrRaise;
            #[allow(unused_imports)] // of what it can do
            use crate::keys::{batch, ready, scalar};
            #[allow(unused_imports)] // of what it can do
            use crate::{files, operations, parameters};
            use crate::locking::biased_lock::BiasedLock;
            use crate::python_objects::bytes::read_bytes;

            const VARIANT: u16 = fullbloom_core::registry::$ID;

            $(#[doc = $summary])*
            #[doc = concat!(crate::classes::declared::construction!($when $entry $Class))]
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
                /// Most bytes of cells that it may have, from the caller of open().
                pub(crate) max_bytes: u64,
            }

            crate::classes::common::filter_methods!($Class, Core, VARIANT);
            crate::classes::common::open_world_methods!($Class, Core, $when $entry);
            crate::classes::declared::add_methods!($when $entry $Class Core [$($can)*]);
            $(crate::classes::declared::capability!($can $Class $merging);)*
            crate::classes::merging::merge_by!([$($can)*] $Class $when $entry);
            crate::classes::comparing::comparison!([$($can)*] $Class);

            /// The arguments of the constructor.
            mod arguments {
                crate::parameters::readers!($($p: $pt;)* $($k: $kt;)*);

                /// The optional ones.
                #[cfg(not(feature = "stubs"))]
                #[allow(dead_code)] // most of them
                pub(super) mod required {
                    $(pub(crate) fn $p(
                        value: crate::parameters::Argument<'_>,
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
                    FieldValue::to_shown(self.lock.look(py, |filter| filter.$s()))
                })*
            }
        }
    };
}

/// How a class that cannot be called is constructed, for its documentation: it has no signature, and help() shows no call.
macro_rules! construction {
    (built [key] $Class:ident) => {
        concat!(
            "\nConstructed by ",
            stringify!($Class),
            ".build(keys, ...), which takes the following; the class is not called.\n"
        )
    };
    (built [key value] $Class:ident) => {
        concat!(
            "\nConstructed by ",
            stringify!($Class),
            ".build(keys, values, ...), which takes the following; the class is not called.\n"
        )
    };
    ($when:ident $entry:tt $Class:ident) => {
        ""
    };
}

/// How a filter is constructed: empty, or from all its keys; from a closed world by methods of its own.
macro_rules! constructor {
    (built [included excluded] $Class:ident $positional:tt $named:tt) => {
        crate::classes::declared::refuse_call!($Class "(included, excluded)");
    };
    (built [key] $Class:ident $positional:tt $named:tt) => {
        use crate::build::{BuildOptions, KeySource};
        crate::build::methods::build_methods!($Class $positional $named);
        crate::classes::declared::refuse_call!($Class "(keys, ...)");
    };
    (built [key value] $Class:ident $positional:tt $named:tt) => {
        use crate::build::{BuildOptions, KeySource};
        crate::build::methods::build_pairs_methods!($Class $positional $named);
        crate::classes::declared::refuse_call!($Class "(keys, values, ...)");
    };
    (open $entry:tt $Class:ident [$({$p:ident $pt:tt [$($pd:tt)?]})*] [$({$k:ident $kt:tt $kd:tt})*]) => {
        crate::classes::declared::new_method!($Class [$({$p $pt [$($pd)?]})*] [$({$k $kt $kd})*]);
        crate::classes::declared::regenerate_method!(
            $entry $Class [$({$p [$($pd)?]})*] [$({$k $kd})*]
        );
    };
}

/// The method behind a call of a class.
macro_rules! new_method {
    // The binding refuses a call without a required argument before it passes on the keywords, which may be those of
    // another library. So the argument is optional here, and the signature that people read says that it is required, as
    // does the stub, which is written from the arguments.
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
                #[pyo3(from_py_with = parameters::seed)] seed: u64,
                secret: Option<&Bound<'_, PyAny>>,
                unknown: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<Self> {
                let known = [stringify!($r), $(stringify!($p),)* $(stringify!($k),)* "seed", "secret"];
                crate::parameters::refuse_unknown(stringify!($Class), unknown, &known)?;
                let Some($r) = $r else {
                    return Err(crate::parameters::missing_argument(py, stringify!($Class), stringify!($r)));
                };
                let hasher = parameters::create_hasher(seed, secret)?;
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
                #[pyo3(from_py_with = parameters::seed)] seed: u64,
                secret: Option<&Bound<'_, PyAny>>,
                unknown: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<Self> {
                let known = [$(stringify!($p),)* $(stringify!($k),)* "seed", "secret"];
                crate::parameters::refuse_unknown(stringify!($Class), unknown, &known)?;
                let hasher = parameters::create_hasher(seed, secret)?;
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

/// `regenerate`, if keys are added alone: parameters are those of the filter, or the defaults.
macro_rules! regenerate_method {
    ([key value] $($rest:tt)*) => {};
    ($entry:tt $Class:ident [$({$p:ident [$($pd:tt)?]})*] [$({$k:ident $kd:tt})*]) => {
        #[pymethods]
        impl $Class {
            #[doc = concat!(
                "A new ", stringify!($Class), " of `keys`, with the parameters, seed and secret of this one: call it when more keys\n",
                "were added than it was sized for, since a filter does not store keys that could be moved to a larger one.\n",
                "CapacityWarning reports when; as an error it stops the adding (docs/errors.md). If max_bytes bounded this one, it\n",
                "also bounds the new one, because an untrusted file chose the parameters.\n\n",
                "keys: all keys to add, as contains_many takes them. capacity, fpr: if they differ from those of this filter;\n",
                "numbers that a constructor chooses by default, such as bits of a fingerprint, are chosen for these. Raises what\n",
                "the constructor and update() raise; warns CapacityWarning if there are more keys than capacity. Cost: that of\n",
                "update().")]
            #[pyo3(signature = (keys: "Keys", *, capacity: "int | None" = None, fpr: "float | None" = None) -> "Self")]
            fn regenerate(
                slf: &Bound<'_, Self>,
                keys: &Bound<'_, PyAny>,
                capacity: Option<&Bound<'_, PyAny>>,
                fpr: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Self> {
                let py = slf.py();
                let parameters = crate::build::regenerate::NewParameters::read(slf.as_any(), Core::PARAMETERS, capacity, fpr)?;
                $(let $p = parameters.value(stringify!($p))?;)*
                $(let $k = parameters.value(stringify!($k))?;)*
                $(let $p = crate::classes::declared::value_or_default!(py, $p [$($pd)?]);)*
                $(let $k = crate::classes::declared::value_or_default!(py, $k [$kd]);)*
                let hasher = slf.get().hasher;
                let max_bytes = slf.get().max_bytes;
                let create = || {
                    let mut filter = Core::construct($($p,)* $($k,)* hasher)?;
                    crate::files::check_size(&filter, max_bytes)?;
                    fullbloom_core::structure::Loadable::bound(&mut filter, max_bytes);
                    Ok(filter)
                };
                let filter = py.detach(create).or_raise(py).map(Self::wrap)?.with_limit(max_bytes);
                filter.update(&pyo3::types::PyTuple::new(py, [keys])?, 1)?;
                Ok(filter)
            }
        }
    };
}

/// The value of a parameter in the filter, or its default.
macro_rules! value_or_default {
    ($py:ident, $p:ident []) => {
        match &$p {
            Some(value) => arguments::$p(value)?,
            None => {
                return Err(crate::errors::parameter($py, concat!("the filter does not record its ", stringify!($p))))
            }
        }
    };
    ($py:ident, $p:ident [$default:tt]) => {
        match &$p {
            Some(value) => arguments::$p(value)?,
            None => $default,
        }
    };
}

/// The error for a call of a class that is built: how to construct it. The stub has no such method, so that type checkers
/// refuse the call.
macro_rules! refuse_call {
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
                let why = format!("{class} is built from all its keys at once; call {class}.build{of}");
                Err(crate::errors::parameter_type(py, why))
            }
        }
    };
}

/// Methods that add keys: alone, or with a value, for which the class has methods of its own.
macro_rules! add_methods {
    (open [key value] $Class:ident $Core:ident $can:tt) => {};
    (open $entry:tt $Class:ident $Core:ident $can:tt) => {
        crate::classes::capabilities::addable_methods!($Class);
        crate::classes::one_key::one_key_methods!($can $can $Class $Core);
    };
    (built [included excluded] $Class:ident $Core:ident $can:tt) => {
        /// A class that answers only for the keys of a closed world names the method that does.
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
        crate::classes::capabilities::lookup_methods!($Class, $Core);
    };
}

/// The methods of one capability; capabilities that are not here belong to one class.
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
    (bits $Class:ident $merging:literal) => {
        crate::classes::capabilities::celled_methods!($Class);
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
pub(crate) use {
    add_methods, capability, class, construction, constructor, new_method, refuse_call, regenerate_method,
    value_or_default,
};
