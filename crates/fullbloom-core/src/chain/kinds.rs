//! [`Stage`]: every structure that a growing filter can be a chain of, and [`Kind`], the choice among them.
//!
//! A structure can be a stage if it takes keys, is sized by a capacity and a fixed rate, and never forgets keys; the
//! registry lists these. A stage holds every key once, even if the structure could hold copies.

use std::ops::Range;

use crate::bloom::Layout;
use crate::chain::stages::Info;
use crate::container::{Container, Header, tag};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::registry;
use crate::sizing::Law;
use crate::sizing::chain::{Member, Stages};
use crate::sizing::estimates::{self, StageKeys};
use crate::structure::declaration::choice;
use crate::structure::{Addable, CellCounts, Declared, Filter, Loadable, Planned, Sections, Sizable};

/// The structure of all stages. Those of the first kind may share a layout; with `None` each has the one that suits its
/// rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    variant: u16,
    layout: Option<Layout>,
}

fn unknown() -> Error {
    Error::format("the file names stages of an unknown kind; use a newer release")
}

/// The rows of structures that can be stages, for `@kinds`.
macro_rules! kinds {
    ({} $($rows:tt)*) => { kinds! { @row [] $($rows)* } };
    (@row [$($kinds:tt)*] {
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        adds: $when:ident $entry:tt, can: $can:tt, stage: no, $($rest:tt)*
    } $($rows:tt)*) => { kinds! { @row [$($kinds)*] $($rows)* } };
    (@row [$($kinds:tt)*] {
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        adds: $when:ident $entry:tt, can: $can:tt, stage: $by:ident, $($rest:tt)*
    } $($rows:tt)*) => { kinds! { @row [$($kinds)* {$ID $family $Class $by}] $($rows)* } };
    (@row [$($kinds:tt)*]) => { kinds! { @kinds $($kinds)* } };
    (@by bits) => { Stages::OfBits };
    (@by fingerprints) => { Stages::OfFingerprints };
    (@by pairs) => { Stages::OfPairs };
    (@kinds $({$ID:ident $family:ident $Class:ident $by:ident})*) => {
        /// One stage.
        pub enum Stage {
            $(#[doc = concat!("[`", stringify!($Class), "`](crate::", stringify!($family), "::", stringify!($Class), ")")]
            $Class(crate::$family::$Class),)*
        }

        /// Every kind, by its number.
        const VARIANTS: &[u16] = &[$(registry::$ID,)*];

        /// Runs `$work` with the structure of `$stage` as `$f`.
        macro_rules! each {
            ($stage:expr, $f:ident => $work:expr) => {
                match $stage { $(Stage::$Class($f) => $work,)* }
            };
        }

        impl Kind {
            /// An empty stage for `capacity` keys at rate `fpr`.
            pub fn stage(self, capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Stage> {
                let layout = self.options();
                match self.variant {
                    $(registry::$ID => Sizable::for_capacity(capacity, fpr, &layout, hasher).map(Stage::$Class),)*
                    _ => Err(unknown()),
                }
            }

            /// Bytes of cells of such a stage; nothing allocated.
            pub fn nbytes(self, capacity: u64, fpr: f64) -> Result<u64> {
                let layout = self.options();
                match self.variant {
                    $(registry::$ID => <crate::$family::$Class as Planned>::nbytes_for(capacity, fpr, &layout),)*
                    _ => Err(unknown()),
                }
            }

            /// How such stages are related.
            pub fn stages(self) -> Stages {
                match self.variant {
                    $(registry::$ID => kinds!(@by $by),)*
                    _ => Stages::Independent,
                }
            }
        }

        impl Stage {
            fn copy(&self) -> Result<Self> {
                match self { $(Stage::$Class(f) => f.try_clone().map(Stage::$Class),)* }
            }

            fn equals(&self, other: &Self) -> bool {
                match (self, other) {
                    $((Stage::$Class(a), Stage::$Class(b)) => a.same_as(b),)*
                    _ => false,
                }
            }
        }

        impl Loadable for Stage {
            fn load(header: &Header, hasher: KeyHasher, memory: Sections<'_>) -> Result<Self> {
                match header.variant {
                    $(registry::$ID => Loadable::load(header, hasher, memory).map(Stage::$Class),)*
                    _ => Err(unknown()),
                }
            }

            fn check_cells(&self) -> Result<()> {
                match self { $(Stage::$Class(f) => f.check_cells(),)* }
            }
        }
    };
}
crate::variants!(kinds! {});

/// The kind whose number files leave out, and that has a choice of layout.
const FIRST: u16 = VARIANTS[0];

impl Kind {
    /// The kind with this registry name; `layout` is for the first one.
    pub fn new(name: &str, layout: &str) -> Result<Self> {
        let layout = choice("layout", layout, Layout::NAMES)?;
        let found = Kind::rows().find(|row| row.name == name);
        let Some(row) = found else {
            let names: Vec<&str> = Kind::rows().map(|row| row.name).collect();
            return Err(Error::Parameter(format!("kind must be one of {}, got {name:?}", names.join(", "))));
        };
        if row.id != FIRST && layout.is_some() {
            let first = Kind { variant: FIRST, layout }.row().name;
            return Err(Error::Parameter(format!("layout is for kind {first:?}; leave it out for kind {name:?}")));
        }
        Ok(Kind { variant: row.id, layout })
    }

    /// Registry rows of all kinds.
    pub fn rows() -> impl Iterator<Item = &'static registry::Variant> {
        VARIANTS.iter().filter_map(|&id| registry::by_id(id))
    }

    /// The registry row of the stages.
    pub fn row(self) -> &'static registry::Variant {
        registry::by_id(self.variant).unwrap_or(&registry::VARIANTS[0])
    }

    /// Name of the layout of all stages, or "auto", if there is a choice.
    pub fn layout(self) -> Option<&'static str> {
        (self.variant == FIRST).then(|| self.layout.map_or("auto", Layout::name))
    }

    fn options(self) -> Vec<(&'static str, &'static str)> {
        self.layout.map(|layout| ("layout", layout.name())).into_iter().collect()
    }

    /// Writes the layout of the first kind (0 for `None`), the registry number of all others.
    pub(super) fn describe(self, header: &mut Header) {
        match self.variant {
            FIRST => header.set(tag::LAYOUT, 0, self.layout.map_or(0, |layout| layout as u64)),
            variant => header.set(tag::STAGE_VARIANT, 0, u64::from(variant)),
        }
    }

    /// Reads the kind that [`Kind::describe`] wrote.
    pub(super) fn restore(header: &Header) -> Result<Self> {
        if let Ok(variant) = header.get(tag::STAGE_VARIANT, 0) {
            let known = VARIANTS.iter().copied().find(|&known| known != FIRST && u64::from(known) == variant);
            return known.map(|variant| Kind { variant, layout: None }).ok_or_else(unknown);
        }
        let layout = match header.get(tag::LAYOUT, 0)? {
            0 => None,
            id => Some(Layout::from_id(id).ok_or_else(|| Error::format("the file names an unknown layout"))?),
        };
        Ok(Kind { variant: FIRST, layout })
    }
}

impl Stage {
    /// The number of keys that reached this stage.
    pub(super) fn stage_keys(&self) -> StageKeys {
        let (stored, member) = (self.num_added() as f64, self.member());
        let (lost, fpr_sd) = match each!(self, f => f.occupancy()) {
            Some((law, fill)) => (estimates::lost_in_cells(law.as_ref(), fill), law.fpr_sd(law.items(fill))),
            None => {
                let relative = |items| each!(self, f => f.relative_fpr(items));
                (estimates::lost_in_table(stored, member.fpr, relative), 0.0)
            }
        };
        StageKeys { stored, lost, member, fpr_sd }
    }

    /// Everything worth knowing.
    pub(super) fn info(&self) -> Info {
        each!(self, f => f.info())
    }
}

/// Methods delegated to the structure of the stage.
macro_rules! delegated {
    (mut; $($(#[$inline:meta])? $name:ident($($arg:ident: $T:ty),*) -> $R:ty;)*) => {
        $($(#[$inline])? fn $name(&mut self, $($arg: $T),*) -> $R { each!(self, f => f.$name($($arg),*)) })*
    };
    ($($(#[$inline:meta])? $name:ident($($arg:ident: $T:ty),*) $(-> $R:ty)?;)*) => {
        $($(#[$inline])? fn $name(&self, $($arg: $T),*) $(-> $R)? { each!(self, f => f.$name($($arg),*)) })*
    };
}

impl Filter for Stage {
    delegated! {
        hasher() -> &KeyHasher;
        #[inline(always)]
        contains_hash(hash: u64) -> bool;
        contains_hashes(hashes: &[u64], found: &mut [u8]);
        capacity() -> u64;
        target_fpr() -> f64;
        num_added() -> u64;
        fpr() -> f64;
        member() -> Member;
        fill() -> f64;
        law_of_bits() -> Option<(Box<dyn Law>, u64)>;
        count_words(section: usize, words: Range<usize>, counts: &mut CellCounts);
        nbytes() -> u64;
        container() -> Container<'_>;
        writes(hashes: &[u64], word: &mut dyn FnMut(usize, usize)) -> bool;
    }

    delegated! {
        mut;
        hasher_mut() -> &mut KeyHasher;
    }

    fn try_clone(&self) -> Result<Self> {
        self.copy()
    }

    fn same_as(&self, other: &Self) -> bool {
        self.equals(other)
    }
}

impl Addable for Stage {
    delegated! { is_read_only() -> bool; is_roomy() -> bool; }

    delegated! {
        mut;
        #[inline(always)]
        add_hash(hash: u64) -> Result<bool>;
        add_hashes(hashes: &[u64], new: Option<&mut [u8]>) -> Result<()>;
        add_missing(hashes: &[u64], new: &mut [u8]) -> Result<usize>;
        expect_adds(adds: usize) -> ();
        newly_overfull() -> bool;
        clear() -> Result<()>;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_takes_keys_and_none_forgets() {
        for row in Kind::rows() {
            assert!(row.stage && row.capabilities.contains(&"add") && !row.capabilities.contains(&"expire"));
            let kind = Kind::new(row.name, "auto").unwrap();
            assert!(kind.row().id == row.id && kind.stages() != Stages::Independent);
            assert!(kind.stage(100, 0.01, KeyHasher::seeded(0)).unwrap().nbytes() > 0);
        }
        assert_eq!(Kind::rows().count(), registry::VARIANTS.iter().filter(|row| row.stage).count());
    }

    #[test]
    fn unknown_kinds_are_refused() {
        let refused = |kind, layout| Kind::new(kind, layout).unwrap_err().to_string();
        assert!(refused("aging", "auto").contains("kind must be one of bloom, counting, "));
        assert!(refused("cuckoo", "blocked").contains("layout is for kind \"bloom\""));
        assert!(refused("bloom", "square").contains("layout must be auto, classic, "));
    }
}
