//! RESP: any bytes, in pieces, to the commands of a small store that keeps nothing.
#![no_main]

use std::sync::Arc;

use fullbloom_fuzz::memory;
use fullbloom_server::limits::Limits;
use fullbloom_server::resp::{Dialogue, Options};
use fullbloom_server::store::{self, Store};
use libfuzzer_sys::fuzz_target;

/// A service whose filters are small, so that a run takes no longer than it must.
fn service(plain: bool) -> Dialogue {
    let limits = Limits {
        filter_bytes: 1 << 16,
        total_bytes: 1 << 20,
        filters: 50,
        request_bytes: 1 << 20,
        batch_keys: 1000,
        key_bytes: 1000,
        ..Limits::default()
    };
    let store = Store::open(store::Options { plain, limits, ..store::Options::default() }).expect("a store");
    Dialogue::new(Arc::new(store), Options { keys: true, flush: true, ..Options::default() })
}

/// One whole reply, and the bytes after it.
fn answer(bytes: &[u8]) -> &[u8] {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n").expect("an answer is cut short");
    let (line, rest) = (&bytes[..end], &bytes[end + 2..]);
    let sort = line.first().expect("an answer without a sort");
    let number = || std::str::from_utf8(&line[1..]).ok()?.parse::<i64>().ok();
    match sort {
        b'+' | b'-' | b'_' | b'#' | b',' => rest,
        b':' => {
            number().expect("a number");
            rest
        }
        b'$' | b'=' => match usize::try_from(number().expect("a length")) {
            Ok(length) => rest[length..].strip_prefix(b"\r\n").expect("the end of a string"),
            Err(_) => rest,
        },
        b'*' | b'~' | b'%' => {
            let parts = number().expect("a length").max(0) * if *sort == b'%' { 2 } else { 1 };
            (0..parts).fold(rest, |rest, _| answer(rest))
        }
        other => panic!("an answer of sort {other}"),
    }
}

/// How many answers there are; each must be whole.
fn count(mut answers: &[u8]) -> usize {
    let mut count = 0;
    while !answers.is_empty() {
        answers = answer(answers);
        count += 1;
    }
    count
}

fuzz_target!(init: memory::limit_to(2 << 30), |data: &[u8]| {
    let Some((&choice, said)) = data.split_first() else { return };
    let plain = choice & 1 == 0;
    let mut answers = Vec::new();
    let mut client = service(plain);
    let open = client.send(said, &mut answers);
    let (whole, commands) = (count(&answers), client.commands() as usize);
    // An answer each, and one more where the connection ends with what was no command.
    assert!(whole == commands || !open && whole == commands + 1, "{whole} answers to {commands} commands");
    // The same bytes in pieces, whose lengths follow from the first byte.
    let (mut client, mut still, mut rest) = (service(plain), true, said);
    answers.clear();
    for turn in 1usize.. {
        if rest.is_empty() || !still {
            break;
        }
        let length = (usize::from(choice >> 1) * turn % 61 + 1).min(rest.len());
        still = client.send(&rest[..length], &mut answers);
        rest = &rest[length..];
    }
    assert_eq!((count(&answers), still), (whole, open));
});
