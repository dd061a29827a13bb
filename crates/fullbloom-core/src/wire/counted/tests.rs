//! Exchanges with a small server of counters.

use super::super::reply::{Limit, past};
use super::*;
use crate::counting::{CountingBloomFilter, Layout, Shape};
use crate::key::KeyHasher;
use crate::structure::{Addable, Countable, Removable};

/// Strings of a server, by shard, and what it does with the commands of this room.
struct Server(Vec<Vec<u8>>);

impl Server {
    fn new(counters: &Counters) -> Self {
        let marked = |shard| [vec![0; counters.range(shard).1 as usize], vec![shard as u8; 16]].concat();
        Server((0..counters.shards()).map(marked).collect())
    }

    fn answer(&mut self, bytes: &[u8]) -> Vec<u8> {
        let text: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').map(|line| line.trim_ascii()).collect();
        let (mut out, mut at) = (Vec::new(), 0);
        while text[at].first() == Some(&b'*') {
            let words: usize = parse(&text[at][1..]);
            let command: Vec<&[u8]> = (0..words).map(|word| text[at + 2 + 2 * word]).collect();
            at += 1 + 2 * words;
            self.run(&command, &mut out);
        }
        out
    }

    fn run(&mut self, command: &[&[u8]], out: &mut Vec<u8>) {
        let string = &mut self.0[parse::<usize>(command[1])];
        if command[0] == b"GETRANGE" {
            let part = &string[parse(command[2])..=parse(command[3])];
            out.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
            out.extend_from_slice(part);
            return out.extend_from_slice(b"\r\n");
        }
        let (mut overflow, mut at, mut replies) = (&b"WRAP"[..], 2, Vec::new());
        while at < command.len() {
            if command[at] == b"OVERFLOW" {
                (overflow, at) = (command[at + 1], at + 2);
                continue;
            }
            let width: u32 = parse(&command[at + 1][1..]);
            let (place, by): (u32, i64) = (parse(command[at + 2]), parse(command[at + 3]));
            let (byte, shift) = (&mut string[place as usize / 8], 8 - width - place % 8);
            let most = (1i64 << width) - 1;
            let next = i64::from(*byte >> shift) % (most + 1) + by;
            let kept = match overflow {
                b"SAT" => Some(next.clamp(0, most)),
                b"WRAP" => Some(next.rem_euclid(most + 1)),
                _ => Some(next).filter(|next| (0..=most).contains(next)),
            };
            if let Some(kept) = kept {
                *byte = *byte & !((most as u8) << shift) | (kept as u8) << shift;
            }
            replies.push(kept.map_or("$-1\r\n".into(), |kept| format!(":{kept}\r\n")));
            at += 4;
        }
        out.extend_from_slice(format!("*{}\r\n{}", replies.len(), replies.concat()).as_bytes());
    }
}

fn parse<T: std::str::FromStr<Err: std::fmt::Debug>>(word: &[u8]) -> T {
    std::str::from_utf8(word).unwrap().parse().unwrap()
}

/// Sends a batch; the connection breaks once the server has done some of the commands.
fn send(server: &mut Server, batch: &mut Batch, some: usize) {
    let shards = batch
        .shards()
        .map(|number| Shard { number, key: number.to_string().into_bytes(), beside: Vec::new() })
        .collect();
    let mut exchange = batch.exchange(shards, false).unwrap();
    let (mut at, commands) = (0, exchange.buffer().to_vec());
    for _ in 0..some.min(exchange.due().saturating_sub(1)) {
        let end = past(&commands, at, Limit::TRUSTED).unwrap().unwrap();
        assert!(!exchange.feed(&server.answer(&commands[at..end])).unwrap());
        at = end;
    }
    exchange.restart().unwrap();
    for piece in server.answer(exchange.buffer()).chunks(7) {
        exchange.feed(piece).unwrap();
    }
    assert!(exchange.is_done() && exchange.refusals().is_empty());
    assert!(exchange.states().all(|it| it.mark == [it.shard as u8; 16] && !it.short));
    batch.take(&exchange);
}

#[test]
fn histories_give_the_counters_and_answers_of_memory_and_nothing_is_done_twice() {
    for (bits, fpr, shards) in [(2, 0.02, 1), (4, 0.1, 3), (8, 1e-6, 1)] {
        let shape = Shape::for_capacity(Layout::Blocked, bits, 1, 200, fpr).unwrap();
        let hasher = KeyHasher::seeded(0);
        let counters = Arc::new(Counters::new(shape, hasher, shards).unwrap());
        let mut here = CountingBloomFilter::new(shape, 200, fpr, hasher).unwrap();
        let mut server = Server::new(&counters);
        let mix = |i: u64| crate::hash::splitmix::mix(i);
        for turn in 0..60u64 {
            let keys: Vec<u64> = (0..20).map(|i| mix(mix(turn * 100 + i) % 150)).collect();
            let mut added = Batch::new(&counters, keys.clone(), Verb::Add).unwrap();
            send(&mut server, &mut added, mix(turn) as usize % 40);
            let new: Vec<u8> = keys.iter().map(|&key| u8::from(here.add_hash(key).unwrap())).collect();
            assert_eq!(added.answers().unwrap(), new);
            let keys: Vec<u64> = (0..15).map(|i| mix(mix(turn * 77 + i) % 170)).collect();
            let mut looked = Batch::new(&counters, keys.clone(), Verb::Count).unwrap();
            send(&mut server, &mut looked, 3);
            let counts: Vec<u8> = keys.iter().map(|&key| here.count_hash(key) as u8).collect();
            assert_eq!(looked.answers().unwrap(), counts);
            let mut taken = looked.then().unwrap();
            send(&mut server, &mut taken, mix(turn) as usize % 9);
            let mut back = taken.then().unwrap();
            send(&mut server, &mut back, 0);
            let told = taken.answers().unwrap();
            // In memory the keys go one after the other; those that do not go here are not removed there.
            keys.iter().zip(told).filter(|(_, told)| *told == 1).for_each(|(&key, _)| {
                assert!(here.remove_hash(key).unwrap());
            });
            let stored = server.0.iter().flat_map(|string| &string[..string.len() - 16]);
            assert!(here.cells().iter().flat_map(|word| word.to_ne_bytes()).eq(stored.copied()));
        }
    }
}

#[test]
fn what_is_no_shape_for_a_server_and_what_is_no_answer_is_refused() {
    let shape = |layout, bits| Shape::for_capacity(layout, bits, 1, 100, 0.01).unwrap();
    let made = |shape, shards| Counters::new(shape, KeyHasher::seeded(0), shards);
    assert!(made(shape(Layout::Classic, 4), 1).is_err() && made(shape(Layout::Blocked, 16), 1).is_err());
    assert!(made(shape(Layout::Blocked, 4), 10_000).is_err() && made(shape(Layout::Blocked, 4), 0).is_err());
    let counters = Arc::new(made(shape(Layout::Blocked, 4), 1).unwrap());
    for (verb, reply) in [
        (Verb::Count, &b"*1\r\n:1\r\n"[..]),
        (Verb::Count, b"$65\r\n"),
        (Verb::Add, b"*2\r\n:1\r\n:1\r\n"),
        (Verb::Add, b"*8\r\n:0\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n"),
        (Verb::Add, b"$1\r\n1\r\n"),
    ] {
        let batch = Batch::new(&counters, vec![5], verb).unwrap();
        let mut exchange =
            batch.exchange(vec![Shard { number: 0, key: b"f".to_vec(), beside: Vec::new() }], false).unwrap();
        let whole = if reply == b"$65\r\n" { [reply, &[0; 65], b"\r\n"].concat() } else { reply.to_vec() };
        assert!(exchange.feed(&whole).is_err(), "{verb:?}");
    }
}
