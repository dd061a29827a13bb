//! [`Reply`]: answers into bytes, in either version of the protocol.

use std::io::Write;

/// Answers that were not sent yet.
#[derive(Debug, Default)]
pub struct Reply {
    /// Their bytes.
    pub out: Vec<u8>,
    /// True in version 3.
    pub three: bool,
}

impl Reply {
    /// `OK`.
    pub fn ok(&mut self) {
        self.simple("OK");
    }

    /// A word.
    pub fn simple(&mut self, text: &str) {
        self.out.push(b'+');
        self.line(text);
    }

    /// A refusal; its first word says of what sort it is.
    pub fn error(&mut self, text: &str) {
        self.out.push(b'-');
        self.line(text);
    }

    /// A line: what would end it is left out.
    fn line(&mut self, text: &str) {
        self.out.extend(text.bytes().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
        self.end();
    }

    fn end(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }

    /// A head: what follows, and how much of it.
    fn head(&mut self, sort: u8, number: i64) {
        self.out.push(sort);
        if let digit @ 0..=9 = number {
            self.out.push(b'0' + digit as u8);
        } else {
            let _ = write!(self.out, "{number}"); // a vector takes all
        }
        self.end();
    }

    /// A whole number.
    #[inline]
    pub fn integer(&mut self, number: i64) {
        self.head(b':', number);
    }

    /// A whole number that may be too large for the protocol, whose largest is told then.
    pub fn count(&mut self, number: u64) {
        self.integer(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// A whole number, or nothing.
    pub fn maybe(&mut self, number: Option<u64>) {
        match number {
            Some(number) => self.count(number),
            None => self.null(),
        }
    }

    /// Yes or no: 1 or 0 in version 2.
    #[inline]
    pub fn boolean(&mut self, yes: bool) {
        let bytes: &[u8; 4] = match (self.three, yes) {
            (false, true) => b":1\r\n",
            (false, false) => b":0\r\n",
            (true, true) => b"#t\r\n",
            (true, false) => b"#f\r\n",
        };
        self.out.extend_from_slice(bytes);
    }

    /// Many of them, as an array.
    pub fn booleans(&mut self, flags: &[u8]) {
        self.array(flags.len());
        self.out.reserve(flags.len() * 4);
        flags.iter().for_each(|&flag| self.boolean(flag != 0));
    }

    /// A real number.
    pub fn double(&mut self, number: f64) {
        let text = if number.is_nan() { "nan".to_string() } else { format!("{number}") };
        if self.three {
            self.out.push(b',');
            self.line(&text);
        } else {
            self.bulk(text.as_bytes());
        }
    }

    /// Any bytes.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.head(b'$', bytes.len() as i64);
        self.out.extend_from_slice(bytes);
        self.end();
    }

    /// Text.
    pub fn text(&mut self, text: &str) {
        self.bulk(text.as_bytes());
    }

    /// Text for people.
    pub fn verbatim(&mut self, text: &str) {
        if !self.three {
            return self.text(text);
        }
        self.head(b'=', text.len() as i64 + 4);
        self.out.extend_from_slice(b"txt:");
        self.out.extend_from_slice(text.as_bytes());
        self.end();
    }

    /// Nothing.
    pub fn null(&mut self) {
        self.out.extend_from_slice(if self.three { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// The head of an array.
    pub fn array(&mut self, length: usize) {
        self.head(b'*', length as i64);
    }

    /// The head of a map: names and values in turn follow.
    pub fn map(&mut self, pairs: usize) {
        if self.three { self.head(b'%', pairs as i64) } else { self.array(2 * pairs) }
    }

    /// The head of a set.
    pub fn set(&mut self, length: usize) {
        self.head(if self.three { b'~' } else { b'*' }, length as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(three: bool, write: impl FnOnce(&mut Reply)) -> String {
        let mut reply = Reply { three, ..Reply::default() };
        write(&mut reply);
        String::from_utf8_lossy(&reply.out).into_owned()
    }

    #[test]
    fn both_versions_say_each_thing_in_their_way() {
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
            assert_eq!((written(false, write).as_str(), written(true, write).as_str()), (two, three), "{i}");
        }
    }
}
