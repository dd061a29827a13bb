//! Keccak-256 as Ethereum uses it (Bertoni et al., 2011): the padding is that of before the SHA-3 standard.

const LANES: usize = 25;
/// Bytes of a block: 1,600 bits less twice 256.
const RATE: usize = 136;

const ROUNDS: [u64; 24] = [
    0x0000_0000_0000_0001,
    0x0000_0000_0000_8082,
    0x8000_0000_0000_808a,
    0x8000_0000_8000_8000,
    0x0000_0000_0000_808b,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8009,
    0x0000_0000_0000_008a,
    0x0000_0000_0000_0088,
    0x0000_0000_8000_8009,
    0x0000_0000_8000_000a,
    0x0000_0000_8000_808b,
    0x8000_0000_0000_008b,
    0x8000_0000_0000_8089,
    0x8000_0000_0000_8003,
    0x8000_0000_0000_8002,
    0x8000_0000_0000_0080,
    0x0000_0000_0000_800a,
    0x8000_0000_8000_000a,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8080,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8008,
];

/// The lane that each step of rho and pi moves to, and by how many bits it rotates.
const MOVES: [(usize, u32); 24] = [
    (10, 1),
    (7, 3),
    (11, 6),
    (17, 10),
    (18, 15),
    (3, 21),
    (5, 28),
    (16, 36),
    (8, 45),
    (21, 55),
    (24, 2),
    (4, 14),
    (15, 27),
    (23, 41),
    (19, 56),
    (13, 8),
    (12, 25),
    (2, 43),
    (20, 62),
    (14, 18),
    (22, 39),
    (9, 61),
    (6, 20),
    (1, 44),
];

/// The permutation Keccak-f[1600].
fn permute(state: &mut [u64; LANES]) {
    for constant in ROUNDS {
        let columns: [u64; 5] = std::array::from_fn(|x| (0..5).fold(0, |parity, y| parity ^ state[x + 5 * y]));
        for x in 0..5 {
            let change = columns[(x + 4) % 5] ^ columns[(x + 1) % 5].rotate_left(1);
            (0..5).for_each(|y| state[x + 5 * y] ^= change);
        }
        let mut moving = state[1];
        for (to, by) in MOVES {
            moving = std::mem::replace(&mut state[to], moving.rotate_left(by));
        }
        for row in state.as_chunks_mut::<5>().0 {
            let old = *row;
            for x in 0..5 {
                row[x] = old[x] ^ (!old[(x + 1) % 5] & old[(x + 2) % 5]);
            }
        }
        state[0] ^= constant;
    }
}

fn absorb(state: &mut [u64; LANES], block: &[u8; RATE]) {
    for (lane, bytes) in state.iter_mut().zip(block.as_chunks::<8>().0) {
        *lane ^= u64::from_le_bytes(*bytes);
    }
    permute(state);
}

/// The first 8 of the 32 bytes of the hash of `bytes`.
pub fn keccak256_prefix(bytes: &[u8]) -> [u8; 8] {
    keccak256(bytes)[0].to_le_bytes()
}

/// The hash, as four little-endian words.
fn keccak256(bytes: &[u8]) -> [u64; 4] {
    let mut state = [0; LANES];
    let (blocks, rest) = bytes.as_chunks::<RATE>();
    blocks.iter().for_each(|block| absorb(&mut state, block));
    let mut last = [0; RATE];
    last[..rest.len()].copy_from_slice(rest);
    last[rest.len()] |= 0x01;
    last[RATE - 1] |= 0x80;
    absorb(&mut state, &last);
    [state[0], state[1], state[2], state[3]]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        keccak256(bytes).iter().flat_map(|word| word.to_le_bytes()).map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn published_vectors_hold() {
        assert_eq!(hex(b""), "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
        assert_eq!(hex(b"abc"), "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45");
        assert_eq!(hex(b"test"), "9c22ff5f21f0b81b113e63f7db6da94fedef11b2119b4088b89664fb9a3cb658");
    }

    /// Ethereum's logs bloom of the 100 texts of go-ethereum's `TestBloomExtensively`, whose hash that test states.
    #[test]
    fn blocks_of_more_bytes_than_the_rate_hold() {
        let mut bloom = [0u8; 256];
        for i in 0..100 {
            let hash = keccak256_prefix(format!("xxxxxxxxxx data {i} yyyyyyyyyyyyyy").as_bytes());
            for pair in hash[..6].as_chunks::<2>().0 {
                let bit = u16::from_be_bytes(*pair) % 2048;
                bloom[255 - usize::from(bit / 8)] |= 1 << (bit % 8);
            }
        }
        assert_eq!(hex(&bloom), "c8d3ca65cdb4874300a9e39475508f23ed6da09fdbc487f89a2dcf50b09eb263");
    }
}
