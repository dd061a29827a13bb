use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).map_or(0, |digit| digit as u8);
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Of BF.RESERVE a 0.01 100, BF.ADD a x.
const HEADER: &str = "0100000000000000 01000000 05000000 02000000 9000000000000000 8004000000000000 \
    0100000000000000 7b14ae47e17a743f e9862fb2350e2640 08000000 6400000000000000 00";

#[test]
fn the_header_of_the_program_comes_out() -> Result<()> {
    let mut chain = Chain::construct(100, 0.01, 2, true)?;
    assert!(chain.add(hash(b"x"))?);
    assert_eq!(chain.header(), hex(HEADER));
    let still = Chain::construct(100, 0.01, 2, false)?;
    assert_eq!((still.nbytes(), still.layers()[0].hashes, still.header()[12]), (120, 7, 13));
    Ok(())
}

#[test]
fn probes_are_those_of_the_formula() -> Result<()> {
    for bytes in [8, 144, 1 << 20, 1_000_008] {
        let layer = Layer::with_cells(Cells::with_len(bytes)?, 1, 1e-9, bits_per_entry(1e-9));
        for number in 0..200u64 {
            let [first, second] = hash(&number.to_le_bytes());
            let mut probes = Probes::new([first, second], &layer);
            for i in 0..u64::from(layer.hashes) {
                assert_eq!(probes.next(&layer), first.wrapping_add(i.wrapping_mul(second)) % layer.bits);
            }
        }
    }
    Ok(())
}

#[test]
fn dumps_load_and_grow_alike() -> Result<()> {
    let mut one = Chain::construct(20, 0.02, 3, true)?;
    let mut other: Option<Chain> = None;
    for number in 0..2000u32 {
        let key = hash(&number.to_le_bytes());
        let new = one.add(key)?;
        if number == 700 {
            let mut copy = Chain::from_header(&one.header(), 1 << 30)?;
            let mut at = 1;
            while let Some((next, piece)) = one.piece(at) {
                copy.load(next, &piece)?;
                at = next;
            }
            other = Some(copy);
        } else if let Some(other) = &mut other {
            assert_eq!(other.add(key)?, new);
        }
    }
    let other = other.unwrap_or_else(|| unreachable!());
    assert_eq!((other.header(), other.layers().len()), (one.header(), 5));
    for (ours, theirs) in one.layers().iter().zip(other.layers()) {
        assert_eq!(ours.cells().arrived(), theirs.cells().arrived());
    }
    Ok(())
}

#[test]
fn forged_headers_are_refused() {
    let sound = hex(HEADER);
    assert!(Chain::from_header(&sound, 144).is_ok());
    assert!(matches!(Chain::from_header(&sound, 143), Err(Error::Memory(_))));
    for length in 0..sound.len() {
        assert!(Chain::from_header(&sound[..length], u64::MAX).is_err(), "{length}");
    }
    // The factor of growth may be any, and the last digits of the two real numbers.
    let free = |at: &usize| [16..20, 44..49, 52..57].iter().any(|range| range.contains(at));
    for at in (0..73).filter(|at| !free(at)) {
        let mut lie = sound.clone();
        lie[at] ^= 0x40;
        assert!(Chain::from_header(&lie, u64::MAX).is_err(), "{at}");
    }
}
