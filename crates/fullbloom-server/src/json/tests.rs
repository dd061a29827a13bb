use super::*;

const CAPS: Caps = Caps { keys: 4, key_bytes: 100 };

fn own() -> Hashing {
    Hashing::Own(KeyHasher::seeded(7))
}

fn get_refusal(text: &[u8]) -> String {
    body(text, &own(), CAPS).unwrap_err().text
}

#[test]
fn keys_have_the_hashes_of_the_key_rule() {
    let hasher = KeyHasher::seeded(7);
    let found =
        body(br#" {"keys": ["a", 1, true, "\u00e9\ud83d\ude00\n"], "x": [{"y": null}]} "#, &own(), CAPS).unwrap();
    let expected =
        [hasher.text(b"a"), hasher.hash_signed(1), hasher.hash_signed(1), hasher.text("\u{e9}\u{1f600}\n".as_bytes())];
    let domains = KeyDomains::TEXT.with(KeyDomains::of(Domain::Integer));
    assert_eq!(found, Body { words: expected.to_vec(), domains, single: false, values: None });
    let one = body(br#"{"keys": [1, 2], "key": -2.5e1}"#, &own(), CAPS).unwrap();
    assert_eq!((one.words, one.single), (vec![hasher.float(-25.0)], true));
    assert_eq!(one.domains, KeyDomains::of(Domain::Float));
    let tuple = body(br#"{"key": ["a", [1]]}"#, &own(), CAPS).unwrap();
    let mut parts = vec![0, 1, 0, 0, 0, 0, 0, 0, 0, b'a', 3, 17, 0, 0, 0, 0, 0, 0, 0, 1, 8, 0, 0, 0, 0, 0, 0, 0];
    parts.extend_from_slice(&1i64.to_le_bytes());
    assert_eq!(tuple.words, [hasher.bytes(Domain::Tuple, &parts)]);
    assert_eq!(tuple.domains, KeyDomains::of(Domain::Tuple));
    let pairs = body(br#"{"values": [1, 18446744073709551615], "keys": ["a", "b"]}"#, &own(), CAPS).unwrap();
    assert_eq!(pairs.values, Some(vec![1, u64::MAX]));
    let lined = lines(b"\"a\"\r\n\n1\n", &own(), CAPS).unwrap();
    assert_eq!((lined.words, lined.domains), (vec![hasher.text(b"a"), hasher.hash_signed(1)], domains));
}

#[test]
fn large_integers_have_the_shortest_encoding() {
    // 10^40 is 0x1d6329f1c35ca4bfabb9f5610000000000, 17 bytes, whose highest bit is clear.
    let ten = two_complement(false, &[b"1".as_slice(), &[b'0'; 40]].concat());
    assert_eq!(ten.len(), 17);
    assert_eq!((ten[16], ten[15], ten[0]), (0x1d, 0x63, 0));
    let minus = two_complement(true, &[b"1".as_slice(), &[b'0'; 40]].concat());
    assert_eq!((minus.len(), minus[16], minus[15], minus[0]), (17, 0xe2, 0x9c, 0));
    // 2^135 needs a byte for the sign, -2^135 does not.
    let power = b"43556142965880123323311949751266331066368";
    assert_eq!((two_complement(false, power).len(), two_complement(true, power).len()), (18, 17));
}

#[test]
fn limits_are_checked_while_reading() {
    assert!(get_refusal(b"{\"keys\": [1,2,3,4,5").contains("4 keys"));
    assert!(get_refusal(format!("{{\"key\": \"{}\"}}", "x".repeat(101)).as_bytes()).contains("101 bytes"));
    let deep = |depth: usize| format!("{{\"key\": {}{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(body(deep(8).as_bytes(), &own(), CAPS).is_ok());
    let wide = Caps { keys: 4, key_bytes: 1 << 20 };
    assert!(body(deep(64).as_bytes(), &own(), wide).is_ok());
    assert!(body(deep(65).as_bytes(), &own(), wide).unwrap_err().text.contains("64 levels"));
    assert!(get_refusal(deep(100_000).as_bytes()).contains("more"));
    assert!(get_refusal(format!("{{\"x\": {}", "[".repeat(100_000)).as_bytes()).contains("too deep"));
    assert!(get_refusal(format!("{{\"key\": {}}}", "1".repeat(4301)).as_bytes()).contains("4300 digits"));
    assert!(lines(b"1\n2\n3\n4\n5", &own(), CAPS).unwrap_err().text.contains("4 keys"));
}

#[test]
fn invalid_json_is_rejected() {
    for text in [
        "",
        "{",
        "{\"key\"",
        "{\"key\":}",
        "{\"key\":1,}",
        "{\"key\":01}",
        "{\"key\":1.}",
        "{\"key\":1e}",
        "{\"key\":+1}",
        "{\"key\":\"a}",
        "{\"key\":\"\n\"}",
        "{\"key\":\"\\x\"}",
        "{\"key\":\"\\u12g4\"}",
        "{\"key\":\"\\ud800\"}",
        "{\"key\":tru}",
        "{\"key\":null}",
        "{\"key\":{}}",
        "{\"key\":[null]}",
        "{\"key\":1} x",
        "[1]",
        "{\"keys\":1}",
        "{\"keys\":[1}",
        "{\"keys\":[1],\"values\":[-1]}",
        "{\"keys\":[1],\"values\":[1.5]}",
        "{\"keys\":[1],\"values\":3}",
        "{'key':1}",
        "{key:1}",
        "{\"key\":--1}",
        "\"\\",
    ] {
        assert!(body(text.as_bytes(), &own(), CAPS).is_err(), "{text}");
    }
    assert!(get_refusal(b"{\"key\":\"\xff\"}").contains("UTF-8"));
}
