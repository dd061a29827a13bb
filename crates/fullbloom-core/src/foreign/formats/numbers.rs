//! Numbers in the little-endian files of packages for Python, and their limits.

/// 128 GiB of bits; sums of 64 positions stay in 63 bits.
pub(super) const MOST_BITS: u64 = 1 << 40;
pub(super) const MOST_HASHES: u32 = 64;

/// A number of 8 bytes at `at`.
pub(super) fn word(bytes: &[u8], at: usize) -> Result<u64, String> {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    word.map(|word| u64::from_le_bytes(*word)).ok_or_else(|| "it ends within its numbers".into())
}

/// A number of hashes.
pub(super) fn hashes(number: u64) -> Result<u32, String> {
    let fits = u32::try_from(number).ok().filter(|hashes| (1..=MOST_HASHES).contains(hashes));
    fits.ok_or_else(|| format!("its number of hashes is {number}, not between 1 and {MOST_HASHES}"))
}

/// num_bits and num_hashes, if filters can have so many.
pub(super) fn check_shape(bits: f64, hashes: f64) -> Option<(u64, u32)> {
    let fits = bits <= MOST_BITS as f64 && hashes <= f64::from(MOST_HASHES);
    fits.then_some(((bits as u64).max(1), (hashes as u32).max(1)))
}
