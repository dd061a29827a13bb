//! [`Part`]: a level of a cascade that is a separate filter, and [`LevelKind`], the kind of levels.
//!
//! A level can be any structure of the registry that is built of keys and never misses one: those built of all their
//! keys at once, and those that can be stages. Level number i stores key hashes as `splitmix(hash + (i + 1) 0x9e37..)`,
//! as packed levels do.

use crate::chain::kinds::{Kind, Stage};
use crate::container::{Container, Header, tag};
use crate::error::{Error, Result};
use crate::hash::splitmix;
use crate::key::KeyHasher;
use crate::registry::{self, FalseNegatives, Variant};
use crate::structure::records::Records;
use crate::structure::{Addable, Built, Filter, Job, Loadable, Sections};

/// Lowest rate of a part: above it, fingerprints of one bit are enough.
pub(super) const MOST_FPR: f64 = 0.5;

/// The kind of the levels of a cascade.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LevelKind {
    /// Classic Bloom filters among the bits of all.
    Packed,
    /// Filters that take keys one by one.
    Stages(Kind),
    /// Structures with this registry number, built of all keys at once.
    Built(u16),
}

fn unknown() -> Error {
    Error::format("the file names levels of an unknown kind; use a newer release")
}

/// The rows of structures that are built of keys alone, for `@kinds`.
macro_rules! built {
    ({} $($rows:tt)*) => { built! { @row [] $($rows)* } };
    (@row [$($kinds:tt)*] {
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        adds: built [key], $($rest:tt)*
    } $($rows:tt)*) => { built! { @row [$($kinds)* {$ID $family $Class}] $($rows)* } };
    (@row [$($kinds:tt)*] $other:tt $($rows:tt)*) => { built! { @row [$($kinds)*] $($rows)* } };
    (@row [$($kinds:tt)*]) => { built! { @kinds $($kinds)* } };
    (@kinds $({$ID:ident $family:ident $Class:ident})*) => {
        /// One level.
        pub enum Part {
            /// Of keys that were added one by one.
            Stage(Stage),
            $(#[doc = concat!("[`", stringify!($Class), "`](crate::", stringify!($family), "::", stringify!($Class), ")")]
            $Class(crate::$family::$Class),)*
        }

        /// Structures that are built, by number.
        const BUILT: &[u16] = &[$(registry::$ID,)*];

        /// Runs `$work` with the structure of `$part` as `$f`.
        macro_rules! each {
            ($part:expr, $f:ident => $work:expr) => {
                match $part { Part::Stage($f) => $work, $(Part::$Class($f) => $work,)* }
            };
        }

        impl Part {
            fn build(variant: u16, hashes: &[u64], level: usize, fpr: f64, hasher: KeyHasher, job: &Job<'_>) -> Result<Self> {
                let mut records = Records::new(None);
                hashes.iter().try_for_each(|&hash| records.push([splitmix::at(hash, level as u64)]))?;
                let keys = records.try_into()?;
                match variant {
                    $(registry::$ID => <crate::$family::$Class>::of_keys(&keys, fpr, hasher, job).map(Part::$Class),)*
                    _ => Err(unknown()),
                }
            }

            /// A copy in memory of its own.
            pub(super) fn copy(&self) -> Result<Self> {
                Ok(match self {
                    Part::Stage(f) => Part::Stage(f.try_clone()?),
                    $(Part::$Class(f) => Part::$Class(f.try_clone()?),)*
                })
            }

            /// Same parameters, same cells.
            pub(super) fn equals(&self, other: &Self) -> bool {
                match (self, other) {
                    (Part::Stage(a), Part::Stage(b)) => a.same_as(b),
                    $((Part::$Class(a), Part::$Class(b)) => a.same_as(b),)*
                    _ => false,
                }
            }

            /// Loads a structure with number `header.variant`.
            pub(super) fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
                match header.variant {
                    $(registry::$ID => Loadable::load(header, hasher, memory).map(Part::$Class),)*
                    _ => Stage::load(header, hasher, memory).map(Part::Stage),
                }
            }
        }
    };
}
crate::variants!(built! {});

impl Part {
    /// Level number `level` of this kind, over keys, which finds other keys at about rate `fpr`.
    pub(super) fn of(
        kind: LevelKind,
        hashes: &[u64],
        level: usize,
        fpr: f64,
        hasher: KeyHasher,
        job: &Job<'_>,
    ) -> Result<Self> {
        let fpr = fpr.min(MOST_FPR);
        match kind {
            LevelKind::Built(variant) => Self::build(variant, hashes, level, fpr, hasher, job),
            LevelKind::Stages(kind) => {
                let mut stage = kind.stage(hashes.len().max(1) as u64, fpr, hasher)?;
                hashes.iter().try_for_each(|&hash| stage.add_hash(splitmix::at(hash, level as u64)).map(drop))?;
                Ok(Part::Stage(stage))
            }
            LevelKind::Packed => Err(unknown()),
        }
    }

    /// Whether level number `level` finds the key.
    #[inline(always)]
    pub(super) fn takes(&self, level: usize, hash: u64) -> bool {
        let hash = splitmix::at(hash, level as u64);
        each!(self, f => f.contains_hash(hash))
    }

    /// Prefetches the memory of a key of level 0.
    #[inline(always)]
    pub(super) fn fetch(&self, hash: u64) {
        let hash = splitmix::at(hash, 0);
        each!(self, f => f.fetch(hash));
    }

    /// Number of keys that it was built of.
    pub(super) fn keys(&self) -> u64 {
        each!(self, f => f.num_added())
    }

    /// The requested rate.
    pub(super) fn rate(&self) -> f64 {
        each!(self, f => f.target_fpr())
    }

    /// Bytes of cells.
    pub(super) fn nbytes(&self) -> u64 {
        each!(self, f => f.nbytes())
    }

    /// Share of used cells.
    pub(super) fn fill(&self) -> f64 {
        each!(self, f => f.fill())
    }

    /// As a file.
    pub(super) fn container(&self) -> Container<'_> {
        each!(self, f => f.container())
    }

    /// Refuses cells that contradict each other.
    pub(super) fn check_cells(&self) -> Result<()> {
        each!(self, f => f.check_cells())
    }
}

impl LevelKind {
    /// Registry rows of all kinds; the first also represents packed levels.
    pub fn rows() -> impl Iterator<Item = &'static Variant> {
        let stages = Kind::rows().filter(|row| row.false_negatives == FalseNegatives::Never);
        stages.chain(BUILT.iter().filter_map(|&id| registry::by_id(id)))
    }

    /// The kind with this registry name; `layout` applies to the first one, whose levels are packed unless it is given.
    pub fn new(name: &str, layout: &str) -> Result<Self> {
        let Some(row) = Self::rows().find(|row| row.name == name) else {
            let names: Vec<&str> = Self::rows().map(|row| row.name).collect();
            return Err(Error::Parameter(format!("kind must be one of {}, got {name:?}", names.join(", "))));
        };
        let first = LevelKind::Packed.name();
        if BUILT.contains(&row.id) {
            return match layout {
                "auto" => Ok(LevelKind::Built(row.id)),
                _ => Err(Error::Parameter(format!("layout is for kind {first:?}; leave it out for kind {name:?}"))),
            };
        }
        let kind = Kind::new(name, layout)?;
        Ok(if kind.layout() == Some("auto") { LevelKind::Packed } else { LevelKind::Stages(kind) })
    }

    /// The name in the registry.
    pub fn name(self) -> &'static str {
        self.row().map_or("", |row| row.name)
    }

    /// Name of the layout of all levels, if there is a choice; "auto" for packed bits.
    pub fn layout(self) -> Option<&'static str> {
        match self {
            LevelKind::Packed => Some("auto"),
            LevelKind::Stages(kind) => kind.layout(),
            LevelKind::Built(_) => None,
        }
    }

    fn row(self) -> Option<&'static Variant> {
        match self {
            LevelKind::Packed => Self::rows().next(),
            LevelKind::Stages(kind) => Some(kind.row()),
            LevelKind::Built(variant) => registry::by_id(variant),
        }
    }

    /// Writes the kind and the number of levels that are parts, unless there can be none.
    pub(super) fn describe(self, header: &mut Header, parts: usize) {
        match self {
            LevelKind::Packed => return,
            LevelKind::Stages(kind) => kind.describe(header),
            LevelKind::Built(variant) => header.set(tag::STAGE_VARIANT, 0, u64::from(variant)),
        }
        header.set(tag::LEVEL_FILTERS, 0, parts as u64);
    }

    /// Reads [`LevelKind::describe`]'s output: the kind, the number of parts, and how many parameters they took.
    pub(super) fn restore(header: &Header) -> Result<(Self, u64, usize)> {
        let Ok(parts) = header.get(tag::LEVEL_FILTERS, 0) else { return Ok((LevelKind::Packed, 0, 0)) };
        let variant = header.get(tag::STAGE_VARIANT, 0);
        let kind = match BUILT.iter().find(|&&id| variant.as_ref().is_ok_and(|&variant| variant == u64::from(id))) {
            Some(&id) => LevelKind::Built(id),
            None => LevelKind::Stages(Kind::restore(header)?),
        };
        let known = kind.layout() != Some("auto") && Self::rows().any(|row| row.name == kind.name());
        if known { Ok((kind, parts, 2)) } else { Err(unknown()) }
    }

    /// The registry number of parts.
    pub(super) fn variant(self) -> u16 {
        self.row().map_or(0, |row| row.id)
    }
}
