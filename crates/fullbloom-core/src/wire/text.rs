//! [`Text`]: a short string of a server, read in the round trip of a batch.

use super::command;
use super::exchange::{State, Subject, unexpected_error};
use super::reply::{Limit, Reply};
use crate::error::Result;

/// Bytes of the longest text that is read.
pub const LONGEST: u64 = 64 << 10;

/// The string under one key.
#[derive(Debug)]
pub struct Text {
    key: Vec<u8>,
    /// The stored text; empty if no text is stored.
    text: Vec<u8>,
}

impl Text {
    /// The string under `key`, at most [`LONGEST`] bytes of it.
    pub fn new(key: Vec<u8>) -> Self {
        Text { key, text: Vec::new() }
    }
}

impl Subject for Text {
    fn shards(&self) -> usize {
        1
    }

    fn state(&self, _: usize) -> State<'_> {
        State { shard: 0, mark: &self.text, short: false, bits_set: 0 }
    }

    fn replies(&self, _: usize) -> usize {
        1
    }

    fn limit(&self, _: usize, _: usize) -> Limit {
        Limit::text(LONGEST)
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        command::begin(out, 4);
        command::word(out, b"GETRANGE");
        command::word(out, &self.key);
        command::number(out, 0);
        command::number(out, LONGEST - 1);
        Ok(())
    }

    fn take(&mut self, _: usize, _: usize, reply: Reply<'_>) -> Result<()> {
        self.text = match reply {
            Reply::Nil => Vec::new(),
            Reply::Bulk(text) if text.len() as u64 <= LONGEST => text.to_vec(),
            _ => return Err(unexpected_error("a reply of another kind")),
        };
        Ok(())
    }

    fn restart(&mut self) -> bool {
        self.text.clear();
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::exchange::Exchange;

    #[test]
    fn a_text_is_read_and_longer_ones_are_refused() {
        let mut exchange = Exchange::new(Text::new(b"k".to_vec()), true).unwrap();
        assert!(exchange.buffer().starts_with(b"*1\r\n$6\r\nASKING\r\n*4\r\n$8\r\nGETRANGE\r\n$1\r\nk\r\n$1\r\n0\r\n"));
        assert!(exchange.feed(b"+OK\r\n$5\r\nhello\r\n").unwrap());
        assert_eq!(exchange.states().next().unwrap().mark, b"hello");
        exchange.restart().unwrap();
        assert!(exchange.states().next().unwrap().mark.is_empty());
        exchange.feed(b"+OK\r\n").unwrap();
        exchange.feed(format!("${LONGEST}\r\n").as_bytes()).unwrap();
        exchange.restart().unwrap();
        exchange.feed(b"+OK\r\n").unwrap();
        assert!(exchange.feed(format!("${}\r\n", LONGEST + 1).as_bytes()).is_err());
    }
}
