//! [`Order`]: the order of bytes.

/// The order of the bytes of a word in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The highest first.
    Big,
    /// The lowest first.
    Little,
}

impl Order {
    /// Turns words as they are in files into words as they are in memory, or back.
    pub(in crate::foreign) fn arrange(self, words: &mut [u8]) {
        if self == Order::Big {
            words.as_chunks_mut::<8>().0.iter_mut().for_each(|word| word.reverse());
        }
    }
}
