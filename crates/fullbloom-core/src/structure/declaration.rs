//! [`structure!`]: parameters, fields and documentation of a structure, declared once, beside its code.
//!
//! ```text
//! structure! {
//!     /// First paragraph of the class documentation.
//!     class StableBloomFilter;
//!     parameters {
//!         /// half-life of a key, in keys.
//!         capacity: "int";
//!         /// rate of false positives in the long run.
//!         fpr: "float" = 0.01;
//!         *;
//!         /// 1, 2, 4 or 8.
//!         cell_bits: "int" = 2;
//!     }
//!     /// The rest of the class documentation: guarantee, errors, cost, source, example.
//!     fields {
//!         /// Cells of a key, K.
//!         pub num_hashes: u32 = |f| f.shape.num_hashes, NUM_HASHES merged;
//!     }
//! }
//! ```
//!
//! `parameters` are those of the constructor, with Python's types (an "int" is an integer of at least 1); `seed` and
//! `secret` are added automatically. `fields` are those besides its [`Load`](super::load::Load), each as an expression of
//! the filter: a `pub` field is an attribute and part of `info()`; one with a tag is part of files, in this order; a
//! `merged` one must be equal in two structures that are combined.
//!
//! `construct` creates a structure from the parameters and a hasher, `cell_bytes` returns its size.
//!
//! The macro generates, in this crate, [`Declared`], the attributes as methods, `for_capacity` with default texts, and
//! `Stored`, the fields of a file; a macro with the structure's name passes the declaration to other crates.

pub use super::values::FieldValue;
pub(crate) use super::values::names;

use std::fmt::Display;

use super::cell_stats::CellStats;
use super::traits::{Filter, Options};
use super::values::Value;
use crate::container::Header;
use crate::error::{Error, Result};
use crate::key::KeyHasher;

/// The attribute of this name among those that a count determined.
#[inline(never)] // as large as the rest of an attribute
pub fn find_counted(counted: &[(&'static str, Value)], name: &str) -> Option<Value> {
    counted.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
}

/// A parameter of a constructor.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its type, as Python's annotations say it.
    pub python: &'static str,
    /// Its default as a literal of Rust; `None` for a required parameter.
    pub default: Option<&'static str>,
}

/// A structure with a declaration.
pub trait Declared: Filter {
    /// The Python class.
    const CLASS: &'static str;
    /// Parameters of the constructor except seed and secret.
    const PARAMETERS: &'static [Parameter];
    /// Number of fields in files.
    const STORED: usize;

    /// The attributes of the class, in order of interest. Those in `counted` are not counted again.
    fn attributes_with(&self, counted: &[(&'static str, Value)]) -> Vec<(&'static str, Value)>;
    /// [`Declared::attributes_with`], all of them counted.
    fn attributes(&self) -> Vec<(&'static str, Value)> {
        self.attributes_with(&[])
    }
    /// One of [`Declared::attributes`], without computing the others.
    fn attribute(&self, name: &str) -> Option<Value>;
    /// Writes the fields that files contain.
    fn describe(&self, header: &mut Header);
    /// The differences that keep two structures from being combined.
    fn differences(&self, other: &Self) -> Differences;

    /// Everything worth knowing, in order of interest. Counts the cells.
    fn info(&self) -> Vec<(&'static str, Value)> {
        self.info_with(self.cell_stats())
    }

    /// [`Declared::info`] with what a count of the cells said.
    fn info_with(&self, cells: CellStats) -> Vec<(&'static str, Value)> {
        let mut info = vec![
            ("capacity", Value::Number(self.capacity())),
            ("target_fpr", Value::Real(self.target_fpr())),
            ("num_added", Value::Number(self.num_added())),
        ];
        if let Some((items, sd)) = cells.estimated {
            info.extend([("approx_count", Value::Real(items)), ("approx_count_sd", Value::Real(sd))]);
        }
        info.push(("fpr", Value::Real(cells.fpr)));
        let missed = find_counted(&cells.counted, "fnr");
        info.extend(missed.or_else(|| self.estimate_missed().map(Value::Real)).map(|share| ("fnr", share)));
        info.push(("fill", Value::Real(cells.fill)));
        let attributes = self.attributes_with(&cells.counted);
        info.extend(attributes.into_iter().filter(|(_, value)| *value != Value::Nothing));
        info.extend([
            ("seed", Value::Number(self.hasher().seed())),
            ("keyed", Value::Flag(self.hasher().is_keyed())),
            ("key_domains", Value::Text(self.hasher().domains().to_string())),
            ("nbytes", Value::Number(self.nbytes())),
        ]);
        info
    }

    /// Refuses a file with other parameters than the structure's; `beside` is the number of those that are not declared
    /// fields, such as those of a load.
    fn check_header(header: &Header, beside: usize, scheme: u16) -> Result<()> {
        if header.params.len() != beside + Self::STORED + header.hasher_params() {
            return Err(Error::Format(format!("the file holds parameters that no {} has; it is damaged", Self::CLASS)));
        }
        if header.scheme != scheme {
            return Err(Error::Format(format!(
                "the file names a scheme that a {} does not use; use a newer release",
                Self::CLASS
            )));
        }
        Ok(())
    }
}

/// A number below 2^32 by the structure's own bound, as 32 bits; saturates.
pub fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The choice of this name, or `None` for "auto".
pub fn choice<T: Copy>(parameter: &str, name: &str, names: &[(T, &str)]) -> Result<Option<T>> {
    if name == "auto" {
        return Ok(None);
    }
    let found = names.iter().find(|(_, known)| *known == name).map(|(choice, _)| Some(*choice));
    found.ok_or_else(|| {
        let known: Vec<&str> = ["auto"].into_iter().chain(names.iter().map(|(_, name)| *name)).collect();
        let (last, others) = known.split_last().map_or(("", known.as_slice()), |(last, others)| (*last, others));
        Error::Parameter(format!("{parameter} must be {} or {last}, got {name:?}", others.join(", ")))
    })
}

/// The choice of this name.
pub fn one_of<T: Copy>(parameter: &str, name: &str, names: &[(T, &str)]) -> Result<T> {
    let found = names.iter().find(|(_, known)| *known == name).map(|(choice, _)| *choice);
    found.ok_or_else(|| {
        let known: Vec<&str> = names.iter().map(|(_, name)| *name).collect();
        Error::Parameter(format!("{parameter} must be one of {}, got {name:?}", known.join(", ")))
    })
}

/// The text of the option `name`, or its default.
pub fn find_choice<'a>(options: Options<'a>, name: &str, default: &'a str) -> &'a str {
    options.iter().find(|(option, _)| *option == name).map_or(default, |(_, text)| text)
}

/// The value of a parameter that has a default: a text may be among the options.
macro_rules! option {
    ($options:ident $name:ident "str" $default:literal) => {
        $crate::structure::declaration::find_choice($options, stringify!($name), $default)
    };
    ($options:ident $name:ident $type:tt $default:tt) => {
        $default
    };
}

/// [`Sizable`](super::Sizable) by `construct` and `cell_bytes`; a structure without a rate accepts any. One without a
/// capacity is [`Built`](super::Built), of pairs if even the rate is named; one without either is built of a closed
/// world.
macro_rules! sizable {
    ($Class:ident [{$p:ident "int"}] $named:tt) => {
        $crate::structure::declaration::sizable! { @ $Class [capacity] [capacity fpr] $named }
    };
    ($Class:ident [{$p:ident "int"} {$q:ident "float"}] $named:tt) => {
        $crate::structure::declaration::sizable! { @ $Class [capacity fpr] [capacity fpr] $named }
    };
    ($Class:ident [{$q:ident "float | None"}] $named:tt) => {
        $crate::structure::declaration::sizable! { @built $Class 1 $named }
    };
    ($Class:ident [] [{$q:ident "float | None" None} $($named:tt)*]) => {
        $crate::structure::declaration::sizable! { @built $Class 2 [$($named)*] }
    };
    ($Class:ident [] $named:tt) => {};
    (@built $Class:ident $words:literal [$({$k:ident $kt:tt $kd:tt})*]) => {
        impl $crate::structure::Built for $Class {
            type Keys = $crate::structure::records::RecordSet<$words>;

            fn of_keys(
                keys: &Self::Keys,
                fpr: f64,
                hasher: $crate::key::KeyHasher,
                job: &$crate::structure::Job<'_>,
            ) -> $crate::Result<Self> {
                Self::build(keys, Some(fpr), $($kd,)* hasher, job)
            }
        }

        impl $crate::structure::Planned for $Class {
            fn nbytes_for(capacity: u64, fpr: f64, _: $crate::structure::Options<'_>) -> $crate::Result<u64> {
                Self::cell_bytes(capacity, Some(fpr), $($kd),*)
            }
        }
    };
    (@ $Class:ident [$($p:ident)*] [$capacity:ident $fpr:ident] [$({$k:ident $kt:tt $kd:tt})*]) => {
        impl $crate::structure::Sizable for $Class {
            fn for_capacity(
                $capacity: u64,
                $fpr: f64,
                options: $crate::structure::Options<'_>,
                hasher: $crate::key::KeyHasher,
            ) -> $crate::Result<Self> {
                let _ = ($crate::sizing::check_fpr($fpr)?, options); // where there is no rate, no text to choose
                Self::construct($($p,)* $($crate::structure::declaration::option!(options $k $kt $kd),)* hasher)
            }
        }

        impl $crate::structure::Planned for $Class {
            fn nbytes_for($capacity: u64, $fpr: f64, options: $crate::structure::Options<'_>) -> $crate::Result<u64> {
                let _ = ($crate::sizing::check_fpr($fpr)?, options);
                Self::cell_bytes($($p,)* $($crate::structure::declaration::option!(options $k $kt $kd)),*)
            }
        }
    };
}

/// The Rust type of a parameter of this Python type.
#[macro_export]
macro_rules! parameter_type {
    ("int") => { u64 };
    ("float") => { f64 };
    ("bool") => { bool };
    ("str") => { &str };
    ("int | None") => { Option<u64> };
    ("float | None") => { Option<f64> };
    ("str | None") => { Option<&str> };
}

/// See the head of this file.
macro_rules! structure {
    ($(#[doc = $summary:tt])* class $Class:ident; $($rest:tt)*) => {
        $crate::structure::declaration::declared! { @parameters [($) $Class [$($summary)*]] $($rest)* }
    };
}

/// The parts of [`structure!`], one after the other.
macro_rules! declared {
    (@parameters [$($head:tt)*]
        parameters {
            $(#[doc = $d1:tt] $(#[doc = $d2:tt])* $p:ident: $pt:tt $(= $pd:tt)?;)*
            $(*; $(#[doc = $e1:tt] $(#[doc = $e2:tt])* $k:ident: $kt:tt = $kd:tt;)*)?
        }
        $(#[doc = $rest:tt])*
        fields { $($fields:tt)* }
    ) => {
        $crate::structure::declaration::declared! { @field
            [$($head)*
             [$({[$d1 $($d2)*] $p $pt [$($pd)?]})*]
             [$($({[$e1 $($e2)*] $k $kt $kd})*)?]
             [$($rest)*]]
            [] [] [] $($fields)*
        }
    };
    (@parameters [($dollar:tt) $Class:ident $($head:tt)*] $($wrong:tt)*) => {
        compile_error!(concat!(
            stringify!($Class), ": parameters, the rest of its documentation and fields are wanted, each parameter with \
             a line of documentation, a type and a default, before: ", stringify!($($wrong)*)
        ));
    };
    // Fields are sorted into those shown, stored and merged.
    (@field $head:tt [$($shown:tt)*] [$($stored:tt)*] [$($merged:tt)*]
        $(#[doc = $d:tt])+ pub $f:ident: $t:ty = $get:expr, $TAG:ident merged; $($more:tt)*
    ) => {
        $crate::structure::declaration::declared! { @field $head
            [$($shown)* {[$($d)+] $f ($t) ($get)}] [$($stored)* {[$($d)+] $f ($t) ($get) $TAG}]
            [$($merged)* {$f ($t) ($get)}] $($more)* }
    };
    (@field $head:tt [$($shown:tt)*] [$($stored:tt)*] $merged:tt
        $(#[doc = $d:tt])+ pub $f:ident: $t:ty = $get:expr, $TAG:ident; $($more:tt)*
    ) => {
        $crate::structure::declaration::declared! { @field $head
            [$($shown)* {[$($d)+] $f ($t) ($get)}] [$($stored)* {[$($d)+] $f ($t) ($get) $TAG}] $merged $($more)* }
    };
    (@field $head:tt [$($shown:tt)*] $stored:tt $merged:tt
        $(#[doc = $d:tt])+ pub $f:ident: $t:ty = $get:expr; $($more:tt)*
    ) => {
        $crate::structure::declaration::declared! { @field $head
            [$($shown)* {[$($d)+] $f ($t) ($get)}] $stored $merged $($more)* }
    };
    (@field $head:tt $shown:tt [$($stored:tt)*] [$($merged:tt)*]
        $(#[doc = $d:tt])+ $f:ident: $t:ty = $get:expr, $TAG:ident merged; $($more:tt)*
    ) => {
        $crate::structure::declaration::declared! { @field $head $shown
            [$($stored)* {[$($d)+] $f ($t) ($get) $TAG}] [$($merged)* {$f ($t) ($get)}] $($more)* }
    };
    (@field $head:tt $shown:tt [$($stored:tt)*] $merged:tt
        $(#[doc = $d:tt])+ $f:ident: $t:ty = $get:expr, $TAG:ident; $($more:tt)*
    ) => {
        $crate::structure::declaration::declared! { @field $head $shown
            [$($stored)* {[$($d)+] $f ($t) ($get) $TAG}] $merged $($more)* }
    };
    (@field [($dollar:tt) $Class:ident $($head:tt)*] $shown:tt $stored:tt $merged:tt $wrong:tt $($more:tt)+) => {
        compile_error!(concat!(
            stringify!($Class), ": a field is a line of documentation, a name, a type, an expression, and one of `pub` \
             and a tag, before: ", stringify!($wrong $($more)+)
        ));
    };
    (@field
        [($dollar:tt) $Class:ident [$($summary:tt)*]
            [$({[$d1:tt $($d2:tt)*] $p:ident $pt:tt [$($pd:tt)?]})*]
            [$({[$e1:tt $($e2:tt)*] $k:ident $kt:tt $kd:tt})*]
            [$($rest:tt)*]]
        [$({[$sd1:tt $($sd2:tt)*] $s:ident ($st:ty) ($sget:expr)})*]
        [$({[$fd1:tt $($fd2:tt)*] $f:ident ($ft:ty) ($fget:expr) $TAG:ident})*]
        [$({$m:ident ($mt:ty) ($mget:expr)})*]
    ) => {
        impl $Class {
            $(#[doc = $sd1] $(#[doc = $sd2])*
            #[inline]
            pub fn $s(&self) -> $st {
                let get: fn(&Self) -> $st = $sget;
                get(self)
            })*
        }

        $crate::structure::declaration::sizable! { $Class [$({$p $pt})*] [$({$k $kt $kd})*] }

        impl $crate::structure::declaration::Declared for $Class {
            const CLASS: &'static str = stringify!($Class);
            const PARAMETERS: &'static [$crate::structure::declaration::Parameter] = &[
                $($crate::structure::declaration::Parameter {
                    name: stringify!($p), python: $pt,
                    default: { let given: &[&str] = &[$(stringify!($pd))?]; if given.is_empty() { None } else { Some(given[0]) } },
                },)*
                $($crate::structure::declaration::Parameter {
                    name: stringify!($k), python: $kt, default: Some(stringify!($kd)),
                },)*
            ];
            const STORED: usize = <[&str]>::len(&[$(stringify!($f)),*]);

            fn attributes_with(
                &self,
                counted: &[(&'static str, $crate::structure::Value)],
            ) -> Vec<(&'static str, $crate::structure::Value)> {
                vec![$((stringify!($s), match $crate::structure::declaration::find_counted(counted, stringify!($s)) {
                    Some(value) => value,
                    None => $crate::structure::declaration::FieldValue::value(self.$s()),
                }),)*]
            }

            fn attribute(&self, name: &str) -> Option<$crate::structure::Value> {
                match name {
                    $(stringify!($s) => Some($crate::structure::declaration::FieldValue::value(self.$s())),)*
                    _ => None,
                }
            }

            fn describe(&self, header: &mut $crate::container::Header) {
                let _ = &header; // where nothing is stored
                $({
                    let get: fn(&Self) -> $ft = $fget;
                    let bits = $crate::structure::declaration::FieldValue::to_file(get(self));
                    header.set($crate::container::tag::$TAG, 0, bits);
                })*
            }

            fn differences(&self, other: &Self) -> $crate::structure::declaration::Differences {
                use $crate::structure::Filter;
                let differences = $crate::structure::declaration::Differences::of(self.hasher(), other.hasher());
                $(let differences = {
                    let get: fn(&Self) -> $mt = $mget;
                    let shown = |f| $crate::structure::declaration::FieldValue::to_shown(get(f));
                    differences.field(stringify!($m), shown(self), shown(other))
                };)*
                differences
            }
        }

        /// The declared fields of a file.
        #[allow(dead_code, reason = "some are only checked")]
        struct Stored {
            $($f: $ft,)*
        }

        #[allow(dead_code, reason = "not all have a load")]
        impl Stored {
            /// Checks that the header holds the fields and a [`Load`](crate::structure::load::Load), and reads both.
            fn with_load(header: &$crate::container::Header, scheme: u16) -> $crate::Result<(Self, $crate::structure::load::Load)> {
                use $crate::structure::{Declared, load};
                $Class::check_header(header, load::PARAMS, scheme)?;
                Ok((Self::read(header)?, load::Load::restore(header, 0)?))
            }

            /// Reads all fields; the structure checks whether they are consistent.
            fn read(header: &$crate::container::Header) -> $crate::Result<Self> {
                let _ = &header;
                Ok(Stored {
                    $($f: <$ft as $crate::structure::declaration::FieldValue>::from_file(
                        header.get($crate::container::tag::$TAG, 0)?)?,)*
                })
            }
        }

        const _: () = {
            /// A tag that is used twice is an error here, which names it.
            #[allow(dead_code, non_camel_case_types, clippy::upper_case_acronyms)]
            #[repr(u16)]
            enum Tags { Nothing = 0, $($TAG = $crate::container::tag::$TAG,)* }
        };

        #[doc(hidden)]
        #[macro_export]
        macro_rules! $Class {
            ($dollar($dollar do:ident)::+ ! $dollar with:tt) => {
                $dollar($dollar do)::+ ! { $dollar with $Class
                    [$($summary)*]
                    [$({[$d1 $($d2)*] $p $pt [$($pd)?]})*]
                    [$({[$e1 $($e2)*] $k $kt $kd})*]
                    [$($rest)*]
                    [$({[$sd1 $($sd2)*] $s ($st)})*]
                }
            };
        }
    };
}

pub(crate) use {declared, option, sizable, structure};

/// The fields in which two structures differ and may not.
#[derive(Default)]
pub struct Differences(Vec<String>);

impl Differences {
    /// Starts with the hash: function, seed and secret must be the same.
    pub fn of(a: &KeyHasher, b: &KeyHasher) -> Self {
        let differences = Differences::default().field("seed", a.seed(), b.seed());
        let mut differences = differences.field("hash", a.base().name(), b.base().name());
        if a.secret_fingerprint() != b.secret_fingerprint() {
            differences.0.push("secret".into());
        }
        differences
    }

    /// Compares one field.
    pub fn field<T: PartialEq + Display>(mut self, name: &str, a: T, b: T) -> Self {
        if a != b {
            self.0.push(format!("{name} ({a} and {b})"));
        }
        self
    }

    /// An error that names the differences, if there are any.
    pub fn check(self) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(Error::Incompatible(format!(
            "the filters differ in {}; build both with the same parameters, seed and secret",
            self.0.join(", ")
        )))
    }
}
