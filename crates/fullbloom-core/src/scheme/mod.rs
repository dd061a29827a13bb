//! Schemes: how a 64-bit hash becomes cell positions. One numbered scheme a file.
//!
//! A scheme that has reached a file is never edited; a better one gets a new number, a new file
//! and a golden file. Two sorts of kernel exist:
//!
//! * [`lines`]: one line (block) a key, written and checked as a whole; the scheme gives the [`pattern`];
//! * [`ProbeKernel`]: k positions anywhere in the filter.
//!
//! | id | name | layouts | file |
//! |---|---|---|---|
//! | 1 | `mcg` | classic, partitioned | [`mcg`] |
//! | 2 | `columns` | blocked | [`columns`] |
//! | 3 | `parquet` | split | [`parquet`] |
//! | 4 | `double` | classic, partitioned | [`double`] |
//! | 5 | `enhanced-double` | classic, partitioned | [`enhanced`] |
//! | 6 | `seeded` | classic, partitioned | [`seeded`] |
//! | 7 | `sliced` | classic, partitioned | [`sliced`] |
//! | 8 | `triple` | classic | [`triple`] |
//! | 9 | `quadratic` | classic | [`quadratic`] |
//! | 10 | `odd-step` | classic | [`odd_step`] |
//! | 11 | `two-lines` | two-block | [`two_lines`] |

pub mod ahead;
pub mod block;
pub mod columns;
pub mod double;
pub mod enhanced;
pub mod lines;
pub mod mcg;
pub mod odd_step;
pub mod parquet;
pub mod pattern;
pub mod planes;
pub mod positions;
pub mod probes;
pub mod quadratic;
pub mod seeded;
pub mod sliced;
pub mod triple;
pub mod two_lines;

pub use probes::ProbeKernel;

/// High 64 bits of the product: maps a uniform `hash` to `0..range` without division, from its
/// top bits (Lemire, "Fast random integer generation in an interval", 2019).
#[inline(always)]
pub fn fastrange(hash: u64, range: u64) -> u64 {
    ((u128::from(hash) * u128::from(range)) >> 64) as u64
}

/// The scheme's number, as it stands in files; `bloom/shape.rs` has the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Scheme {
    /// Multiplicative congruential sequence of positions.
    Mcg = 1,
    /// Distinct positions in the four columns of one 512-bit line.
    Columns = 2,
    /// The split-block rule of Parquet and Impala.
    Parquet = 3,
    /// Plain double hashing (for comparison; weak in small filters below 0.1 %).
    Double = 4,
    /// Enhanced double hashing.
    EnhancedDouble = 5,
    /// k seeded hashes.
    Seeded = 6,
    /// Slices of one wide hash.
    Sliced = 7,
    /// Triple hashing.
    Triple = 8,
    /// Double hashing with the square of the probe's number added.
    Quadratic = 9,
    /// Double hashing by an odd step.
    OddStep = 10,
    /// Two lines, each as of `Columns`, one in each half of the bits.
    TwoLines = 11,
}

impl Scheme {
    /// Those that place each probe of a key in a slice of its own; the first is the default.
    pub const SLICED: &'static [Scheme] =
        &[Scheme::Mcg, Scheme::Double, Scheme::EnhancedDouble, Scheme::Seeded, Scheme::Sliced];
    /// Those that place probes anywhere. Mended double hashing of tutorials has no law for slices, whose sizes have
    /// small divisors.
    pub const ANYWHERE: &'static [Scheme] = &[
        Scheme::Mcg,
        Scheme::Double,
        Scheme::EnhancedDouble,
        Scheme::Seeded,
        Scheme::Sliced,
        Scheme::Triple,
        Scheme::Quadratic,
        Scheme::OddStep,
    ];
}
