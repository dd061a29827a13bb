//! Schemes: how a 64-bit hash becomes cell positions. One numbered scheme a file.
//!
//! A scheme that a file names is never edited: a better one is a new file, a row of [`schemes!`] and a golden file.
//! There are four families of loops:
//!
//! * [`lines`]: one line (block) a key, written and checked as a whole; the scheme supplies the [`pattern`];
//! * [`placed`]: the same, in a line that the caller chooses;
//! * [`two_lines`]: a line in each half of the bits;
//! * [`ProbeKernel`]: k positions anywhere in the filter, or one in each of k slices.

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
pub mod placed;
pub mod planes;
pub mod positions;
pub mod probes;
pub mod quadratic;
pub mod range;
pub mod seeded;
pub mod sliced;
pub mod triple;
pub mod two_lines;

pub use probes::ProbeKernel;
pub use range::fastrange;

use crate::sizing::derived::Derivation;

/// Passes every scheme to the macro `$do`, after `$with`.
///
/// A row is the scheme's number in files and its public name; the layouts of [`bloom`](crate::bloom) that can use it;
/// its kernels, the loops for each k (`_` for any other); and, if its positions are not independent, how they follow
/// from each other ([`Derivation`]).
macro_rules! schemes {
    ($($do:ident)::+ ! $with:tt) => {
        $($do)::+ ! { $with
            /// Multiplicative congruential sequence of positions.
            Mcg = 1, "mcg", [Classic Partitioned], { _: Mcg = Probes<mcg::Mcg> };
            /// Distinct positions in the four columns of one 512-bit line.
            Columns = 2, "columns", [Blocked], {
                4: Columns1 = Line<columns::Columns<1>>, 8: Columns2 = Line<columns::Columns<2>>,
                _: Columns3 = Line<columns::Columns<3>>
            };
            /// The split-block rule of Parquet and Impala.
            Parquet = 3, "parquet", [Split], { _: Parquet = Line<parquet::Parquet> };
            /// Plain double hashing (for comparison; weak in small filters below 0.1 %).
            Double = 4, "double", [Classic Partitioned], { _: Double = Probes<double::Double> }, derived: Double;
            /// Enhanced double hashing.
            EnhancedDouble = 5, "enhanced-double", [Classic Partitioned],
                { _: Enhanced = Probes<enhanced::EnhancedDouble> }, derived: Cubic;
            /// k seeded hashes.
            Seeded = 6, "seeded", [Classic Partitioned], { _: Seeded = Probes<seeded::Seeded> };
            /// Slices of one wide hash.
            Sliced = 7, "sliced", [Classic Partitioned], { _: Sliced = Probes<sliced::Sliced> };
            // Tutorials' variants of double hashing have no law for slices, whose sizes have small divisors.
            /// Triple hashing.
            Triple = 8, "triple", [Classic], { _: Triple = Probes<triple::Triple> }, derived: Triple;
            /// Double hashing with the square of the probe's number added.
            Quadratic = 9, "quadratic", [Classic], { _: Quadratic = Probes<quadratic::Quadratic> }, derived: Quadratic;
            /// Double hashing by an odd step.
            OddStep = 10, "odd-step", [Classic], { _: OddStep = Probes<odd_step::OddStep> }, derived: OddStep;
            /// Two lines, each as of `Columns`, one in each half of the bits.
            TwoLines = 11, "two-lines", [TwoBlock], {
                8: Two1 = two_lines::TwoLines<1>, 16: Two2 = two_lines::TwoLines<2>,
                _: Two3 = two_lines::TwoLines<3>
            };
        }
    };
}
pub(crate) use schemes;

macro_rules! numbers {
    ({} $(
        $(#[$doc:meta])* $Scheme:ident = $number:literal, $name:literal, $layouts:tt, $kernels:tt $(, derived: $by:ident)?;
    )*) => {
        /// The number of a scheme in files.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Scheme {
            $($(#[$doc])* $Scheme = $number,)*
        }

        impl Scheme {
            /// How positions follow from each other; `None` if they behave as independent ones.
            pub fn derivation(self) -> Option<Derivation> {
                match self {
                    $(Scheme::$Scheme => None$(.or(Some(Derivation::$by)))?,)*
                }
            }
        }
    };
}
schemes!(numbers! {});
