//! What a listed term sets, and how a file says so.

/// Ranks 0 to 6.
pub const MOST_RANKS: usize = 7;

/// Marks a private row in a treatment.
const PRIVATE: u64 = 1 << 63;

/// What a listed term sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// One row that no other term sets.
    Private(u64),
    /// Bits at each rank, a byte each, rank 0 lowest.
    Shared([u8; MOST_RANKS]),
}

impl Treatment {
    pub(super) fn encode(self) -> u64 {
        match self {
            Treatment::Private(row) => PRIVATE | row,
            Treatment::Shared(bits) => bits.iter().rev().fold(0, |word, bits| word << 8 | u64::from(*bits)),
        }
    }

    pub(super) fn decode(word: u64) -> Self {
        if word & PRIVATE != 0 {
            return Treatment::Private(word & !PRIVATE);
        }
        Treatment::Shared(std::array::from_fn(|rank| (word >> (8 * rank)) as u8))
    }
}
