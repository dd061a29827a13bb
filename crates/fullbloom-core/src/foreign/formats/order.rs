//! [`Order`]: the order of bytes and bits.

/// The order of the bytes of a word, and of the bits of a byte, in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The highest first.
    Big,
    /// The lowest first.
    Little,
    /// The lowest byte first, and in each byte the highest bit first, as in Redis.
    HighBits,
}

impl Order {
    /// Whether the first bit of a byte is its lowest or its highest one.
    pub fn name(self) -> &'static str {
        if self == Order::HighBits { "msb" } else { "lsb" }
    }

    /// Turns words as they are in files into words as they are in memory, or back.
    pub(in crate::foreign) fn arrange(self, words: &mut [u8]) {
        match self {
            Order::Big => words.as_chunks_mut::<8>().0.iter_mut().for_each(|word| word.reverse()),
            Order::Little => {}
            Order::HighBits => words.iter_mut().for_each(|byte| *byte = byte.reverse_bits()),
        }
    }
}
