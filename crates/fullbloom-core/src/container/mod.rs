//! The container: one file format for every structure.
//!
//! Described for other languages in `docs/format.md`; pinned by `tests/golden/*.bloom`. Parsing checks every length
//! against the bytes present before anything is allocated.
//!
//! * [`header`]: the fixed 64 bytes, the parameter table and the section table;
//! * [`file`]: reading, mapping, the writer's lock;
//! * [`save`]: atomic save.

pub mod file;
pub mod header;
pub mod save;

use crate::error::Error;

pub use file::OpenMode;
pub use header::{Container, ContainerIndex, Header, Section, Verify};
pub use save::save;

/// A number whose meaning never changes.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// The number in files.
    pub number: u32,
    /// Its name in the code.
    pub name: &'static str,
    /// Its meaning, in one line.
    pub meaning: &'static str,
}

/// A set of numbers: a constant for each, and the list of all. Two names with one number do not compile.
macro_rules! numbers {
    ($(#[doc = $about:tt])* pub mod $room:ident: $T:ty { $($NAME:ident = $number:literal, $meaning:literal;)* }) => {
        $(#[doc = $about])*
        pub mod $room {
            $(#[doc = $meaning] pub const $NAME: $T = $number;)*

            /// All numbers of this set, in order.
            pub const ALL: &[super::Number] =
                &[$(super::Number { number: $number, name: stringify!($NAME), meaning: $meaning },)*];

            #[allow(dead_code, non_camel_case_types, clippy::upper_case_acronyms)]
            enum Distinct { $($NAME = $number,)* }
        }
    };
}

numbers! {
    /// Parameter tags. A tag never changes its meaning.
    pub mod tag: u16 {
        CAPACITY = 1, "Expected number of keys.";
        FPR = 2, "Target rate, an f64.";
        NUM_BITS = 3, "m.";
        NUM_HASHES = 4, "k.";
        LAYOUT = 5, "Layout number.";
        COUNT = 6, "Keys that were new when added.";
        GROWTH = 7, "Factor between the capacities of successive stages, an f64.";
        TIGHTENING = 8, "Factor between the rates of successive stages, an f64.";
        STRICT = 9, "1 when adding past capacity is refused.";
        SCHEME = 10, "Scheme number of a stage.";
        STAGE_VARIANT = 11, "Registry number of the stages, where they are not Bloom filters.";
        SURPLUS = 12, "Keys that would set as many bits as no key of the filter has, an f64.";
        SURPLUS_VARIANCE = 13, "What the surplus adds to the variance of the estimated number of keys, an f64.";
        NUM_CELLS = 20, "Number of cells that are wider than a bit.";
        CELL_BITS = 21, "Bits of such a cell.";
        THRESHOLD = 22, "Occurrences a key must have to be reported, for which the filter was sized.";
        OCCURRENCES = 23, "Additions less removals, repeated keys included.";
        INCREMENTS = 24, "L: increments are L to 2L - 1.";
        MODE = 25, "How a counting filter updates its counters.";
        SUBTABLES = 30, "Sub-tables, d.";
        BUCKET_CELLS = 31, "Cells of a bucket, w.";
        BUCKETS = 32, "Buckets of a sub-table, B.";
        REGIONS = 34, "Regions whose collisions are remembered.";
        LINES = 40, "Lines of one plane (a generation, a layer).";
        PLANES = 41, "Number of planes whose lines lie side by side.";
        ACTIVE = 42, "The plane that takes new keys.";
        RULE = 43, "How cells are written: 1 when a known key is refreshed; the number of a lattice.";
        WINDOW = 44, "Seconds for which keys are remembered, an f64; 0 when the window is counted in keys.";
        CLOCK = 45, "The clock, an f64: latest time (index 0), beginning of the active plane (index 1).";
        TICKS = 46, "Steps that the generator of decay has made.";
        DECREMENTS = 48, "Cells decremented per key.";
        LABELS = 49, "The largest label.";
        NUM_BUCKETS = 50, "Buckets of a table.";
        BUCKET_SIZE = 51, "Slots of a bucket.";
        FINGERPRINT_BITS = 52, "Bits of a fingerprint.";
        SEMI_SORT = 53, "1 when buckets are stored semi-sorted.";
        STASH_FINGERPRINT = 54, "The fingerprint in the stash, 0 for none.";
        STASH_BUCKET = 55, "A bucket of the fingerprint in the stash.";
        NUM_BINS = 56, "Bins of a prefix filter.";
        REMAINDER_BITS = 57, "Bits of a remainder in a bin.";
        SPARE_LINES = 58, "Lines of the spare.";
        SPARE_PER_COLUMN = 59, "Positions per column in a line of the spare.";
        QUOTIENT_BITS = 60, "q of a quotient filter, which has 2^q slots.";
        COUNTER_BITS = 62, "Bits of a slot that count copies.";
        USED_SLOTS = 63, "Slots in use.";
        MAX_STAGES = 64, "Most stages of a chain.";
        ARITY = 70, "Cells of a key in a static filter.";
        SHARD_BITS = 71, "Bits of the hash that choose the shard of a static filter.";
        RESULT_BITS = 72, "Result bits of all keys of a ribbon filter.";
        LOW_SHARE = 73, "The share of its keys that have no bit more, of 2^32.";
        BLOCK_RANGE = 76, "Values of a block of a Golomb-coded set.";
        RICE_BITS = 77, "P, bits of a remainder of a Rice code.";
        CODE_BITS = 78, "Bits of all codes.";
        OFFSET_BITS = 79, "Bits of the offset of a block.";
        VALUE_BITS = 80, "Bits of a value in a map.";
        MUTABLE = 81, "1 when the values of a map lie in a table of their own, and can be changed.";
        UNIVERSE = 84, "Size of the universe of whole numbers, where it is not the capacity.";
        LEVELS = 85, "Levels of a cascade.";
        EXCLUDED = 86, "Keys of the closed world that are not included.";
        LEVEL_FILTERS = 87, "Levels of a cascade that are filters of their own, from the first on.";
        TABLE_CELLS = 88, "Cells of each of the four sub-tables of an invertible table.";
        LATER = 89, "Such filters of a cascade that have bits beside them, for keys that came later.";
        FOREIGN_LENGTH = 90, "Bytes of the header that another program gives its filter.";
        FOREIGN_HEADER = 91, "That header, 8 bytes each, little-endian, the last ones filled up with zeros.";
        HASH = 92, "Number of the base hash, where that is not XXH3-64.";
        KEY_DOMAINS = 93, "Domains of the keys that were added, one bit each; bit 32 for ready hashes.";
        FOREIGN_FORMAT = 94, "Number of the format of another program's filter.";
        FOREIGN_KEYS = 95, "Number of the type of the keys of such a filter.";
        FOREIGN_SEED = 96, "Seed of a hash of such a filter, where each has its own.";
        MAX_OWNERS = 110, "Most owners of a bank, 0 for any number.";
        NUM_ENTRIES = 111, "Entries of a table of a bank: owners (index 0), later stages (index 1).";
        NUM_STAGES = 112, "Stages of the largest owner of a bank.";
        FREE_LINES = 113, "One more than the first line of the first free filter of a stage of a bank.";
        BLOCK_ROWS = 120, "Rows of a block of signatures.";
        PRIVATE_ROWS = 121, "Bit rows of signatures that belong to one frequent term each.";
        LISTED_TERMS = 122, "Terms of signatures with bits other than the usual ones.";
        COLUMN_BITS = 123, "Bits of a value in a signature, under the number of its column.";
    }
}

numbers! {
    /// Section kinds. A kind never changes its meaning.
    pub mod kind: u32 {
        BITS = 1, "Cells of one bit.";
        COUNTERS = 20, "Cells that count.";
        APART = 21, "Hashes of the keys whose counts are kept apart, each beside its count.";
        COUNTED_FINGERPRINTS = 30, "Remainders with a digit of their count.";
        COLLISIONS = 31, "One bit per region: keys have met there.";
        MEMBERS = 32, "Members per bit, 8 bits each.";
        FALSE_POSITIVES = 33, "Known false positives per bit, 8 bits each.";
        PLANES = 40, "Lines of several planes, side by side.";
        CELLS = 41, "Cells of several bits.";
        FINGERPRINTS = 50, "Buckets of fingerprints.";
        BINS = 51, "Bins of sorted fingerprints.";
        SPARE = 52, "Lines of the spare filter of the bins.";
        QUOTIENT_BITS = 60, "Occupied and runends of a quotient filter, in alternating words.";
        QUOTIENT_OFFSETS = 61, "Offsets of a quotient filter, a byte per block of 64 slots.";
        QUOTIENT_SLOTS = 62, "Slots of a quotient filter.";
        SHARDS = 70, "Table of shards: first word, two numbers of the shape, attempt.";
        RIBBONS = 71, "Table of shards of ribbons: first word and blocks of three, attempt, 0.";
        CODES = 73, "Blocks of Rice codes: bits in unary from the front, remainders from the end.";
        OFFSETS = 74, "A base, then the distance of each block's first bit from a straight line above it.";
        VALUES = 75, "Values of a map that can be changed, side by side, each in the slot of its key.";
        LEVELS = 77, "Levels of a cascade, one word each: bits; from bit 48 on, probes.";
        RESTS = 78, "Cells of a zone: one for each remainder of each prime.";
        SUMS = 79, "Cells of an invertible table: key sum; count in 32 bits, above it the check sum.";
        FOREIGN = 90, "Cells of another program's filter, one section per layer, as far as they have been loaded.";
        OWNERS = 110, "Owners of a bank, 16 bytes each: mixed hash, first line and number of keys.";
        NOTE = 91, "The text of a note, which a service keeps beside its filters.";
        SIGNATURES = 120, "Signatures of a block of rows, sliced by bits: all slices of rank 0, then of each higher rank.";
        TERMS = 121, "Hashes of listed terms in order, each beside its bits: a byte per rank, or bit 63 and a private row.";
        COLUMN_NAMES = 122, "Names of columns in UTF-8, each followed by a zero byte.";
    }
}

/// Numbers of files without a row in the registry, and the Python class of what they hold.
macro_rules! unregistered {
    ($($(#[doc = $meaning:tt])* $NAME:ident = $number:literal, $class:literal;)*) => {
        $($(#[doc = $meaning])* pub const $NAME: u16 = $number;)*

        /// The number and the class of each.
        pub const UNREGISTERED: &[(u16, &str)] = &[$(($NAME, $class),)*];
    };
}

unregistered! {
    /// A Bloom filter of `RedisBloom`. This number and the next two are in files of the service.
    REDISBLOOM = 16_385, "ForeignScalableFilter";
    /// A cuckoo filter of `RedisBloom`.
    REDISBLOOM_CUCKOO = 16_386, "ForeignCuckooFilter";
    /// A small text stored beside the filters, which has no class.
    NOTE = 16_387, "";
    /// A Bloom filter under the rule of another program.
    FOREIGN = 16_388, "ForeignFilter";
    /// A filter of another program, built of all its keys at once.
    FOREIGN_STATIC = 16_389, "ForeignStaticFilter";
    /// An index of signatures, which is not a filter.
    SIGNATURES = 16_400, "SignatureIndex";
    /// Many filters, one an owner.
    BANK = 16_401, "FilterBank";
}

/// The class of files with this number, empty if they have none.
pub const fn class_of(variant: u16) -> &'static str {
    let mut at = 0;
    while at < UNREGISTERED.len() {
        if UNREGISTERED[at].0 == variant {
            return UNREGISTERED[at].1;
        }
        at += 1;
    }
    ""
}

/// The error for a part of a file that has an impossible value.
#[cold]
pub fn damage_error(part: &str) -> Error {
    Error::format(format!("the {part} in the file is invalid; the file is damaged, or from a newer release"))
}

/// The error for a file without a filter of this library's own: one of another program's, or of a later release.
pub fn unreadable(variant: u16) -> Error {
    let class = class_of(variant);
    if variant == NOTE {
        return Error::format(
            "the file holds a note of the service, which only the service reads: give it to one with RESTORE name \
             bytes, or PUT /v1/filters/NAME/dump, and ask it there",
        );
    }
    if class.is_empty() {
        return Error::format(format!(
            "the file holds structure number {variant}, which this release does not know; use a newer release"
        ));
    }
    let what = if class.starts_with("Foreign") { ", a filter of another program's" } else { "" };
    Error::format(format!("the file holds a {class}{what}; the Python package opens it, with fullbloom.open()"))
}
