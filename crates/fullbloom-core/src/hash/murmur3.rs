//! MurmurHash3 (Appleby, 2011): `x86_32`, and `x64_128` with seed 0.

/// Bytes taken in, in blocks of `N`.
struct Blocks<const N: usize> {
    rest: [u8; N],
    held: usize,
    total: u64,
}

impl<const N: usize> Blocks<N> {
    const EMPTY: Self = Blocks { rest: [0; N], held: 0, total: 0 };

    /// Gives whole blocks to `each` and keeps the rest.
    fn update(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8; N])) {
        self.total = self.total.wrapping_add(bytes.len() as u64);
        if self.held > 0 {
            let taken = bytes.len().min(N - self.held);
            self.rest[self.held..self.held + taken].copy_from_slice(&bytes[..taken]);
            self.held += taken;
            bytes = &bytes[taken..];
            if self.held < N {
                return;
            }
            each(&self.rest);
        }
        let (blocks, rest) = bytes.as_chunks::<N>();
        blocks.iter().for_each(each);
        self.rest[..rest.len()].copy_from_slice(rest);
        self.held = rest.len();
    }

    /// The rest, filled up with zeros.
    fn pad(&self) -> [u8; N] {
        let mut last = [0; N];
        last[..self.held].copy_from_slice(&self.rest[..self.held]);
        last
    }
}

/// The state after one more word.
#[inline(always)]
pub(super) fn mixed32(h: u32, k: u32) -> u32 {
    (h ^ scrambled32(k)).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

/// The hash, from the state after all words.
#[inline(always)]
pub(super) fn finished32(h: u32, total: u32) -> u32 {
    let h = h ^ total;
    let h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    let h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

/// `MurmurHash3_x86_32`, piece by piece.
pub struct Murmur32 {
    h: u32,
    blocks: Blocks<4>,
}

#[inline(always)]
fn scrambled32(k: u32) -> u32 {
    k.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
}

/// `MurmurHash3_x86_32` of `bytes` with a seed.
pub fn murmur32(bytes: &[u8], seed: u32) -> u32 {
    let mut state = Murmur32 { h: seed, blocks: Blocks::EMPTY };
    state.update(bytes);
    state.digest()
}

impl Murmur32 {
    /// Of no bytes yet.
    pub fn new() -> Self {
        Murmur32 { h: 0, blocks: Blocks::EMPTY }
    }

    /// Takes in bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        let h = &mut self.h;
        self.blocks.update(bytes, |block| {
            *h = mixed32(*h, u32::from_le_bytes(*block));
        });
    }

    /// The hash of all bytes so far.
    pub fn digest(&self) -> u32 {
        finished32(self.h ^ scrambled32(u32::from_le_bytes(self.blocks.pad())), self.blocks.total as u32)
    }
}

impl Default for Murmur32 {
    fn default() -> Self {
        Self::new()
    }
}

/// `MurmurHash3_x64_128`, piece by piece.
pub struct Murmur128 {
    h1: u64,
    h2: u64,
    blocks: Blocks<16>,
}

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// What the two words of a block put into the two halves.
#[inline(always)]
fn scrambled128(block: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(*block);
    let (k1, k2) = (both as u64, (both >> 64) as u64);
    (k1.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2), k2.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1))
}

/// `MurmurHash3_x64_128` of `bytes`, both halves.
#[inline]
pub fn murmur128(bytes: &[u8]) -> [u64; 2] {
    murmur128_seeded(bytes, 0)
}

/// [`murmur128`] under `seed`.
#[inline]
pub fn murmur128_seeded(bytes: &[u8], seed: u32) -> [u64; 2] {
    let (mut h1, mut h2) = (u64::from(seed), u64::from(seed));
    let (blocks, rest) = bytes.as_chunks::<16>();
    for block in blocks {
        (h1, h2) = mixed128(h1, h2, scrambled128(block));
    }
    let mut last = [0; 16];
    last[..rest.len()].copy_from_slice(rest);
    finished128(h1, h2, &last, bytes.len() as u64)
}

/// [`murmur128`] of 8 bytes.
#[inline(always)]
pub fn murmur128_word(word: u64) -> [u64; 2] {
    finished128(0, 0, &u128::from(word).to_le_bytes(), 8)
}

/// The halves after the two words of one more block.
#[inline(always)]
fn mixed128(h1: u64, h2: u64, (k1, k2): (u64, u64)) -> (u64, u64) {
    let h1 = (h1 ^ k1).rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
    let h2 = (h2 ^ k2).rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    (h1, h2)
}

/// The hash, from the halves after all blocks, the rest filled up with zeros, and the number of bytes.
#[inline(always)]
fn finished128(h1: u64, h2: u64, rest: &[u8; 16], total: u64) -> [u64; 2] {
    let (k1, k2) = scrambled128(rest);
    let (h1, h2) = (h1 ^ k1 ^ total, h2 ^ k2 ^ total);
    let h1 = h1.wrapping_add(h2);
    let h2 = h2.wrapping_add(h1);
    let (h1, h2) = (final_mix(h1), final_mix(h2));
    let first = h1.wrapping_add(h2);
    [first, h2.wrapping_add(first)]
}

#[inline(always)]
pub(crate) fn final_mix(k: u64) -> u64 {
    let k = (k ^ (k >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let k = (k ^ (k >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

impl Murmur128 {
    /// Of no bytes yet.
    pub fn new() -> Self {
        Murmur128 { h1: 0, h2: 0, blocks: Blocks::EMPTY }
    }

    /// Takes in bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        let (h1, h2) = (&mut self.h1, &mut self.h2);
        self.blocks.update(bytes, |block| {
            (*h1, *h2) = mixed128(*h1, *h2, scrambled128(block));
        });
    }

    /// The first 64 bits of the hash of all bytes so far.
    pub fn digest(&self) -> u64 {
        finished128(self.h1, self.h2, &self.blocks.pad(), self.blocks.total)[0]
    }
}

impl Default for Murmur128 {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOX: &[u8] = b"The quick brown fox jumps over the lazy dog";

    fn short(bytes: &[u8], step: usize) -> u32 {
        let mut state = Murmur32::new();
        bytes.chunks(step).for_each(|piece| state.update(piece));
        state.digest()
    }

    fn long(bytes: &[u8], step: usize) -> u64 {
        let mut state = Murmur128::new();
        bytes.chunks(step).for_each(|piece| state.update(piece));
        state.digest()
    }

    #[test]
    fn vectors_with_a_seed_hold() {
        // Those of Bitcoin Core's tests.
        assert_eq!((murmur32(b"", 0), murmur32(b"", 0xfba4_c795)), (0, 0x6a39_6f08));
        assert_eq!((murmur32(b"", u32::MAX), murmur32(&[0], 0)), (0x81f1_6f39, 0x514e_28b7));
        assert_eq!(murmur32(&[0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88], 0), 0xb469_8def);
    }

    #[test]
    fn published_vectors_hold_in_pieces_of_any_length() {
        // Values of the reference implementation.
        assert_eq!(murmur128(b"hello"), [0xcbd8_a7b3_41bd_9b02, 0x5b1e_906a_48ae_1d19]);
        for word in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
            assert_eq!(murmur128_word(word), murmur128(&word.to_le_bytes()));
        }
        assert_eq!(murmur128(FOX), [0xe34b_bc7b_bc07_1b6c, 0x7a43_3ca9_c49a_9347]);
        for step in 1..=FOX.len() {
            assert_eq!((short(b"", step), short(b"hello", step)), (0, 0x248b_fa47));
            assert_eq!((short(b"hello, world", step), short(FOX, step)), (0x149b_bb7f, 0x2e4f_f723));
            assert_eq!((long(b"", step), long(b"hello", step)), (0, 0xcbd8_a7b3_41bd_9b02));
            assert_eq!((long(b"hello, world", step), long(FOX, step)), (0x342f_ac62_3a5e_bc8e, 0xe34b_bc7b_bc07_1b6c));
        }
    }
}
