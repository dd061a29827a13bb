//! The constructors of a class of structures that are built, from the declaration of its parameters.

/// `build`, from keys, and `build_hashed`, from hashes.
macro_rules! build_methods {
    ($Class:ident $positional:tt $named:tt) => {
        crate::build::methods::build_method!(
            [concat!(
                "The ", stringify!($Class), " of many keys; takes what contains_many takes, skips nulls.\n\n",
                "threads: how many may be used; the GIL is released. progress: called with (done, total) now and then; an\n",
                "exception from it ends the work, as Ctrl-C does. memory: bytes that collecting and building may take; keys beyond\n",
                "it are in a nameless file in the folder for temporary files. The class documents the rest.")]
            $Class build Keys(keys: "Keys", secret: "bytes | bool | None") build [] $positional $named
        );
        crate::build::methods::build_method!(
            ["As build, of ready 64-bit hashes: what hash_many returns with the same seed and secret."]
            $Class build_hashed Hashes(hashes: "Hashes", secret: "bytes | None") build [] $positional $named
        );
    };
}

/// [`build_methods!`] of a class whose keys come with values.
macro_rules! build_pairs_methods {
    ($Class:ident [] $named:tt) => {
        crate::build::methods::build_method!(
            [concat!(
                "The ", stringify!($Class), " of many keys and as many values, or one for all.\n\n",
                "keys: what contains_many takes; nulls are refused. values: whole numbers in any container; left out if keys is\n",
                "a mapping. threads: how many may be used; the GIL is released. progress: called with (done, total) now and\n",
                "then; an exception from it ends the work, as Ctrl-C does. memory: bytes that collecting and building may take;\n",
                "pairs beyond it are in a nameless file in the folder for temporary files. The class documents the rest.")]
            $Class build Keys(keys: "Keys", secret: "bytes | bool | None") build_pairs
            [values: "Numbers | None" = None] [] $named
        );
        crate::build::methods::build_method!(
            ["As build, of ready 64-bit hashes: what hash_many returns with the same seed and secret."]
            $Class build_hashed Hashes(hashes: "Hashes", secret: "bytes | None") build_pairs
            [values: "Numbers"] [] $named
        );
    };
}

/// A constructor: its documentation and name, the types of its keys and secret, the method of `BuildOptions` that it calls,
/// and its values if it has any.
macro_rules! build_method {
    ([$($doc:tt)*] $Class:ident $name:ident $Source:ident($keys:ident: $Keys:literal, $secret:ident: $Secret:literal)
        $build:ident [$($values:ident: $Values:literal $(= $none:tt)?)?]
        [$({$p:ident $pt:tt [$($pd:tt)?]})*] [$({$k:ident $kt:tt $kd:tt})*]
    ) => {
        #[pymethods]
        impl $Class {
            #[doc = $($doc)*]
            #[staticmethod]
            #[pyo3(signature = (
                $keys: $Keys, $($values: $Values $(= $none)?,)? $($p: $pt $(= $pd)?,)* *, $($k: $kt = $kd,)*
                seed: "int" = 0, $secret: $Secret = None, threads: "int" = 1,
                progress: "Callable[[int, int], object] | None" = None, memory: "int | None" = None
            ))]
            #[allow(clippy::too_many_arguments)] // the public signature
            fn $name(
                $keys: &Bound<'_, PyAny>,
                $($values: Option<&Bound<'_, PyAny>>,)?
                $(#[pyo3(from_py_with = arguments::$p)] $p: fullbloom_core::parameter_type!($pt),)*
                $(#[pyo3(from_py_with = arguments::$k)] $k: fullbloom_core::parameter_type!($kt),)*
                #[pyo3(from_py_with = parameters::seed)] seed: u64,
                $secret: Option<&Bound<'_, PyAny>>,
                #[pyo3(from_py_with = parameters::threads)] threads: usize,
                progress: Option<&Bound<'_, PyAny>>,
                memory: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Self> {
                let source = KeySource::$Source($keys);
                let hasher = source.read_hasher(seed, $secret)?;
                let options = BuildOptions::read(threads, progress, memory)?;
                options.$build(&hasher, source, $($values,)? |keys, job| {
                    Core::build(keys, $($p,)* $($k,)* hasher, job)
                }).map(Self::wrap)
            }
        }
    };
}

pub(crate) use {build_method, build_methods, build_pairs_methods};
