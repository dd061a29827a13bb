//! [`Layout`]: where the bits of a key may lie, with the schemes and numbers of probes that it allows.

use crate::scheme::{Scheme, columns, schemes};
use crate::sizing::classic::MAX_HASHES;
use crate::structure::declaration::names;

/// Where the probes of a key may fall. Files contain the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Layout {
    /// k bits anywhere: least space, k cache misses.
    Classic = 1,
    /// One 64-byte line: one cache miss, 5 to 15 % more space down to 0.01 %.
    Blocked = 2,
    /// The Parquet block of 256 bits.
    Split = 3,
    /// One bit in each of k slices.
    Partitioned = 4,
    /// Two 64-byte lines, one in each half of the bits: two cache misses, little more space than classic down to 1e-6.
    TwoBlock = 5,
}

names! {
    Layout, "layout":
    Classic "classic", Blocked "blocked", Split "split", Partitioned "partitioned", TwoBlock "two-block",
}

macro_rules! uses {
    ({} $(
        $(#[$doc:meta])* $Scheme:ident = $number:literal, $name:literal, [$($Layout:ident)*], $kernels:tt
        $(, derived: $by:ident)?;
    )*) => {
        names! { Scheme, "scheme": $($Scheme $name,)* }

        impl Layout {
            /// True if a filter of this layout can use `scheme`.
            pub fn fits(self, scheme: Scheme) -> bool {
                match scheme {
                    $(Scheme::$Scheme => matches!(self, $(Layout::$Layout)|*),)*
                }
            }
        }
    };
}
schemes!(uses! {});

impl Layout {
    /// The scheme a new filter of this layout gets.
    pub fn default_scheme(self) -> Scheme {
        match self {
            Layout::Classic | Layout::Partitioned => Scheme::Mcg,
            Layout::Blocked => Scheme::Columns,
            Layout::Split => Scheme::Parquet,
            Layout::TwoBlock => Scheme::TwoLines,
        }
    }

    /// True if all bits of a key lie in one cache line.
    pub fn is_one_line(self) -> bool {
        matches!(self, Layout::Blocked | Layout::Split)
    }

    /// True if they lie in two.
    pub fn is_two_lines(self) -> bool {
        self == Layout::TwoBlock
    }

    /// True if `auto` may choose it.
    pub fn is_automatic(self) -> bool {
        matches!(self, Layout::Classic | Layout::Blocked)
    }

    /// True if its bits are those of a Parquet file's filter.
    pub fn is_parquet(self) -> bool {
        self == Layout::Split
    }

    /// The number of bits is a multiple of this: the bits of a block, k for k slices, or 1.
    pub(super) fn granule(self, num_hashes: u32) -> u64 {
        match self {
            Layout::Classic => 1,
            Layout::Blocked => 512,
            Layout::Split => 256,
            Layout::TwoBlock => 1024,
            Layout::Partitioned => u64::from(num_hashes.max(1)),
        }
    }

    /// Every k that a filter of this layout can have.
    pub(super) fn hashes(self) -> Vec<u32> {
        match self {
            Layout::Blocked => (1..=columns::MAX_PER_COLUMN).map(|t| 4 * t).collect(),
            Layout::Split => vec![8],
            Layout::TwoBlock => (1..=columns::MAX_PER_COLUMN).map(|t| 8 * t).collect(),
            Layout::Classic | Layout::Partitioned => (1..=MAX_HASHES).collect(),
        }
    }

    /// Values of k worth trying for a rate.
    pub(super) fn candidate_hashes(self, fpr: f64) -> Vec<u32> {
        match self {
            Layout::Blocked | Layout::Split | Layout::TwoBlock => self.hashes(),
            Layout::Classic | Layout::Partitioned => {
                let best = (-fpr.log2()).floor().clamp(1.0, f64::from(MAX_HASHES - 1)) as u32;
                vec![best, best + 1]
            }
        }
    }
}
