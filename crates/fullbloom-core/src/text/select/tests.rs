#![cfg(test)]

use proptest::prelude::*;

use super::*;
use crate::bloom::BloomFilter;
use crate::key::KeyDomains;
use crate::structure::testing::fixed_cases;
use crate::structure::{Filter, Sizable};

const CSV: Table = Table { delimiter: b',', quotes: true };
const TSV: Table = Table { delimiter: b'\t', quotes: false };

fn own() -> Hashing {
    Hashing::Own(hasher())
}

fn hasher() -> KeyHasher {
    KeyHasher::seeded(7)
}

fn rows(table: Table, columns: &[usize], types: &[KeyType]) -> Selection {
    Selection::rows(own(), table, columns, types).unwrap()
}

fn objects(names: &[&str]) -> Selection {
    let names: Vec<_> = names.iter().map(|name| name.to_string()).collect();
    Selection::objects(own(), &names, &[KeyType::Auto]).unwrap()
}

fn hashes(selection: &Selection, block: &str) -> Vec<u64> {
    let read = selection.read(block.as_bytes(), false).unwrap();
    assert_eq!(read.first_fault(), None);
    read.hashes().to_vec()
}

fn fault(selection: &Selection, block: &[u8]) -> (u64, Reason) {
    selection.read(block, false).unwrap().first_fault().expect("a fault").clone()
}

fn texts(texts: &[&str]) -> Vec<u64> {
    texts.iter().map(|text| hasher().text(text.as_bytes())).collect()
}

#[test]
fn cells_are_found_whatever_their_quotes() {
    let block = "a,b,c\r\n1,\"two\nlines, \"\"quoted\"\"\",x\n\n2,\"\",\"y\"\n3,in\"side,\"z\"tail,more\n4, \"b\",end";
    let by = |column| hashes(&rows(CSV, &[column], &[KeyType::Auto]), block);
    assert_eq!(by(0), texts(&["a", "1", "2", "3", "4"]));
    assert_eq!(by(1), texts(&["b", "two\nlines, \"quoted\"", "", "in\"side", " \"b\""]));
    assert_eq!(by(2), texts(&["c", "x", "y", "ztail", "end"]));
    let tabs = rows(TSV, &[1], &[KeyType::Auto]);
    assert_eq!(hashes(&tabs, "1\t\"a\n2\tb\rc\r\n3\t\t\n"), texts(&["\"a", "b\rc", ""]));
}

#[test]
fn several_columns_are_a_tuple_in_the_order_asked_for() {
    let one = |columns: &[usize], block| hashes(&rows(CSV, columns, &[KeyType::Text]), block);
    assert_eq!(one(&[0, 2], "a,x,b\n"), one(&[2, 0], "b,x,a\n"));
    assert_ne!(one(&[0, 2], "a,x,b\n"), one(&[2, 0], "a,x,b\n"));
    assert_eq!(one(&[1, 1], "a,b\n"), one(&[0, 1], "b,b\n"));
}

#[test]
fn malformed_records_are_reported_with_their_line() {
    let second = rows(CSV, &[1], &[KeyType::Auto]);
    assert_eq!(fault(&second, b"1,a\n2\n"), (2, Reason::ShortRow { cells: 1, wanted: 2 }));
    assert_eq!(fault(&second, b"1,a\n2,b\rc\n"), (2, Reason::CarriageReturn));
    assert_eq!(fault(&second, b"1,a\n\"x\ny\",b\n2,c,d\re\n").0, 4);
    assert_eq!(fault(&second, b"1,a\n2,\"b\n3,c\n"), (2, Reason::OpenQuote));
    let skipped = second.read(b"1,a\n2,\"b\n3,c\n4\n5,d\re,f\n6,g\n", true).unwrap();
    assert_eq!((skipped.len(), skipped.faults(), skipped.hashes()), (6, 3, &texts(&["a", "c", "g"])[..]));
    let id = objects(&["id"]);
    for (line, reason) in [
        (&b"[1]"[..], Reason::NotAnObject("an array")),
        (b"7", Reason::NotAnObject("a number")),
        (b"{\"id\": 1", Reason::NotJson("it is cut off", 9)),
        (b"{\"id\": \"\xff\"}", Reason::NotJson("no UTF-8", 9)),
        (b"{\"id\": 1} x", Reason::NotJson("more than one value", 11)),
        (b"{\"id\": \"\\ud83d\"}", Reason::HalfPair(0xd83d)),
    ] {
        let block = [b"{\"id\": 1}\n\n", line, b"\n"].concat();
        assert_eq!(fault(&id, &block), (3, reason));
    }
    let deep = format!("{{\"x\": {}}}\n", "[".repeat(MOST_DEPTH + 1));
    assert_eq!(fault(&id, deep.as_bytes()).1, Reason::TooDeep);
}

#[test]
fn values_are_found_by_dotted_names() {
    let at = |names: &[&str], line: &str| hashes(&objects(names), line);
    assert_eq!(at(&["a.b"], "{\"x\": [{\"a\": 1}], \"a\": {\"c\": {}, \"b\": \"v\"}}\n"), texts(&["v"]));
    assert_eq!(at(&["a"], "{\"\\u0061\": \"\\u00e9\\ud83d\\ude00\\n\"}"), texts(&["\u{e9}\u{1f600}\n"]));
    assert_eq!(at(&["a"], "{\"a\": 1, \"a\": \"last\"}"), texts(&["last"]));
    assert_eq!(at(&["a.b"], "{\"a\": {\"b\": \"v\"}, \"a\": {}}"), []);
    assert_eq!(at(&["a.b"], "{\"a\": 1}\n{\"a\": {\"b\": null}}\n{}\n \r\n"), []);
    assert_eq!(
        at(&["a"], "{\"a\": {\"y\": 1.50, \"x\": [true, \"\\u00e9\"]}}"),
        at(&["a"], "{\"a\":{\"x\":[ true,\"\u{e9}\"],\"y\":15e-1}}")
    );
}

proptest! {
    #![proptest_config(fixed_cases())]
    /// Every way to cut a text in two gives the records of the whole, and no bytes make anything panic.
    #[test]
    fn blocks_may_be_cut_anywhere(
        text in proptest::collection::vec(prop::sample::select(b"ab,\"\n\r{}:[]1\\u\t ".to_vec()), 0..80),
        at in 0..80usize,
    ) {
        let selections = [
            rows(CSV, &[0], &[KeyType::Auto]), rows(CSV, &[1, 0], &[KeyType::Integer]), rows(TSV, &[1], &[KeyType::Text]),
            objects(&["a"]), objects(&["a.b", "b"]), Selection::lines(own(), KeyType::Auto),
        ];
        for selection in &selections {
            let whole = selection.read(&text, true).unwrap();
            // Blocks are of whole lines.
            let first = &text[..at.min(text.len())];
            let first = &first[..memchr::memrchr(b'\n', first).map_or(0, |at| at + 1)];
            let cut = selection.find_end(first);
            prop_assert!(cut <= first.len());
            let (head, tail) = (selection.read(&text[..cut], true).unwrap(), selection.read(&text[cut..], true).unwrap());
            prop_assert_eq!(head.len() + tail.len(), whole.len());
            prop_assert_eq!([head.hashes(), tail.hashes()].concat(), whole.hashes());
            prop_assert_eq!(head.faults() + tail.faults(), whole.faults());
            let (mut kept, mut dropped) = (Vec::new(), Vec::new());
            whole.part(&text, &vec![1; whole.hashes().len()], Some(&mut kept), Some(&mut dropped)).unwrap();
            prop_assert!(dropped.is_empty());
            prop_assert!(whole.faults() > 0 || kept == text);
        }
    }
}

#[test]
fn a_filter_marks_new_and_last_records() {
    let lines = Selection::lines(own(), KeyType::Auto);
    let read = lines.read(b"a\nb\na\nc\nb\n", false).unwrap();
    let filter = BloomFilter::for_capacity(100, 1e-9, &[], hasher()).unwrap();
    assert_eq!(fresh(&filter, read.hashes()).unwrap(), [1, 1, 0, 1, 0]);
    assert!(!filter.contains_hash(read.hashes()[0]));
    let (mut last, mut mask) = (LastOccurrences::default(), [0; 5]);
    last.note(read.hashes(), &[1, 1, 0, 1, 0]).unwrap();
    last.mark(read.hashes(), &mut mask);
    assert_eq!(mask, [0, 0, 1, 1, 1]);
    read.limit(&mut mask, 3);
    assert_eq!(mask, [0, 0, 1, 0, 0]);
}

#[test]
fn rows_of_a_table_have_numbers_for_bytes() {
    let rows = KeyedRecords::of_rows(2, &[1, 0, 1], &[7, 0, 9], KeyDomains::HASHED).unwrap();
    assert_eq!((rows.len(), rows.without_key(), rows.hashes()), (3, 1, &[7, 9][..]));
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    rows.part(b"aabbcc", &[0, 1], Some(&mut kept), Some(&mut dropped)).unwrap();
    assert_eq!((&*kept, &*dropped), (&b"bbcc"[..], &b"aa"[..]));
}

#[test]
fn keys_of_other_programs_have_their_digests() {
    use crate::foreign::bits::BitFilter;
    use crate::foreign::formats;
    use crate::key::Domain;

    let guava =
        BitFilter::with_shape(formats::find_by_name("guava").unwrap(), foreign::key_type::KeyType::Long, 0, 64, 3);
    let hashing = guava.unwrap().hashing();
    let lines = Selection::lines(Hashing::Foreign(hashing), KeyType::Integer);
    let read = lines.read(b"1\n-2\n\nx\n3", true).unwrap();
    let wanted: Vec<_> =
        [1i64, -2, 3].iter().filter_map(|n| hashing.digest(Domain::Integer, &n.to_le_bytes())).collect();
    assert_eq!((read.digests(), read.hashes().len()), (&wanted[..], 0));
    assert_eq!((read.len(), read.keys(), read.without_key(), read.faults()), (5, 3, 1, 1));
    assert!(read.first_fault().unwrap().1.at(4).contains("is not a valid int"));
    let texts = Selection::lines(Hashing::Foreign(hashing), KeyType::Auto);
    assert!(fault(&texts, b"1\n").1.at(1).contains("keys of this filter must be int of 64 bits"));
    let seeded = BitFilter::with_shape(
        formats::find_by_name("sha256-seeded").unwrap(),
        foreign::key_type::KeyType::Bytes,
        0,
        99,
        7,
    );
    let hashing = seeded.unwrap().hashing();
    let read = Selection::lines(Hashing::Foreign(hashing), KeyType::Auto).read(b"a\nb\n", false).unwrap();
    assert_eq!((read.digests().len(), read.keys()), (8, 2));
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    read.part(b"a\nb\n", &[0, 1], Some(&mut kept), Some(&mut dropped)).unwrap();
    assert_eq!((kept, dropped), (b"b\n".to_vec(), b"a\n".to_vec()));
}
