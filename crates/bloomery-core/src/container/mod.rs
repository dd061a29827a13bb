//! The container: one file format for every structure.
//!
//! Described for other languages in `docs/format.md`; pinned by `tests/golden/*.bloom`. Parsing
//! checks every length against the bytes present before anything is allocated.
//!
//! * [`header`]: the fixed 64 bytes, the parameter table and the section table;
//! * [`file`]: atomic save, mapping, the writer's lock.

pub mod file;
pub mod header;

pub use file::{OpenMode, save};
pub use header::{Container, Header, Parsed, Section, Verify};

/// A number with a meaning that it keeps for ever.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// The number in files.
    pub number: u32,
    /// Its name, as the code has it.
    pub name: &'static str,
    /// What it means, in one line.
    pub meaning: &'static str,
}

/// A room of numbers: a constant each, and the list of all. Two names with one number are an error.
macro_rules! numbers {
    ($(#[doc = $about:tt])* pub mod $room:ident: $T:ty { $(#[doc = $meaning:tt] $NAME:ident = $number:literal;)* }) => {
        $(#[doc = $about])*
        pub mod $room {
            $(#[doc = $meaning] pub const $NAME: $T = $number;)*

            /// Every number of this room, in order.
            pub const ALL: &[super::Number] =
                &[$(super::Number { number: $number, name: stringify!($NAME), meaning: $meaning },)*];

            #[allow(dead_code, non_camel_case_types, clippy::upper_case_acronyms)]
            enum Distinct { $($NAME = $number,)* }
        }
    };
}

numbers! {
    /// Parameter tags. A tag keeps its meaning for ever.
    pub mod tag: u16 {
        /// Expected number of keys.
        CAPACITY = 1;
        /// Target rate, an f64.
        FPR = 2;
        /// m.
        NUM_BITS = 3;
        /// k.
        NUM_HASHES = 4;
        /// Layout number.
        LAYOUT = 5;
        /// Keys that were new when added.
        COUNT = 6;
        /// Factor between the capacities of successive stages, an f64.
        GROWTH = 7;
        /// Factor between the rates of successive stages, an f64.
        TIGHTENING = 8;
        /// 1 when adding past capacity is refused.
        STRICT = 9;
        /// Scheme number of a stage.
        SCHEME = 10;
        /// Registry number of the stages, where they are not Bloom filters.
        STAGE_VARIANT = 11;
        /// Number of cells that are wider than a bit.
        NUM_CELLS = 20;
        /// Bits of such a cell.
        CELL_BITS = 21;
        /// Occurrences a key must have to be reported, for which the filter was sized.
        THRESHOLD = 22;
        /// Additions less removals, repeated keys included.
        OCCURRENCES = 23;
        /// L: increments are L to 2L - 1.
        INCREMENTS = 24;
        /// How a counting filter updates its counters.
        MODE = 25;
        /// Sub-tables, d.
        SUBTABLES = 30;
        /// Cells of a bucket, w.
        BUCKET_CELLS = 31;
        /// Buckets of a sub-table, B.
        BUCKETS = 32;
        /// Regions whose collisions are remembered.
        REGIONS = 34;
        /// Lines of one plane (a generation, a layer).
        LINES = 40;
        /// Number of planes whose lines lie side by side.
        PLANES = 41;
        /// The plane that takes new keys.
        ACTIVE = 42;
        /// How cells are written: 1 when a known key is refreshed; the number of a lattice.
        RULE = 43;
        /// Seconds for which keys are remembered, an f64; 0 when the window is counted in keys.
        WINDOW = 44;
        /// The clock, an f64: latest time (index 0), beginning of the active plane (index 1).
        CLOCK = 45;
        /// Steps that the generator of decay has made.
        TICKS = 46;
        /// Cells decremented a key.
        DECREMENTS = 48;
        /// The largest label.
        LABELS = 49;
        /// Buckets of a table.
        NUM_BUCKETS = 50;
        /// Slots of a bucket.
        BUCKET_SIZE = 51;
        /// Bits of a fingerprint.
        FINGERPRINT_BITS = 52;
        /// 1 when buckets are stored semi-sorted.
        SEMI_SORT = 53;
        /// The fingerprint in the stash, 0 for none.
        STASH_FINGERPRINT = 54;
        /// A bucket of the fingerprint in the stash.
        STASH_BUCKET = 55;
        /// Bins of a prefix filter.
        NUM_BINS = 56;
        /// Bits of a remainder in a bin.
        REMAINDER_BITS = 57;
        /// Lines of the spare.
        SPARE_LINES = 58;
        /// Positions a column in a line of the spare.
        SPARE_PER_COLUMN = 59;
        /// q of a quotient filter, which has 2^q slots.
        QUOTIENT_BITS = 60;
        /// Bits of a slot that count copies.
        COUNTER_BITS = 62;
        /// Slots in use.
        USED_SLOTS = 63;
        /// Most stages of a chain.
        MAX_STAGES = 64;
    }
}

numbers! {
    /// Section kinds. A kind keeps its meaning for ever.
    pub mod kind: u32 {
        /// Cells of one bit.
        BITS = 1;
        /// Cells that count.
        COUNTERS = 20;
        /// Hashes of the keys whose counts are kept apart, each beside its count.
        APART = 21;
        /// Remainders with a digit of their count.
        COUNTED_FINGERPRINTS = 30;
        /// One bit a region: keys have met there.
        COLLISIONS = 31;
        /// Members a bit, 8 bits each.
        MEMBERS = 32;
        /// Known false positives a bit, 8 bits each.
        FALSE_POSITIVES = 33;
        /// Lines of several planes, side by side.
        PLANES = 40;
        /// Cells of several bits.
        CELLS = 41;
        /// Buckets of fingerprints.
        FINGERPRINTS = 50;
        /// Bins of sorted fingerprints.
        BINS = 51;
        /// Lines of the filter behind the bins.
        SPARE = 52;
        /// Occupied and runends of a quotient filter, a word of each by turns.
        QUOTIENT_BITS = 60;
        /// Offsets of a quotient filter, a byte a block of 64 slots.
        QUOTIENT_OFFSETS = 61;
        /// Slots of a quotient filter.
        QUOTIENT_SLOTS = 62;
    }
}
