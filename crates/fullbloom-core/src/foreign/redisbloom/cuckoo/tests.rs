use super::*;

/// Of CF.ADD c x: 512 buckets of 2, 20 iterations, expansion 1.
const HEADER: [u8; HEADER_BYTES] =
    *b"\x01\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\x14\0\x01\0";
const HEADER_BYTES: usize = super::HEADER;

#[test]
fn the_header_of_the_program_comes_out() -> Result<()> {
    let mut filter = Cuckoo::construct(Shape::new(1024, 2, 20, 1)?)?;
    filter.add(hash(b"x"))?;
    assert_eq!(filter.header(), HEADER);
    Ok(())
}

#[test]
fn keys_come_and_go_through_many_tables_and_a_dump() -> Result<()> {
    let mut one = Cuckoo::construct(Shape::new(64, 2, 20, 2)?)?;
    let key = |number: u32| hash(&number.to_le_bytes());
    (0..3000).try_for_each(|number| one.add(key(number)))?;
    assert!((0..3000).all(|number| one.contains(key(number)) && one.count(key(number)) > 0));
    let mut other = Cuckoo::from_header(&one.header(), 1 << 20)?;
    let mut at = 1;
    while let Some((next, piece)) = one.piece(at) {
        other.load(next, &piece)?;
        at = next;
    }
    let tables = one.tables().len();
    for number in 0..2900 {
        assert!(one.remove(key(number))? && other.remove(key(number))?);
    }
    assert!(one.tables().len() < tables && (2900..3000).all(|number| one.contains(key(number))));
    assert_eq!((one.header(), one.items()), (other.header(), 100));
    assert!(one.tables().iter().zip(other.tables()).all(|(a, b)| a.arrived() == b.arrived()));
    Ok(())
}

#[test]
fn a_full_filter_that_has_one_table_stays_as_it_is() -> Result<()> {
    let mut filter = Cuckoo::construct(Shape::new(8, 2, 20, 0)?)?;
    let mut before = Vec::new();
    for number in 0..100u32 {
        before = filter.tables()[0].arrived().to_vec();
        if let Err(Error::Capacity(_)) = filter.add(hash(&number.to_le_bytes())) {
            break;
        }
    }
    assert_eq!(filter.tables()[0].arrived(), before);
    assert!(filter.items() >= 6);
    Ok(())
}

#[test]
fn forged_headers_are_refused() {
    assert!(Cuckoo::from_header(&HEADER, 1024).is_ok());
    for length in 0..HEADER.len() {
        assert!(Cuckoo::from_header(&HEADER[..length], u64::MAX).is_err());
    }
    // Items, buckets, tables, slots, iterations, expansion.
    for (at, byte) in [(7, 1), (9, 3), (9, 0), (15, 9), (24, 0), (31, 1), (32, 0), (33, 1), (34, 0), (37, 255)] {
        let mut lie = HEADER;
        lie[at] = byte;
        assert!(Cuckoo::from_header(&lie, 1 << 30).is_err(), "{at}");
    }
}
