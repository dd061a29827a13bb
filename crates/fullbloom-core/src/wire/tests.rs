//! Exchanges with a small server of strings.

use std::collections::HashMap;
use std::sync::Arc;

use super::exchange::State;
use super::plain::Batch;
use super::{Cells, Shard};
use crate::bloom::{BloomFilter, Layout, Shape};
use crate::key::KeyHasher;
use crate::structure::{Addable, Filter};

/// What a server does with the commands of this module.
#[derive(Default)]
struct Server {
    strings: HashMap<Vec<u8>, Vec<u8>>,
}

impl Server {
    fn answer(&mut self, mut bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        while !bytes.is_empty() {
            let words = (0..number(&mut bytes, b'*')).map(|_| {
                let len = number(&mut bytes, b'$');
                let (word, rest) = bytes.split_at(len);
                bytes = &rest[2..];
                word.to_vec()
            });
            let words: Vec<Vec<u8>> = words.collect();
            self.run(&words, &mut out);
        }
        out
    }

    fn run(&mut self, words: &[Vec<u8>], out: &mut Vec<u8>) {
        let parse = |word: &Vec<u8>| std::str::from_utf8(word).unwrap().parse::<usize>().unwrap();
        if words[0] == b"EVAL" {
            return self.merge(words, out);
        }
        let string = self.strings.entry(words[1].clone()).or_default();
        let mut bit = |at: usize, set: bool| {
            if string.len() <= at / 8 {
                string.resize(at / 8 + 1, 0);
            }
            let (byte, mask) = (&mut string[at / 8], 0x80 >> (at % 8));
            let old = *byte & mask != 0;
            *byte |= if set { mask } else { 0 };
            u8::from(old)
        };
        match &words[0][..] {
            b"GETRANGE" => {
                let (first, end) = (parse(&words[2]).min(string.len()), (parse(&words[3]) + 1).min(string.len()));
                out.extend_from_slice(format!("${}\r\n", end - first).as_bytes());
                out.extend_from_slice(&string[first..end]);
                out.extend_from_slice(b"\r\n");
            }
            b"BITFIELD" => {
                out.extend_from_slice(format!("*{}\r\n", (words.len() - 2) / 4).as_bytes());
                for op in words[2..].chunks(4) {
                    assert_eq!((&op[0][..], &op[1][..], &op[3][..]), (&b"SET"[..], &b"u1"[..], &b"1"[..]));
                    out.extend_from_slice(format!(":{}\r\n", bit(parse(&op[2]), true)).as_bytes());
                }
            }
            b"SETBIT" => out.extend_from_slice(format!(":{}\r\n", bit(parse(&words[2]), true)).as_bytes()),
            b"GETBIT" => out.extend_from_slice(format!(":{}\r\n", bit(parse(&words[2]), false)).as_bytes()),
            other => panic!("{other:?}"),
        }
    }
}

impl Server {
    /// The script of a batch that goes whole.
    fn merge(&mut self, words: &[Vec<u8>], out: &mut Vec<u8>) {
        let [_, script, keys, key, beside, bits] = words else { panic!("{}", words.len()) };
        assert!(script.starts_with(b"local was") && keys == b"2" && beside.starts_with(key));
        let Some(string) = self.strings.get_mut(key) else { return out.extend_from_slice(b"$-1\r\n") };
        let was: &[u8] = if string.len() == bits.len() + 16 { string } else { b"" };
        out.extend_from_slice(format!("${}\r\n", was.len()).as_bytes());
        out.extend_from_slice(was);
        out.extend_from_slice(b"\r\n");
        if string.len() == bits.len() + 16 {
            string.iter_mut().zip(bits).for_each(|(byte, more)| *byte |= more);
        }
    }
}

fn number(bytes: &mut &[u8], kind: u8) -> usize {
    assert_eq!(bytes[0], kind);
    let end = bytes.iter().position(|&byte| byte == b'\n').unwrap();
    let number = std::str::from_utf8(&bytes[1..end - 1]).unwrap().parse().unwrap();
    *bytes = &bytes[end + 1..];
    number
}

fn create_shard(shard: u64) -> Shard {
    let name = |end: &str| format!("{{f}}:bits:{shard}{end}").into_bytes();
    Shard { number: shard, key: name(""), beside: name(":merge") }
}

fn hashes(from: u64, many: u64) -> Vec<u64> {
    (from..from + many).map(|i| crate::hash::splitmix::mix(i * 7919)).collect()
}

#[test]
fn marks_are_asked_of_every_shard_without_a_key() {
    let shape = Shape::explicit(Layout::Blocked, None, 512 * 10, 8).unwrap();
    let cells = Arc::new(Cells::new(shape, KeyHasher::seeded(0), 3).unwrap());
    let mut server = Server::default();
    server
        .strings
        .insert(create_shard(1).key, [vec![0; cells.range(1).1 as usize], b"0123456789abcdef".to_vec()].concat());
    let batch = Batch::marks(&cells);
    let mut exchange = batch.exchange(batch.shards().map(create_shard).collect(), false).unwrap();
    assert!(exchange.feed(&server.answer(exchange.buffer())).unwrap());
    let marks: Vec<&[u8]> = exchange.states().map(|state| state.mark).collect();
    assert_eq!(marks, [&b""[..], b"0123456789abcdef", b""]);
}

fn run(server: &mut Server, cells: &Arc<Cells>, hashes: &[u64], adding: bool, piece: usize) -> Vec<u8> {
    run_exchange(server, Batch::new(cells, hashes.to_vec(), adding).unwrap(), piece)
}

fn run_exchange(server: &mut Server, mut batch: Batch, piece: usize) -> Vec<u8> {
    let is_empty = batch.hashes().is_empty();
    let shards: Vec<Shard> = batch.shards().map(create_shard).collect();
    let mut exchange = batch.exchange(shards, false).unwrap();
    let answer = server.answer(exchange.buffer());
    let mut done = is_empty;
    for piece in answer.chunks(piece) {
        assert!(!done);
        done = exchange.feed(piece).unwrap();
    }
    assert!(done && exchange.refusals().is_empty());
    batch.take(&exchange);
    batch.answers().to_vec()
}

#[test]
#[ignore = "long: make test-all runs it"]
fn strings_have_the_cells_of_the_filter_in_memory_in_any_number_of_shards() {
    for (layout, shards) in [
        (Layout::Blocked, 1),
        (Layout::Blocked, 7),
        (Layout::Split, 1),
        (Layout::Split, 5),
        (Layout::Classic, 1),
        (Layout::Partitioned, 1),
        (Layout::TwoBlock, 1),
    ] {
        for (fpr, by_key) in [(0.1, true), (0.01, true), (0.0005, true), (0.01, false), (0.0005, false)] {
            let shape = Shape::for_capacity(layout, None, 3000, fpr).unwrap();
            let mut memory = BloomFilter::new(shape, 3000, fpr, KeyHasher::seeded(0), false).unwrap();
            let cells = Arc::new(Cells::new(shape, KeyHasher::seeded(0), shards).unwrap());
            let mut server = Server::default();
            for shard in 0..shards {
                // Strings stand in their full length before keys come.
                server.strings.insert(create_shard(shard).key, vec![0; cells.range(shard).1 as usize + 16]);
            }
            let keys = hashes(0, 2500);
            let twice: Vec<u64> = keys.iter().chain(&keys[..100]).copied().collect();
            let mut new = vec![0; twice.len()];
            memory.add_hashes(&twice, Some(&mut new)).unwrap();
            let mut batch = Batch::new(&cells, twice, true).unwrap();
            if by_key {
                batch.go_by_key(false);
            }
            let exchange = batch.exchange(batch.shards().map(create_shard).collect(), false).unwrap();
            assert_eq!(exchange.subject().is_whole(), !by_key);
            assert_eq!(exchange.due() as u64 == shards, !by_key);
            assert_eq!(run_exchange(&mut server, batch, if by_key { 1 } else { 50 }), new, "{layout:?}");
            let asked = hashes(1250, 5000);
            let mut found = vec![0; asked.len()];
            memory.contains_hashes(&asked, &mut found);
            assert_eq!(run(&mut server, &cells, &asked, false, 1000), found, "{layout:?} {shards} {fpr}");
            let mut all = Vec::new();
            for shard in 0..shards {
                let (first, len) = cells.range(shard);
                assert_eq!(first, all.len() as u64);
                all.extend_from_slice(&server.strings[&create_shard(shard).key][..len as usize]);
            }
            cells.turn(&mut all);
            let bytes: Vec<u8> = memory.words().iter().flat_map(|word| word.to_ne_bytes()).collect();
            assert_eq!(all, bytes[..all.len()]);
            assert!(bytes[all.len()..].iter().all(|&byte| byte == 0));
        }
    }
}

fn small() -> Arc<Cells> {
    let shape = Shape::for_capacity(Layout::Blocked, None, 100, 0.01).unwrap();
    Arc::new(Cells::new(shape, KeyHasher::seeded(0), 1).unwrap())
}

#[test]
fn invalid_replies_are_errors_and_allocate_nothing() {
    let cells = small();
    for bytes in [
        &b"$99999999999999\r\n"[..],
        b"$536870913\r\n",
        b"*9999999999\r\n",
        b"*-7\r\n:1\r\n$3\r\nabcd\r\n",
        b"hello\r\n",
        b"\n",
        b"+OK\n",
        b":12a\r\n",
        b"$16\r\n0123456789abcdef\r\n*1\r\n:0\r\n",
        b"$17\r\n0123456789abcdefg\r\n",
        b":1\r\n",
        b"(1\r\n",
    ] {
        let batch = Batch::new(&cells, hashes(0, 3), true).unwrap();
        let mut exchange = batch.exchange(vec![create_shard(0)], false).unwrap();
        assert!(exchange.feed(bytes).is_err(), "{:?}", String::from_utf8_lossy(bytes));
    }
    // Arrays in arrays: no depth costs a stack.
    let batch = Batch::new(&cells, hashes(0, 3), true).unwrap();
    let mut exchange = batch.exchange(vec![create_shard(0)], false).unwrap();
    assert!(exchange.feed(&b"*1\r\n".repeat(60_000)).is_err());
    // An unsolicited message has its limit, too.
    let mut exchange = batch.exchange(vec![create_shard(0)], false).unwrap();
    assert!(!exchange.feed(b">2\r\n+invalidate\r\n*1\r\n$1000\r\n").unwrap());
    assert!(!exchange.feed(&[&[b'x'; 1000], &b"\r\n"[..]].concat()).unwrap());
    assert!(exchange.feed(b">1\r\n$99999999\r\n").is_err());
}

#[test]
fn a_reply_longer_than_its_command_may_return_is_refused_by_its_stated_length() {
    let one_line = Shape::for_capacity(Layout::Blocked, None, 100, 0.01).unwrap();
    let classic = Shape::for_capacity(Layout::Classic, None, 100, 0.01).unwrap();
    let [cells, spread] =
        [one_line, classic].map(|shape| Arc::new(Cells::new(shape, KeyHasher::seeded(0), 1).unwrap()));
    let native = Arc::new(Cells::native(one_line, KeyHasher::seeded(0)).unwrap());
    let string = cells.range(0).1 + 16;
    // Cells, keys, adding, what may come, and what is beyond it.
    let probes = one_line.num_hashes;
    for (cells, keys, adding, within, beyond) in [
        (&cells, 3, false, format!("${}\r\n", cells.unit()), format!("${}\r\n", cells.unit() + 1)),
        (&cells, 0, false, "$16\r\n".into(), "$17\r\n".into()),
        (&cells, 3, true, format!("*{probes}\r\n"), format!("*{}\r\n", probes + 1)),
        (&cells, 50, true, format!("${string}\r\n"), format!("${}\r\n", string + 1)),
        (&spread, 3, true, ":1\r\n".into(), "$1\r\n".into()),
        (&native, 300, true, "*300\r\n".into(), "*301\r\n".into()),
        (&native, 100_000, false, "*100000\r\n".into(), "*100001\r\n".into()),
        (&native, 300, false, "-ERR no\r\n".into(), "%200\r\n".into()),
        (&cells, 3, false, "!21\r\n".into(), "!99999\r\n".into()),
        (&cells, 3, false, format!("+{}", "x".repeat(60_000)), format!("+{}", "x".repeat(70_000))),
    ] {
        let batch = if keys == 0 { Batch::marks(cells) } else { Batch::new(cells, hashes(0, keys), adding).unwrap() };
        let exchange = || batch.exchange(vec![create_shard(0)], false).unwrap();
        assert!(!exchange().feed(within.as_bytes()).unwrap(), "{within:.20}");
        let error = exchange().feed(beyond.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("longer than") || error.contains("without end"), "{beyond:.20}: {error}");
    }
    // Items of any length in an array of as many as there may be.
    let batch = Batch::new(&cells, hashes(0, 3), true).unwrap();
    let mut exchange = batch.exchange(vec![create_shard(0)], false).unwrap();
    let item = format!(":{}\r\n", "0".repeat(60_000));
    let fed = [&*format!("*{probes}\r\n"), &item, &item, &item].map(|part| exchange.feed(part.as_bytes()).is_err());
    assert_eq!(fed, [false, false, true, true]);
}

#[test]
fn error_replies_count_once_and_a_retry_keeps_new_keys() {
    let (cells, mut server) = (small(), Server::default());
    server.strings.insert(create_shard(0).key, vec![0; cells.range(0).1 as usize + 16]);
    let mut batch = Batch::new(&cells, hashes(0, 3), true).unwrap();
    let mut exchange = batch.exchange(vec![create_shard(0)], false).unwrap();
    let answer = server.answer(exchange.buffer());
    // The connection breaks after the second key's reply.
    let end = answer.iter().enumerate().filter(|(_, byte)| **byte == b'*').map(|(at, _)| at).nth(2).unwrap();
    assert!(!exchange.feed(&answer[..end]).unwrap());
    exchange.restart().unwrap();
    assert!(exchange.feed(&server.answer(exchange.buffer())).unwrap());
    batch.take(&exchange);
    assert_eq!(batch.answers(), [1, 1, 0]); // the third is in, but who set its bits is not known
    exchange.restart().unwrap();
    assert!(exchange.feed(&b"-READONLY no\r\n".repeat(4)).unwrap());
    assert_eq!(exchange.refusals().len(), 1);
    assert_eq!(exchange.due(), 4);
    exchange.restart().unwrap();
    assert!(exchange.feed(&[&b">2\r\n+a\r\n*1\r\n:1\r\n"[..], &b"-OOM x\r\n".repeat(4)].concat()).unwrap());
}

#[test]
fn keys_that_go_together_touch_no_string_of_another_length() {
    let cells = small();
    for len in [None, Some(0), Some(16), Some(cells.range(0).1), Some(cells.range(0).1 + 17)] {
        let mut server = Server::default();
        len.map(|len| server.strings.insert(create_shard(0).key, vec![0; len as usize]));
        let mut batch = Batch::new(&cells, hashes(0, 50), true).unwrap();
        let mut exchange = batch.exchange(vec![create_shard(0)], false).unwrap();
        assert!(exchange.subject().is_whole() && exchange.feed(&server.answer(exchange.buffer())).unwrap());
        assert_eq!(
            exchange.states().collect::<Vec<_>>(),
            [State { shard: 0, mark: &[], short: true, bits_set: 0 }],
            "{len:?}"
        );
        batch.take(&exchange);
        assert!(batch.answers().iter().all(|&new| new == 0));
        assert!(server.strings.values().flatten().all(|&byte| byte == 0));
    }
    for wrong in [&b":1\r\n"[..], b"*0\r\n", b"+OK\r\n"] {
        let batch = Batch::new(&cells, hashes(0, 50), true).unwrap();
        assert!(batch.exchange(vec![create_shard(0)], false).unwrap().feed(wrong).is_err());
    }
}

#[test]
fn each_command_may_go_behind_an_asking() {
    for layout in [Layout::Blocked, Layout::Classic] {
        let shape = Shape::for_capacity(layout, None, 100, 0.01).unwrap();
        let (cells, mut server) = (Arc::new(Cells::new(shape, KeyHasher::seeded(0), 1).unwrap()), Server::default());
        server.strings.insert(create_shard(0).key, vec![0; cells.range(0).1 as usize + 16]);
        for adding in [true, false] {
            let mut batch = Batch::new(&cells, hashes(0, 3), adding).unwrap();
            let (plain, mut exchange) = (
                batch.exchange(vec![create_shard(0)], false).unwrap(),
                batch.exchange(vec![create_shard(0)], true).unwrap(),
            );
            assert_eq!(exchange.due(), 2 * plain.due());
            let asking = b"*1\r\n$6\r\nASKING\r\n";
            assert_eq!(exchange.buffer().len(), plain.buffer().len() + plain.due() * asking.len());
            let mut answer = Vec::new();
            let mut rest = exchange.buffer();
            while let Some(next) = rest.strip_prefix(asking) {
                let end = next.windows(asking.len()).position(|part| part == asking).unwrap_or(next.len());
                answer.extend_from_slice(b"+OK\r\n");
                answer.extend(server.answer(&next[..end]));
                rest = &next[end..];
            }
            assert!(rest.is_empty() && exchange.feed(&answer).unwrap());
            batch.take(&exchange);
            assert_eq!(batch.answers(), [1, 1, 1]);
        }
    }
}

#[test]
fn a_filter_of_the_server_gets_hashes_in_one_command() {
    let shape = Shape::for_capacity(Layout::Blocked, None, 100, 0.01).unwrap();
    let cells = Arc::new(Cells::native(shape, KeyHasher::seeded(0)).unwrap());
    let mut batch = Batch::new(&cells, vec![1, 0x0a0d], true).unwrap();
    let mut exchange =
        batch.exchange(vec![Shard { number: 0, key: b"f".to_vec(), beside: b"g".to_vec() }], false).unwrap();
    let sent = b"*6\r\n$9\r\nBF.INSERT\r\n$1\r\nf\r\n$8\r\nNOCREATE\r\n$5\r\nITEMS\r\n$8\r\n\x01\0\0\0\0\0\0\0\r\n\
                 $8\r\n\r\n\0\0\0\0\0\0\r\n*2\r\n$6\r\nEXISTS\r\n$1\r\nf\r\n";
    assert_eq!(exchange.buffer(), sent);
    assert_eq!(exchange.due(), 2);
    assert!(exchange.feed(b"*2\r\n:0\r\n#t\r\n:1\r\n").unwrap());
    batch.take(&exchange);
    assert_eq!(batch.answers(), [0, 1]);
    assert_eq!(exchange.states().next().unwrap().mark, [1]);
    for wrong in [&b"*1\r\n:0\r\n"[..], b"*3\r\n:0\r\n:0\r\n:0\r\n", b"*2\r\n:0\r\n-ERR full\r\n", b":1\r\n"] {
        exchange.restart().unwrap();
        assert!(exchange.feed(&[wrong, b":1\r\n"].concat()).is_err());
    }
}

#[test]
fn short_strings_are_reported() {
    let (cells, mut server) = (small(), Server::default());
    let batch = Batch::new(&cells, hashes(0, 3), false).unwrap();
    let mut exchange = batch.exchange(vec![create_shard(0)], false).unwrap();
    assert!(exchange.feed(&server.answer(exchange.buffer())).unwrap());
    assert!(exchange.states().all(|it| it.mark.is_empty() && it.short));
}

#[test]
fn filters_too_large_for_a_string_name_the_shards_they_need() {
    let shape = Shape::explicit(Layout::Blocked, None, 1 << 33, 8).unwrap();
    let error = Cells::new(shape, KeyHasher::seeded(0), 1).unwrap_err().to_string();
    assert!(error.contains("shards=3"), "{error}");
    assert!(Cells::new(shape, KeyHasher::seeded(0), 3).is_ok());
    let shape = Shape::explicit(Layout::Classic, None, 1 << 33, 8).unwrap();
    assert!(Cells::new(shape, KeyHasher::seeded(0), 1).unwrap_err().to_string().contains("blocked"));
    assert!(Cells::new(shape, KeyHasher::seeded(0), 2).is_err());
}
