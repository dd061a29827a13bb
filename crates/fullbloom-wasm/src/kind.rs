//! [`Kind`]: any structure of the registry behind one trait, so that the bindings name none.

use crate::arguments::Arguments;
use crate::core::{Container, KeyDomains, KeyHasher, Parameter, RecordSet, Records, VARIANTS, Value, Variant};
use crate::fault::{Fault, Result};

/// A structure. What its kind cannot do is a `MissingOperation` that names the class.
pub(crate) trait Kind {
    /// Its row of the registry.
    fn variant(&self) -> &'static Variant;
    /// How keys become hashes.
    fn hasher(&self) -> &KeyHasher;
    /// Records the domains of keys that were added.
    fn record(&mut self, domains: KeyDomains);
    /// Keys that were new when they were added, less those removed.
    fn num_added(&self) -> u64;
    /// Everything worth knowing.
    fn info(&self) -> Vec<(&'static str, Value)>;
    /// As a file.
    fn container(&self) -> Container<'_>;
    /// A copy in memory of its own.
    fn copy(&self) -> Result<Box<dyn Kind>>;
    /// One answer (0 or 1) a hash.
    fn contains(&self, hashes: &[u64], found: &mut [u8]);
    /// [`Kind::contains`] of one: by the code of batches, since that for one key is a twentieth of the module.
    fn contains_one(&self, hash: u64) -> bool {
        let mut found = [0];
        self.contains(&[hash], &mut found);
        found == [1]
    }
    /// Itself, to be merged into another of its class.
    fn as_any(&self) -> &dyn std::any::Any;

    /// Adds in order; `new` gets 1 for each key that was certainly new.
    fn add(&mut self, hashes: &[u64], new: &mut [u8]) -> Result<()>;
    /// Forgets every key.
    fn clear(&mut self) -> Result<()>;
    /// Removes in order; `removed` gets 1 for each key that was not certainly absent.
    fn remove(&mut self, _hashes: &[u64], _removed: &mut [u8]) -> Result<()> {
        Err(self.cannot("remove", "remove keys"))
    }
    /// Occurrences of each key.
    fn count(&self, _hashes: &[u64], _counts: &mut [u64]) -> Result<()> {
        Err(self.cannot("count", "count keys"))
    }
    /// The cells of a key.
    fn positions(&self, _hash: u64) -> Result<Vec<u64>> {
        Err(self.cannot("positions", "show the positions of a key"))
    }
    /// Takes in another of its class; on an error nothing has changed.
    fn merge(&mut self, _other: &dyn Kind) -> Result<()> {
        Err(self.cannot("merge", "be merged"))
    }
    /// Lets time pass until `now`, in seconds: how many generations expired.
    fn advance(&mut self, now: f64) -> Result<u64>;
    /// Adds keys with a label or value each; `new` gets 1 for each that changed something.
    fn put(&mut self, hashes: &[u64], values: &[u64], new: &mut [u8]) -> Result<()>;
    /// The label or value of each key; 0 for a key without one.
    fn values(&self, hashes: &[u64], values: &mut [u64]) -> Result<()>;
    /// The refusal of what it cannot do, with the classes that can.
    fn cannot(&self, capability: &str, operation: &str) -> Fault {
        let can = VARIANTS.iter().filter(|row| row.capabilities.contains(&capability)).map(|row| row.class);
        let can: Vec<&str> = can.filter(|class| *class != self.variant().class).collect();
        let others = if can.is_empty() { String::new() } else { format!("; {} can", can.join(", ")) };
        Fault::new("MissingOperation", format!("a {} cannot {operation}{others}", self.variant().class))
    }
}

/// The keys of a structure that is built of all of them at once.
#[derive(Default)]
pub(crate) struct Keys {
    /// In order; each with its value where there are any.
    pub(crate) hashes: Vec<u64>,
    /// As many, or none.
    pub(crate) values: Vec<u64>,
    /// What types of keys they are.
    pub(crate) domains: KeyDomains,
}

impl Keys {
    /// As records that a structure is built of.
    fn record_set(&self) -> Result<RecordSet<1>> {
        let mut records = Records::new(None);
        self.hashes.iter().try_for_each(|&hash| records.push([hash]))?;
        Ok(records.try_into()?)
    }

    /// [`Keys::record_set`] with values.
    fn pairs(&self) -> Result<RecordSet<2>> {
        if self.hashes.len() != self.values.len() {
            return Err(Fault::parameter(format!(
                "there must be as many values as keys, got {} values for {} keys",
                self.values.len(),
                self.hashes.len()
            )));
        }
        let mut records = Records::new(None);
        self.hashes.iter().zip(&self.values).try_for_each(|(&hash, &value)| records.push([hash, value]))?;
        Ok(records.try_into()?)
    }
}

/// The kinds of this build, by their names with spaces between them; all of them where it is empty or not set.
const WANTED: Option<&str> = option_env!("FULLBLOOM_KINDS");

/// True of a kind of this build.
pub(crate) const fn is_wanted(name: &str) -> bool {
    let (Some(wanted), name) = (WANTED, name.as_bytes()) else { return true };
    let wanted = wanted.as_bytes();
    let (mut start, mut at) = (0, 0);
    while at <= wanted.len() {
        if at == wanted.len() || wanted[at] == b' ' {
            let (mut same, mut i) = (at - start == name.len(), 0);
            while same && i < name.len() {
                same = wanted[start + i] == name[i];
                i += 1;
            }
            if same {
                return true;
            }
            start = at + 1;
        }
        at += 1;
    }
    wanted.is_empty()
}

/// What a structure is made of: parameters, the hasher, and the keys of one that is built, in one set or two.
pub(crate) struct Order<'a> {
    pub(crate) arguments: &'a Arguments,
    pub(crate) hasher: KeyHasher,
    pub(crate) keys: &'a Keys,
    pub(crate) others: &'a Keys,
}

/// The parameter `name` of a type, or its default.
macro_rules! given {
    ($order:ident $Class:ident $name:ident $type:tt) => {
        $order.arguments.get_required(stringify!($Class), stringify!($name))?
    };
    ($order:ident $Class:ident $name:ident "str" $default:tt) => {
        $order.arguments.read(stringify!($name))?.unwrap_or_else(|| String::from($default))
    };
    ($order:ident $Class:ident $name:ident $type:tt $default:tt) => {
        $order.arguments.read(stringify!($name))?.unwrap_or($default)
    };
}

/// The type by which a parameter is read, whose texts are owned.
macro_rules! owned {
    ("str") => { String };
    ("str | None") => { Option<String> };
    ($other:tt) => { fullbloom_core::parameter_type!($other) };
}

/// A parameter as the core takes it.
macro_rules! lent {
    ($name:ident "str") => {
        $name.as_str()
    };
    ($name:ident "str | None") => {
        $name.as_deref()
    };
    ($name:ident $other:tt) => {
        $name
    };
}

/// Makes one: empty, or of its keys.
macro_rules! constructor {
    (built [key] $($rest:tt)*) => { constructor!(@ (record_set) $($rest)*); };
    (built [key value] $($rest:tt)*) => { constructor!(@ (pairs) $($rest)*); };
    // The levels' kind and layout are no part of the declaration, since the class is not called.
    (built [included excluded] $Class:ident $positional:tt $named:tt) => {
        pub(super) const PARAMETERS: &[Parameter] = &[
            Parameter { name: "kind", python: "str", default: Some("\"bloom\"") },
            Parameter { name: "layout", python: "str", default: Some("\"auto\"") },
        ];

        pub(super) fn create(order: &Order<'_>) -> Result<Box<dyn Kind>> {
            order.arguments.check(stringify!($Class), &["kind", "layout"])?;
            let (kind, layout): (String, String) = (given!(order $Class kind "str" "bloom"), given!(order $Class layout "str" "auto"));
            let plan = Plan { kind: LevelKind::new(&kind, &layout)?, hasher: order.hasher, like: None };
            let job = Job::new(1);
            let (included, excluded) = (order.keys.record_set()?.sort(&job)?, order.others.record_set()?.sort(&job)?);
            if let Some(hash) = common(&included, &excluded)? {
                return Err(Fault::parameter(format!(
                    "included and excluded overlap: a key of both has the hash {hash}; a key must be in one of them only"
                )));
            }
            Ok(Box::new(Core::build(&included, &excluded, plan, &job)?))
        }
    };
    (open $entry:tt $Class:ident $positional:tt $named:tt) => { constructor!(@ () $Class $positional $named); };
    (@ ($($keys:ident)?) $Class:ident
        [$({$pdoc:tt $p:ident $pt:tt [$($pd:tt)?]})*] [$({$kdoc:tt $k:ident $kt:tt $kd:tt})*]
    ) => {
        pub(super) const PARAMETERS: &[Parameter] = Core::PARAMETERS;

        pub(super) fn create(order: &Order<'_>) -> Result<Box<dyn Kind>> {
            order.arguments.check(stringify!($Class), &[$(stringify!($p),)* $(stringify!($k),)*])?;
            $(let $p: owned!($pt) = given!(order $Class $p $pt $($pd)?);)*
            $(let $k: owned!($kt) = given!(order $Class $k $kt $kd);)*
            Ok(Box::new(constructor!(@call order [$($keys)?] [$(lent!($p $pt),)* $(lent!($k $kt),)*])))
        }
    };
    (@call $order:ident [] [$($argument:expr,)*]) => { Core::construct($($argument,)* $order.hasher)? };
    (@call $order:ident [$keys:ident] [$($argument:expr,)*]) => {
        Core::build(&$order.keys.$keys()?, $($argument,)* $order.hasher, &Job::new(1))?
    };
}

/// The methods of one capability. A capability without a method in the trait adds nothing.
macro_rules! capability {
    (remove) => {
        fn remove(&mut self, hashes: &[u64], removed: &mut [u8]) -> Result<()> {
            Ok(Removable::remove_hashes(self, hashes, Some(removed))?)
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
                None => Err(Fault::parameter_type(format!(
                    "other must be a {}, got {}",
                    self.variant().class,
                    other.variant().class
                ))),
            }
        }
    };
    ($other:ident) => {};
}

/// One module a row.
macro_rules! kind {
    ({ $ID:literal $module:ident $name:literal $family:ident $when:ident $entry:tt [$($can:ident)*] }
        $Class:ident $summary:tt $positional:tt $named:tt $rest:tt $shown:tt
    ) => {
        mod $module {
            use fullbloom_core::$family::$Class as Core;

            #[allow(unused_imports)] // of what it can do
            use crate::core::*;
            #[allow(unused_imports)] // as above
            use crate::fault::{Fault, Result};
            use crate::kind::{Kind, Order};

            /// Whether this build has it: what it has not is code that nobody calls, and is left out.
            pub(super) const WANTED: bool = crate::kind::is_wanted($name);

            constructor!($when $entry $Class $positional $named);

            impl Kind for Core {
                fn variant(&self) -> &'static Variant {
                    by_id($ID).unwrap_or(&VARIANTS[0])
                }
                fn hasher(&self) -> &KeyHasher {
                    Filter::hasher(self)
                }
                fn record(&mut self, domains: KeyDomains) {
                    Filter::record(self, domains);
                }
                fn num_added(&self) -> u64 {
                    Filter::num_added(self)
                }
                fn info(&self) -> Vec<(&'static str, Value)> {
                    Declared::info(self)
                }
                fn container(&self) -> Container<'_> {
                    Filter::container(self)
                }
                fn copy(&self) -> Result<Box<dyn Kind>> {
                    Ok(Box::new(self.try_clone()?))
                }
                fn contains(&self, hashes: &[u64], found: &mut [u8]) {
                    Filter::contains_hashes(self, hashes, found);
                }
                fn as_any(&self) -> &dyn std::any::Any {
                    self
                }
                fn add(&mut self, hashes: &[u64], new: &mut [u8]) -> Result<()> {
                    match self.add_keys(hashes, Some(new)) {
                        Some(done) => Ok(done?),
                        None => Err(self.cannot("add", "add keys")),
                    }
                }
                fn put(&mut self, hashes: &[u64], values: &[u64], new: &mut [u8]) -> Result<()> {
                    match self.put_values(hashes, values, Some(new)) {
                        Some(done) => Ok(done?),
                        None => Err(self.cannot("value", "add keys with a value")),
                    }
                }
                fn values(&self, hashes: &[u64], values: &mut [u64]) -> Result<()> {
                    self.read_values(hashes, values).ok_or_else(|| self.cannot("value", "return the value of a key"))
                }
                fn clear(&mut self) -> Result<()> {
                    match self.forget_all() {
                        Some(done) => Ok(done?),
                        None => Err(self.cannot("add", "be cleared")),
                    }
                }
                fn advance(&mut self, now: f64) -> Result<u64> {
                    match self.advance_to(now) {
                        Some(expired) => Ok(expired?),
                        None => Err(self.cannot("expire", "let time pass: it has no window of time")),
                    }
                }
                $(capability!($can);)*
            }
        }
    };
}

/// All rows, and what is found by a row.
macro_rules! kinds {
    ({} $({
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        adds: $when:ident $entry:tt, can: $can:tt, $($rest:tt)*
    })*) => {
        $(fullbloom_core::$Class! { crate::kind::kind ! { $number $module $name $family $when $entry $can } })*

        /// A new filter of the kind of this number.
        fn create_numbered(id: u16, order: &Order<'_>) -> Result<Box<dyn Kind>> {
            match id {
                $($number if $module::WANTED => $module::create(order),)*
                _ => Err(Fault::parameter("this build of the package leaves the kind out")),
            }
        }

        /// The parameters of the constructor of the kind of this number, except seed and secret.
        pub(crate) fn parameters_of(id: u16) -> &'static [Parameter] {
            match id {
                $($number => $module::PARAMETERS,)*
                _ => &[],
            }
        }

        /// The filter in the bytes of a whole file, every one of them checked.
        pub(crate) fn open(bytes: &[u8], wanted: &crate::core::OpenOptions) -> Result<Box<dyn Kind>> {
            match crate::core::ContainerIndex::new(bytes, crate::core::Verify::Header)?.header.variant {
                $($number if $module::WANTED => Ok(Box::new(wanted.from_bytes::<fullbloom_core::$family::$Class>(bytes, $number)?)),)*
                other => Err(crate::core::unreadable(other).into()),
            }
        }
    };
}

/// A new filter of the kind of this name.
pub(crate) fn create(name: &str, order: &Order<'_>) -> Result<Box<dyn Kind>> {
    let row = VARIANTS.iter().find(|row| row.name == name).ok_or_else(|| {
        let known: Vec<&str> = VARIANTS.iter().map(|row| row.name).filter(|name| is_wanted(name)).collect();
        Fault::parameter(format!("kind must be one of {}, got {name:?}", known.join(", ")))
    })?;
    let mut instance = create_numbered(row.id, order)?;
    let domains = order.keys.domains.with(order.others.domains);
    if domains != KeyDomains::NONE {
        instance.record(domains);
    }
    Ok(instance)
}

pub(crate) use kind;
fullbloom_core::variants!(kinds! {});
