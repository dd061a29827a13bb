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

/// Parameter tags. A tag keeps its meaning for ever.
pub mod tag {
    /// Expected number of keys.
    pub const CAPACITY: u16 = 1;
    /// Target rate, an f64.
    pub const FPR: u16 = 2;
    /// m.
    pub const NUM_BITS: u16 = 3;
    /// k.
    pub const NUM_HASHES: u16 = 4;
    /// Layout number.
    pub const LAYOUT: u16 = 5;
    /// Keys that were new when added.
    pub const COUNT: u16 = 6;
    /// Factor between the capacities of successive stages, an f64.
    pub const GROWTH: u16 = 7;
    /// Factor between the rates of successive stages, an f64.
    pub const TIGHTENING: u16 = 8;
    /// 1 when adding past capacity is refused.
    pub const STRICT: u16 = 9;
    /// Scheme number of a stage.
    pub const SCHEME: u16 = 10;
    /// Registry number of the stages, where they are not Bloom filters.
    pub const STAGE_VARIANT: u16 = 11;
    /// Number of cells that are wider than a bit.
    pub const NUM_CELLS: u16 = 20;
    /// Bits of such a cell.
    pub const CELL_BITS: u16 = 21;
    /// Occurrences a key must have to be reported, for which the filter was sized.
    pub const THRESHOLD: u16 = 22;
    /// Additions less removals, repeated keys included.
    pub const OCCURRENCES: u16 = 23;
    /// L: increments are L to 2L - 1.
    pub const INCREMENTS: u16 = 24;
    /// How a counting filter updates its counters.
    pub const MODE: u16 = 25;
    /// Sub-tables, d.
    pub const SUBTABLES: u16 = 30;
    /// Cells of a bucket, w.
    pub const BUCKET_CELLS: u16 = 31;
    /// Buckets of a sub-table, B.
    pub const BUCKETS: u16 = 32;
    /// Regions whose collisions are remembered.
    pub const REGIONS: u16 = 34;
    /// Lines of one plane (a generation, a layer).
    pub const LINES: u16 = 40;
    /// Number of planes whose lines lie side by side.
    pub const PLANES: u16 = 41;
    /// The plane that takes new keys.
    pub const ACTIVE: u16 = 42;
    /// How cells are written: 1 when a known key is refreshed; the number of a lattice.
    pub const RULE: u16 = 43;
    /// Seconds for which keys are remembered, an f64; 0 when the window is counted in keys.
    pub const WINDOW: u16 = 44;
    /// The clock, an f64: latest time (index 0), beginning of the active plane (index 1).
    pub const CLOCK: u16 = 45;
    /// Steps that the generator of decay has made.
    pub const TICKS: u16 = 46;
    /// Cells decremented a key.
    pub const DECREMENTS: u16 = 48;
    /// The largest label.
    pub const LABELS: u16 = 49;
    /// Buckets of a table.
    pub const NUM_BUCKETS: u16 = 50;
    /// Slots of a bucket.
    pub const BUCKET_SIZE: u16 = 51;
    /// Bits of a fingerprint.
    pub const FINGERPRINT_BITS: u16 = 52;
    /// 1 when buckets are stored semi-sorted.
    pub const SEMI_SORT: u16 = 53;
    /// The fingerprint in the stash, 0 for none.
    pub const STASH_FINGERPRINT: u16 = 54;
    /// A bucket of the fingerprint in the stash.
    pub const STASH_BUCKET: u16 = 55;
    /// Bins of a prefix filter.
    pub const NUM_BINS: u16 = 56;
    /// Bits of a remainder in a bin.
    pub const REMAINDER_BITS: u16 = 57;
    /// Lines of the spare.
    pub const SPARE_LINES: u16 = 58;
    /// Positions a column in a line of the spare.
    pub const SPARE_PER_COLUMN: u16 = 59;
    /// q of a quotient filter, which has 2^q slots.
    pub const QUOTIENT_BITS: u16 = 60;
    /// Bits of a slot that count copies.
    pub const COUNTER_BITS: u16 = 62;
    /// Slots in use.
    pub const USED_SLOTS: u16 = 63;
    /// Most stages of a chain.
    pub const MAX_STAGES: u16 = 64;
}

/// Section kinds. A kind keeps its meaning for ever.
pub mod kind {
    /// Cells of one bit.
    pub const BITS: u32 = 1;
    /// Cells that count.
    pub const COUNTERS: u32 = 20;
    /// Hashes of the keys whose counts are kept apart, each beside its count.
    pub const APART: u32 = 21;
    /// Remainders with a digit of their count.
    pub const COUNTED_FINGERPRINTS: u32 = 30;
    /// One bit a region: keys have met there.
    pub const COLLISIONS: u32 = 31;
    /// Members a bit, 8 bits each.
    pub const MEMBERS: u32 = 32;
    /// Known false positives a bit, 8 bits each.
    pub const FALSE_POSITIVES: u32 = 33;
    /// Lines of several planes, side by side.
    pub const PLANES: u32 = 40;
    /// Cells of several bits.
    pub const CELLS: u32 = 41;
    /// Buckets of fingerprints.
    pub const FINGERPRINTS: u32 = 50;
    /// Bins of sorted fingerprints.
    pub const BINS: u32 = 51;
    /// Lines of the filter behind the bins.
    pub const SPARE: u32 = 52;
    /// Occupied and runends of a quotient filter, a word of each by turns.
    pub const QUOTIENT_BITS: u32 = 60;
    /// Offsets of a quotient filter, a byte a block of 64 slots.
    pub const QUOTIENT_OFFSETS: u32 = 61;
    /// Slots of a quotient filter.
    pub const QUOTIENT_SLOTS: u32 = 62;
}
