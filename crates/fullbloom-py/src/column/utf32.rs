//! Texts as UTF-32 (NumPy's `U`), which are keys by their UTF-8.

use fullbloom_core::key::{Domain, KeyHasher};

/// Code points encoded together, into four times as many bytes.
const PIECE: usize = 256;

/// A buffer in which texts are encoded, one after the other.
pub(super) type Buffer = [u8; 4 * PIECE];

/// A buffer for [`hash`].
pub(super) const EMPTY: Buffer = [0; 4 * PIECE];

/// The hash of the text of `points` code points that `point` gives, trailing zeros left out.
#[inline]
pub(super) fn hash(h: &KeyHasher, points: usize, point: impl Fn(usize) -> u32, buffer: &mut Buffer) -> u64 {
    let len = (0..points).rposition(|i| point(i) != 0).map_or(0, |last| last + 1);
    if len <= PIECE {
        return h.text(encode(0, len, point, buffer));
    }
    // As wide as the widest text of an array, which may be a gigabyte: no copy of it is made.
    h.pieces(Domain::Text, |push| {
        for start in (0..len).step_by(PIECE) {
            push(encode(start, PIECE.min(len - start), &point, buffer));
        }
    })
}

/// The UTF-8 of `len` code points from `start` on, at most [`PIECE`].
#[inline]
fn encode(start: usize, len: usize, point: impl Fn(usize) -> u32, buffer: &mut Buffer) -> &[u8] {
    let mut end = 0;
    for i in start..start + len {
        // Known to be characters, unless another thread changes them meanwhile.
        let character = char::from_u32(point(i)).unwrap_or(char::REPLACEMENT_CHARACTER);
        end += character.encode_utf8(&mut buffer[end..]).len();
    }
    &buffer[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_hashes_as_its_utf8() {
        let points: Vec<u32> = (0..1000).map(|i| [0x41, 0xe9, 0x65e5, 0x1f511, 0][i % 5]).collect();
        let h = KeyHasher::seeded(7);
        for len in [0, 1, 4, 5, 255, 256, 257, 258, 511, 512, 513, 999, 1000] {
            let text: String = points[..len].iter().filter_map(|&p| char::from_u32(p)).collect();
            let expected = h.text(text.trim_end_matches('\0').as_bytes());
            assert_eq!(hash(&h, len, |i| points[i], &mut { EMPTY }), expected);
        }
    }
}
