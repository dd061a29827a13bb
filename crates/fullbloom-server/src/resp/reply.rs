//! [`Reply`]: replies as bytes, in RESP2 or RESP3.

use std::io::Write;
use std::sync::Arc;

use crate::budget::Reservation;
use crate::fault::{Fault, Result};
use crate::store::Snapshot;

/// The bytes of replies that are not charged to the budget.
const FREE: usize = 64 << 10;

/// Replies that have not been sent.
#[derive(Debug, Default)]
pub struct Reply {
    /// Their bytes.
    pub out: Vec<u8>,
    /// True for RESP3.
    pub is_resp3: bool,
    /// The file of a filter, to send after the bytes, and then the end of its line.
    pub file: Option<Arc<Snapshot>>,
    /// The memory charged beyond [`FREE`]. Without it, replies are unlimited.
    pub held: Option<Reservation>,
    /// Why replies are missing: memory ran out.
    pub fault: Option<Fault>,
    /// The bytes that fit before more must be charged.
    pub(super) reserved: usize,
}

impl Reply {
    /// Reserves space for more bytes, and charges the budget beyond those that are free.
    pub fn ensure(&mut self, more: usize) -> Result<()> {
        let wanted = self.out.len().saturating_add(more);
        if wanted <= self.reserved.max(FREE) {
            return Ok(());
        }
        let Some(held) = &mut self.held else { return Ok(()) };
        // Half as much again, so that many small replies do not move the buffer each time.
        let rounded = wanted.saturating_add(self.out.len() / 2);
        let all = match held.set(rounded as u64) {
            Ok(()) => rounded,
            Err(_) => {
                held.set(wanted as u64)?;
                wanted
            }
        };
        self.reserved = all;
        self.out.reserve_exact(all - self.out.len());
        Ok(())
    }

    /// True if more bytes fit; otherwise records the fault.
    #[inline]
    fn has_space(&mut self, more: usize) -> bool {
        self.out.len() + more <= self.reserved.max(FREE) || self.reserve(more)
    }

    #[cold]
    fn reserve(&mut self, more: usize) -> bool {
        if self.fault.is_none() {
            self.fault = self.ensure(more).err();
        }
        self.fault.is_none()
    }

    /// Returns the memory: the replies have been sent.
    pub fn release(&mut self) {
        if self.reserved > 0 {
            self.reserved = 0;
            if let Some(held) = &mut self.held {
                held.release();
            }
        }
    }

    /// The file of a filter, to send after the bytes so far.
    pub fn file(&mut self, file: Arc<Snapshot>) {
        self.head(b'$', file.nbytes() as i64);
        self.file = Some(file);
    }
    /// `OK`.
    pub fn ok(&mut self) {
        self.simple("OK");
    }

    /// A simple string.
    pub fn simple(&mut self, text: &str) {
        self.out.push(b'+');
        self.line(text);
    }

    /// An error. Its first word is its type.
    pub fn error(&mut self, text: &str) {
        self.out.push(b'-');
        self.line(text);
    }

    /// A line, without characters that would end it.
    fn line(&mut self, text: &str) {
        self.out.extend(text.bytes().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
        self.end();
    }

    fn end(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }

    /// A head: a type and a number.
    fn head(&mut self, sort: u8, number: i64) {
        if !self.has_space(32) {
            return;
        }
        self.out.push(sort);
        if let digit @ 0..=9 = number {
            self.out.push(b'0' + digit as u8);
        } else {
            let _ = write!(self.out, "{number}"); // a vector takes all
        }
        self.end();
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, number: i64) {
        self.head(b':', number);
    }

    /// An unsigned integer; the largest of the protocol if it is too large.
    pub fn count(&mut self, number: u64) {
        self.integer(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// An integer, or null.
    pub fn count_or_null(&mut self, number: Option<u64>) {
        match number {
            Some(number) => self.count(number),
            None => self.null(),
        }
    }

    /// A boolean; 1 or 0 in RESP2.
    #[inline]
    pub fn boolean(&mut self, yes: bool) {
        let bytes: &[u8; 4] = match (self.is_resp3, yes) {
            (false, true) => b":1\r\n",
            (false, false) => b":0\r\n",
            (true, true) => b"#t\r\n",
            (true, false) => b"#f\r\n",
        };
        self.out.extend_from_slice(bytes);
    }

    /// An array of booleans.
    pub fn booleans(&mut self, flags: &[u8]) {
        if !self.has_space(flags.len() * 4 + 32) {
            return;
        }
        self.array(flags.len());
        self.out.reserve(flags.len() * 4);
        flags.iter().for_each(|&flag| self.boolean(flag != 0));
    }

    /// A real number.
    pub fn double(&mut self, number: f64) {
        let text = if number.is_nan() { "nan".to_string() } else { format!("{number}") };
        if self.is_resp3 {
            self.out.push(b',');
            self.line(&text);
        } else {
            self.bulk(text.as_bytes());
        }
    }

    /// A bulk string.
    pub fn bulk(&mut self, bytes: &[u8]) {
        if !self.has_space(bytes.len() + 32) {
            return;
        }
        self.head(b'$', bytes.len() as i64);
        self.out.extend_from_slice(bytes);
        self.end();
    }

    /// A bulk string of this length, which `write` appends.
    pub fn bulk_with(&mut self, length: u64, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        if !self.has_space(length as usize + 32) {
            return Ok(());
        }
        self.head(b'$', length as i64);
        write(&mut self.out)?;
        self.end();
        Ok(())
    }

    /// A text.
    pub fn text(&mut self, text: &str) {
        self.bulk(text.as_bytes());
    }

    /// A text for people.
    pub fn verbatim(&mut self, text: &str) {
        if !self.is_resp3 {
            return self.text(text);
        }
        if !self.has_space(text.len() + 32) {
            return;
        }
        self.head(b'=', text.len() as i64 + 4);
        self.out.extend_from_slice(b"txt:");
        self.out.extend_from_slice(text.as_bytes());
        self.end();
    }

    /// Null.
    pub fn null(&mut self) {
        self.out.extend_from_slice(if self.is_resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// The head of an array.
    pub fn array(&mut self, length: usize) {
        self.head(b'*', length as i64);
    }

    /// The head of a map. Its names and values follow in guard.
    pub fn map(&mut self, pairs: usize) {
        if self.is_resp3 { self.head(b'%', pairs as i64) } else { self.array(2 * pairs) }
    }

    /// The head of a set.
    pub fn set(&mut self, length: usize) {
        self.head(if self.is_resp3 { b'~' } else { b'*' }, length as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(is_resp3: bool, write: impl FnOnce(&mut Reply)) -> String {
        let mut reply = Reply { is_resp3, ..Reply::default() };
        write(&mut reply);
        String::from_utf8_lossy(&reply.out).into_owned()
    }

    #[test]
    fn replies_beyond_the_budget_are_refused_entirely() -> Result<()> {
        let budget = crate::budget::Budget::new(1 << 20);
        let mut reply = Reply { held: Some(budget.empty()), ..Reply::default() };
        reply.bulk(&[b'a'; 1000]);
        assert_eq!(budget.used(), 0);
        reply.bulk(&vec![b'a'; 500_000]);
        assert!(reply.fault.is_none() && budget.used() as usize >= reply.out.len());
        let before = reply.out.len();
        reply.bulk(&vec![b'a'; 600_000]);
        reply.bulk(&vec![b'a'; 100_000]);
        assert!(reply.fault.take().is_some_and(|fault| fault.text.contains("limits.memory_bytes")));
        assert_eq!(reply.out.len(), before);
        reply.out.clear();
        reply.release();
        assert_eq!(budget.used(), 0);
        reply.ensure(1 << 20)?;
        Ok(())
    }

    #[test]
    fn replies_have_the_form_of_each_protocol_version() {
        type Case = (fn(&mut Reply), &'static str, &'static str);
        let cases: [Case; 12] = [
            (|r| r.ok(), "+OK\r\n", "+OK\r\n"),
            (|r| r.error("ERR a\r\nb"), "-ERR a  b\r\n", "-ERR a  b\r\n"),
            (|r| r.integer(-12), ":-12\r\n", ":-12\r\n"),
            (|r| r.count(u64::MAX), ":9223372036854775807\r\n", ":9223372036854775807\r\n"),
            (|r| r.boolean(true), ":1\r\n", "#t\r\n"),
            (|r| r.booleans(&[0, 1]), "*2\r\n:0\r\n:1\r\n", "*2\r\n#f\r\n#t\r\n"),
            (|r| r.double(0.25), "$4\r\n0.25\r\n", ",0.25\r\n"),
            (|r| r.double(f64::INFINITY), "$3\r\ninf\r\n", ",inf\r\n"),
            (|r| r.null(), "$-1\r\n", "_\r\n"),
            (|r| r.map(1), "*2\r\n", "%1\r\n"),
            (|r| r.set(10), "*10\r\n", "~10\r\n"),
            (|r| r.verbatim("a"), "$1\r\na\r\n", "=5\r\ntxt:a\r\n"),
        ];
        for (i, (write, two, three)) in cases.into_iter().enumerate() {
            assert_eq!((render(false, write).as_str(), render(true, write).as_str()), (two, three), "{i}");
        }
    }
}
