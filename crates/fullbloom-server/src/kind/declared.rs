//! Implements [`Kind`] for each row of the registry, from its declaration: parameters by name, and the operations of
//! its capabilities.

use fullbloom_core::container::file::OpenFile;
use fullbloom_core::container::{ContainerIndex, Verify};
use fullbloom_core::key::KeyHasher;
use fullbloom_core::structure::opening::OpenOptions;
use std::path::Path;

use super::rows::registry_row;
use super::spec::Spec;
use super::traits::Kind;
use crate::fault::{Fault, Result};

/// A parameter given as a text.
trait Parameter<'a>: Sized {
    fn read(name: &str, text: &'a str) -> Result<Self>;
}

impl<'a> Parameter<'a> for u64 {
    fn read(name: &str, text: &'a str) -> Result<Self> {
        let wrong = || Fault::invalid(format!("{name} must be a whole number of at least 1, got {text:?}"));
        text.parse().ok().filter(|&n| n > 0).ok_or_else(wrong)
    }
}

impl<'a> Parameter<'a> for f64 {
    fn read(name: &str, text: &'a str) -> Result<Self> {
        text.parse().map_err(|_| Fault::invalid(format!("{name} must be a number, got {text:?}")))
    }
}

impl<'a> Parameter<'a> for bool {
    fn read(name: &str, text: &'a str) -> Result<Self> {
        match text {
            "true" | "1" | "yes" => Ok(true),
            "false" | "0" | "no" => Ok(false),
            _ => Err(Fault::invalid(format!("{name} must be true or false, got {text:?}"))),
        }
    }
}

impl<'a> Parameter<'a> for &'a str {
    fn read(_: &str, text: &'a str) -> Result<Self> {
        Ok(text)
    }
}

impl<'a, T: Parameter<'a>> Parameter<'a> for Option<T> {
    fn read(name: &str, text: &'a str) -> Result<Self> {
        if text == "none" { Ok(None) } else { T::read(name, text).map(Some) }
    }
}

/// Parses the text of a parameter, or takes its default. A parameter without a default is required.
macro_rules! parse_parameter {
    ($spec:ident $name:ident) => {
        match $spec.option(stringify!($name)) {
            Some(text) => Parameter::read(stringify!($name), text)?,
            None => {
                return Err(Fault::invalid(concat!(stringify!($name), " is missing; give ", stringify!($name), "=...")))
            }
        }
    };
    ($spec:ident $name:ident $default:tt) => {
        match $spec.option(stringify!($name)) {
            Some(text) => Parameter::read(stringify!($name), text)?,
            None => $default,
        }
    };
}

/// A constructor from texts, and the bytes that its filter would take. A static structure has neither.
macro_rules! constructor {
    (built $Class:ident $positional:tt $named:tt) => {
        pub(super) fn create(_: &Spec, _: KeyHasher) -> Result<Box<dyn Kind>> {
            Err(Fault::new(crate::fault::Code::Unsupported, concat!(
                "a ", stringify!($Class), " is built from all its keys at once: build it in a process, then send its file"
            )))
        }

        pub(super) fn nbytes(_: &Spec) -> Result<u64> {
            Ok(0)
        }
    };
    (open $Class:ident
        [$({$pdoc:tt $p:ident $pt:tt [$($pd:tt)?]})*] [$({$kdoc:tt $k:ident $kt:tt $kd:tt})*]
    ) => {
        const NAMES: &[&str] = &[$(stringify!($p),)* $(stringify!($k),)*];

        pub(super) fn create(spec: &Spec, hasher: KeyHasher) -> Result<Box<dyn Kind>> {
            spec.check_names(stringify!($Class), NAMES)?;
            spec.check()?;
            $(let $p: fullbloom_core::parameter_type!($pt) = parse_parameter!(spec $p $($pd)?);)*
            $(let $k: fullbloom_core::parameter_type!($kt) = parse_parameter!(spec $k $kd);)*
            Ok(Box::new(Core::construct($($p,)* $($k,)* hasher)?))
        }

        pub(super) fn nbytes(spec: &Spec) -> Result<u64> {
            spec.check_names(stringify!($Class), NAMES)?;
            spec.check()?;
            $(let $p: fullbloom_core::parameter_type!($pt) = parse_parameter!(spec $p $($pd)?);)*
            $(let $k: fullbloom_core::parameter_type!($kt) = parse_parameter!(spec $k $kd);)*
            Ok(constructor!(@bytes $($p)*)($($p,)* $($k,)*)?)
        }
    };
    // A growing filter starts small.
    (@bytes initial_capacity $($p:ident)*) => { Core::first_stage_bytes };
    (@bytes $($p:ident)*) => { Core::cell_bytes };
}

/// The methods of one capability. A capability without a method in the trait adds nothing.
macro_rules! capability {
    (remove) => {
        fn remove(&mut self, hashes: &[u64], removed: Option<&mut [u8]>) -> Result<()> {
            Ok(Removable::remove_hashes(self, hashes, removed)?)
        }
    };
    (delete) => {
        capability!(remove);
    };
    (count) => {
        fn count(&self, hashes: &[u64], counts: &mut [u64]) -> Result<()> {
            Countable::count_hashes(self, hashes, counts);
            Ok(())
        }
    };
    (positions) => {
        fn positions(&self, hash: u64) -> Result<Vec<u64>> {
            Ok(Positioned::positions(self, hash))
        }
    };
    (merge) => {
        fn merge(&mut self, other: &dyn Kind) -> Result<()> {
            match other.as_any().downcast_ref::<Self>() {
                Some(other) => Ok(Mergeable::take_in(self, other)?),
                None => Err(Fault::new(
                    crate::fault::Code::Incompatible,
                    format!("a {} cannot be merged with a {}", self.variant().class, other.variant().class),
                )),
            }
        }
    };
    ($other:ident) => {};
}

macro_rules! kind {
    ({ $ID:ident $module:ident $family:ident $when:ident [$($can:ident)*] }
        $Class:ident $summary:tt $positional:tt $named:tt $rest:tt $shown:tt
    ) => {
        mod $module {
            use fullbloom_core::$family::$Class as Core;
            use fullbloom_core::container::Container;
            use fullbloom_core::entries::Entries;
            use fullbloom_core::key::{KeyDomains, KeyHasher};
            use fullbloom_core::registry::{self, Variant};
            use fullbloom_core::structure::parts::Parts;
            #[allow(unused_imports)] // of what it can do
            use fullbloom_core::structure::{
                CellCounts, CellStats, Countable, Declared, Filter, Loadable, Mergeable, Positioned, Removable, Value,
            };
            use std::any::Any;

            #[allow(unused_imports)] // where nothing is constructed
            use super::Parameter;
            #[allow(unused_imports)] // as above
            use crate::fault::{Fault, Result};
            use crate::kind::spec::Spec;
            use crate::kind::traits::Kind;

            constructor!($when $Class $positional $named);

            impl Kind for Core {
                forward!(Filter: capacity -> u64, target_fpr -> f64, num_added -> u64, fpr -> f64, fill -> f64);
                forward!(Filter: nbytes -> u64, cell_stats -> CellStats, fpr_by_count -> Option<f64>, container -> Container<'_>);
                forward!(Filter: count_steps -> Option<Vec<usize>>);
                fn count_words(&self, section: usize, words: std::ops::Range<usize>, counts: &mut CellCounts) {
                    Filter::count_words(self, section, words, counts);
                }
                fn stats_of(&self, counts: &CellCounts) -> CellStats {
                    Filter::stats_of(self, counts)
                }
                fn epoch(&self) -> u64 {
                    Filter::nbytes(self) + Filter::num_expired(self)
                }
                fn info_with(&self, cells: CellStats) -> Vec<(&'static str, Value)> {
                    Declared::info_with(self, cells)
                }
                fn number(&self, name: &str) -> Option<u64> {
                    Declared::attribute(self, name)?.as_number()
                }
                fn variant(&self) -> &'static Variant {
                    registry::by_id(registry::$ID).unwrap_or(&registry::VARIANTS[0])
                }
                fn hasher(&self) -> KeyHasher {
                    *Filter::hasher(self)
                }
                fn duplicate(&self) -> Result<Box<dyn Kind>> {
                    Ok(Box::new(self.try_clone()?))
                }
                fn visit_written_words(&self, hashes: &[u64], word: &mut dyn FnMut(usize, usize)) -> bool {
                    Filter::writes(self, hashes, word)
                }
                fn takes_parts(&self) -> bool {
                    // No key can be added to a static filter, so no change waits for its copy.
                    !Kind::variant(self).capabilities.contains(&"static")
                }
                fn with_parts(&self, parts: Parts) -> Result<Box<dyn Kind>> {
                    let header = Filter::container(self).header;
                    Ok(Box::new(parts.load::<Self>(&header, *Filter::hasher(self))?))
                }
                fn contains(&self, hashes: &[u64], found: &mut [u8]) {
                    Filter::contains_hashes(self, hashes, found);
                }
                fn record(&mut self, domains: KeyDomains) {
                    Filter::record(self, domains);
                }
                fn bound(&mut self, max_bytes: u64) {
                    Loadable::bound(self, max_bytes);
                }
                fn share(&mut self, growth: std::sync::Arc<dyn fullbloom_core::growth::Growth>) {
                    Loadable::share(self, growth);
                }
                fn as_any(&self) -> &dyn Any {
                    self
                }
                fn add(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
                    match self.add_keys(hashes, new) {
                        Some(done) => Ok(done?),
                        None => Err(self.unsupported("add keys")),
                    }
                }
                fn add_pairs(&mut self, hashes: &[u64], values: &[u64]) -> Result<()> {
                    match self.put_values(hashes, values, None) {
                        Some(done) => Ok(done?),
                        None => Err(self.unsupported("add keys with a value")),
                    }
                }
                fn values(&self, hashes: &[u64], values: &mut [u64]) -> Result<()> {
                    self.read_values(hashes, values).ok_or_else(|| self.unsupported("return the value of a key"))
                }
                fn lacks_value(&self, hash: u64) -> bool {
                    Entries::lacks_value(self, hash)
                }
                fn clear(&mut self) -> Result<()> {
                    match self.forget_all() {
                        Some(done) => Ok(done?),
                        None => Err(self.unsupported("be cleared")),
                    }
                }
                fn advance(&mut self, now: f64) -> Result<u64> {
                    match self.advance_to(now) {
                        Some(expired) => Ok(expired?),
                        None => Err(self.unsupported("advance the time: it has no window of time")),
                    }
                }
                $(capability!($can);)*
            }
        }
    };
}

/// All rows, and the functions that dispatch on a row.
macro_rules! kinds {
    ({} $({
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        adds: $when:ident $entry:tt, can: $can:tt, $($rest:tt)*
    })*) => {
        $(fullbloom_core::$Class! { crate::kind::declared::kind ! { $ID $module $family $when $can } })*

        /// Creates a filter and checks its options.
        pub(super) fn create(spec: &Spec, hasher: KeyHasher) -> Result<Box<dyn Kind>> {
            match registry_row(&spec.kind)?.id {
                $($number => $module::create(spec, hasher),)*
                _ => Err(Fault::invalid("unknown kind")),
            }
        }

        /// The bytes of cells that it would take; 0 if that is unknown in advance.
        pub(super) fn nbytes_for(spec: &Spec) -> Result<u64> {
            match registry_row(&spec.kind)?.id {
                $($number => $module::nbytes(spec),)*
                _ => Err(Fault::invalid("unknown kind")),
            }
        }

        /// Loads a filter from the bytes of a file, and checks every byte.
        pub(super) fn load(bytes: &[u8], secret: Option<[u8; 16]>, max_bytes: u64) -> Result<Box<dyn Kind>> {
            let wanted = OpenOptions { verify: Verify::Full, secret, max_bytes };
            match ContainerIndex::new(bytes, Verify::Header)?.header.variant {
                $($number => Ok(Box::new(wanted.from_bytes::<fullbloom_core::$family::$Class>(bytes, $number)?)),)*
                other => Err(unknown(other)),
            }
        }

        /// Loads the filter in the file at `path` into memory, and checks every byte.
        pub(super) fn open(path: &Path, secret: Option<[u8; 16]>, max_bytes: u64) -> Result<Box<dyn Kind>> {
            let wanted = OpenOptions { verify: Verify::Full, secret, max_bytes };
            let file = OpenFile::new(path)?;
            match file.parsed.header.variant {
                $($number => {
                    let mapped = wanted.open::<fullbloom_core::$family::$Class>(&file, path, $number)?;
                    Kind::duplicate(&mapped)
                })*
                other => Err(unknown(other)),
            }
        }
    };
}

fn unknown(variant: u16) -> Fault {
    Fault::new(
        crate::fault::Code::Format,
        format!("the file holds structure {variant}, which this release does not know"),
    )
}

pub(crate) use kind;
fullbloom_core::variants!(kinds! {});
