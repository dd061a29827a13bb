use super::*;

const CAPS: Caps = Caps { arguments: 100, bulk: 1000, request: 2000, unknown: false };

/// All commands in `bytes`, handed over in the pieces that end at `cuts`.
fn commands(bytes: &[u8], cuts: &[usize], caps: &Caps) -> Result<Vec<Vec<Vec<u8>>>, Wrong> {
    let (mut parser, mut spans, mut found, mut start) = (Parser::default(), Vec::new(), Vec::new(), 0);
    for &cut in cuts.iter().chain([&bytes.len()]) {
        loop {
            let there = &bytes[start..cut];
            let (words, length) = match parser.next(there, &mut spans, caps)? {
                Found::Missing(missing) => {
                    assert!(missing > 0);
                    break;
                }
                Found::Array(length) => (there, length),
                Found::Line(length) => (parser.words(), length),
            };
            found.push(Args::new(words, &spans).iter().map(<[u8]>::to_vec).collect());
            start += length;
        }
    }
    Ok(found)
}

fn whole(bytes: &[u8]) -> Result<Vec<Vec<Vec<u8>>>, Wrong> {
    commands(bytes, &[], &CAPS)
}

#[test]
fn every_cut_gives_the_same_commands() {
    let bytes = b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n*0\r\nPING  x\r\n*-1\r\n\r\n*3\r\n$6\r\nBF.ADD\r\n$1\r\na\r\n$13\r\n\r\n$1\r\n*2\r\nabc\r\nset \"a b\\x41\\n\" 'c\\'d'\n";
    let expected = whole(bytes).unwrap();
    assert_eq!(expected.len(), 7);
    assert_eq!(expected[5][2], b"\r\n$1\r\n*2\r\nabc");
    assert_eq!(expected[6], [&b"set"[..], b"a bA\n", b"c'd"]);
    for first in 0..bytes.len() {
        for second in first..bytes.len() {
            assert_eq!(commands(bytes, &[first, second], &CAPS).unwrap(), expected, "{first} {second}");
        }
    }
    let all: Vec<usize> = (0..bytes.len()).collect();
    assert_eq!(commands(bytes, &all, &CAPS).unwrap(), expected);
}

#[test]
fn refusals_are_worded_as_servers_word_them() {
    let long = format!("*{}\r\n", "1".repeat(40));
    let unended = "x".repeat(70_000);
    let cases: [(&[u8], &str); 14] = [
        (b"*1\r\n$x\r\n", "invalid bulk length"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$01\r\n", "invalid bulk length"),
        (b"*1\r\n$1001\r\n", "invalid bulk length"),
        (b"*1\r\n$18446744073709551615\r\n", "invalid bulk length"),
        (b"*1\r\n:1\r\n", "expected '$', got ':'"),
        (b"*101\r\n", "invalid multibulk length"),
        (b"*x\r\n", "invalid multibulk length"),
        (b"*9223372036854775807\r\n", "invalid multibulk length"),
        (long.as_bytes(), "too big mbulk count string"),
        (b"*1\r\n$11111111111111111111111111111111111\r\n", "too big bulk count string"),
        (b"set \"a\r\n", "unbalanced quotes in request"),
        (b"set \"a\"b\r\n", "unbalanced quotes in request"),
        (unended.as_bytes(), "too big inline request"),
    ];
    for (bytes, text) in cases {
        assert_eq!(whole(bytes), Err(Wrong::Protocol(text.into())), "{}", bytes.escape_ascii());
    }
    let three = format!("*3\r\n{0}{0}{0}", format!("$900\r\n{}\r\n", "x".repeat(900)));
    assert_eq!(whole(three.as_bytes()), Err(Wrong::Protocol("too big request".into())));
    for bytes in [&b"POST / HTTP/1.1\r\n"[..], b"GET / HTTP/1.1\r\nHost: x\r\n"] {
        assert_eq!(whole(bytes), Err(Wrong::Http));
    }
    let unknown = Caps::before_auth();
    let refused = |bytes| commands(bytes, &[], &unknown).unwrap_err();
    assert_eq!(refused(b"*11\r\n"), Wrong::Protocol("unauthenticated multibulk length".into()));
    assert_eq!(refused(b"*1\r\n$16385\r\n"), Wrong::Protocol("unauthenticated bulk length".into()));
}

#[test]
fn any_bytes_at_any_cut_are_commands_or_a_refusal() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut draw = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % bound
    };
    let parts: [&[u8]; 12] =
        [b"*", b"$", b"\r\n", b"1", b"2", b"-", b"abc", b"\"", b"'", b" ", b"\n", b"*1\r\n$4\r\nPING\r\n"];
    let (mut good, mut bad) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes: Vec<u8> = (0..draw(12)).flat_map(|_| parts[draw(parts.len())].to_vec()).collect();
        if draw(4) == 0 && !bytes.is_empty() {
            let at = draw(bytes.len());
            bytes[at] = draw(256) as u8;
        }
        let once = whole(&bytes);
        let mut cuts: Vec<usize> = (0..3).map(|_| draw(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        assert_eq!(commands(&bytes, &cuts, &CAPS), once, "{} {cuts:?}", bytes.escape_ascii());
        if once.is_ok() { good += 1 } else { bad += 1 }
    }
    assert!(good > 1000 && bad > 1000, "{good} {bad}");
}
