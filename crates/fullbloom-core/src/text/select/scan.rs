//! JSON as bytes: values are passed over and checked, not built.

use crate::text::select::reason::{MOST_DEPTH, Reason};

type Scan<T> = Result<T, Reason>;

/// Reads one line of `bytes`, which may continue after it: no value of JSON contains a newline.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    start: usize,
    end: usize,
    pub(super) at: usize,
    open: Vec<u8>,
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// High bits set at least at the first byte of `word` that ends a run of plain text: a quote, a backslash, a control.
#[inline(always)]
fn ends_of_text(word: u64) -> u64 {
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    zero(word ^ (ONES * b'"' as u64))
        | zero(word ^ (ONES * b'\\' as u64))
        | (word.wrapping_sub(ONES * 0x20) & !word & HIGHS)
}

impl<'a> Scanner<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Scanner { bytes, start: 0, end: bytes.len(), at: 0, open: Vec::new() }
    }

    /// Moves to the line at `start..end`.
    pub(super) fn line(&mut self, start: usize, end: usize) {
        (self.start, self.end, self.at) = (start, end, start);
        self.open.clear();
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline(always)]
    pub(super) fn peek(&self) -> u8 {
        // A newline is not part of any value, so it represents the end.
        if self.at < self.end { self.bytes[self.at] } else { b'\n' }
    }

    #[inline(always)]
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == byte;
        self.at += usize::from(found);
        found
    }

    #[cold]
    pub(super) fn syntax_error(&self, what: &'static str) -> Reason {
        let what = if self.at >= self.end { "it is cut off" } else { what };
        Reason::NotJson(what, self.at - self.start + 1)
    }

    #[inline(always)]
    pub(super) fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    /// Skips a text; returns the bytes between its quotes.
    #[inline]
    pub(super) fn text(&mut self) -> Scan<&'a [u8]> {
        if !self.eat(b'"') {
            return Err(self.syntax_error("expected a text in quotes"));
        }
        let start = self.at;
        loop {
            while let Some(word) = self.bytes[self.at..self.end].first_chunk::<8>() {
                let ends = ends_of_text(u64::from_le_bytes(*word));
                if ends != 0 {
                    self.at += ends.trailing_zeros() as usize / 8;
                    break;
                }
                self.at += 8;
            }
            match self.peek() {
                _ if self.at >= self.end => return Err(self.syntax_error("")),
                b'"' => {
                    let text = &self.bytes[start..self.at];
                    self.at += 1;
                    return Ok(text);
                }
                b'\\' => self.escape()?,
                0..0x20 => return Err(self.syntax_error("a control character within a text")),
                _ => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Scan<()> {
        self.at += 1;
        let hex = |bytes: &[u8]| bytes.len() == 4 && bytes.iter().all(u8::is_ascii_hexdigit);
        match self.peek() {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
            b'u' if hex(&self.bytes[self.at + 1..self.end.min(self.at + 5)]) => self.at += 5,
            _ => return Err(self.syntax_error("an invalid escape")),
        }
        Ok(())
    }

    /// Passes over the name of a member and its colon; the name as it is written.
    #[inline]
    pub(super) fn name(&mut self) -> Scan<&'a [u8]> {
        self.space();
        let name = self.text()?;
        self.space();
        if !self.eat(b':') {
            return Err(self.syntax_error("expected a colon"));
        }
        self.space();
        Ok(name)
    }

    fn digits(&mut self) -> Scan<()> {
        let start = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        if self.at == start { Err(self.syntax_error("expected a digit")) } else { Ok(()) }
    }

    fn number(&mut self) -> Scan<()> {
        self.eat(b'-');
        if self.peek() == b'I' {
            return self.word(b"Infinity");
        }
        if !self.eat(b'0') {
            self.digits()?;
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if !self.eat(b'+') {
                self.eat(b'-');
            }
            self.digits()?;
        }
        Ok(())
    }

    fn word(&mut self, word: &[u8]) -> Scan<()> {
        if !self.bytes[self.at..self.end].starts_with(word) {
            return Err(self.syntax_error("expected a value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn scalar(&mut self) -> Scan<()> {
        match self.peek() {
            b'"' => self.text().map(|_| ()),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            b'N' => self.word(b"NaN"),
            b'I' => self.word(b"Infinity"),
            _ => Err(self.syntax_error("expected a value")),
        }
    }

    /// Passes over a value, however deep: no call for each bracket.
    #[inline]
    pub(super) fn skip(&mut self) -> Scan<()> {
        loop {
            match self.peek() {
                bracket @ (b'{' | b'[') => {
                    self.at += 1;
                    self.space();
                    if !self.eat(bracket + 2) {
                        if self.open.len() == MOST_DEPTH {
                            return Err(Reason::TooDeep);
                        }
                        self.open.push(bracket);
                        if bracket == b'{' {
                            self.name()?;
                        }
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            if self.after_value()? {
                return Ok(());
            }
        }
    }

    /// After a value: closes brackets, or moves to the next value; true if none is open any more.
    #[inline]
    fn after_value(&mut self) -> Scan<bool> {
        while let Some(&bracket) = self.open.last() {
            self.space();
            if self.eat(b',') {
                if bracket == b'{' {
                    self.name()?;
                } else {
                    self.space();
                }
                return Ok(false);
            }
            // In ASCII a closing bracket is two places after the opening one.
            if !self.eat(bracket + 2) {
                return Err(self.syntax_error("expected a comma or a closing bracket"));
            }
            self.open.pop();
        }
        Ok(true)
    }

    /// The members of an object: calls `member` with each name, which skips the value.
    #[inline]
    pub(super) fn members(&mut self, mut member: impl FnMut(&mut Self, &'a [u8]) -> Scan<()>) -> Scan<()> {
        self.at += 1;
        self.space();
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            let name = self.name()?;
            member(self, name)?;
            self.space();
            if self.eat(b'}') {
                return Ok(());
            }
            if !self.eat(b',') {
                return Err(self.syntax_error("expected a comma or a closing bracket"));
            }
        }
    }

    /// Nothing but space may follow the value of a line.
    pub(super) fn finish(&mut self) -> Scan<()> {
        self.space();
        if self.at < self.end { Err(self.syntax_error("more than one value")) } else { Ok(()) }
    }
}

/// The text of `raw` between quotes, in UTF-8 if every surrogate has its other half; else each half in three bytes, as
/// UTF-8 would have it.
pub(super) fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let Some((&kind, behind)) = rest.split_first() else { break };
        rest = behind;
        match kind {
            b'u' => rest = push_unit(&mut out, rest),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            other => out.push(other),
        }
    }
    out.extend_from_slice(rest);
    out
}

fn unit(digits: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(digits.get(..4)?).ok()?, 16).ok()
}

/// Writes the character of an escape whose digits begin `rest`; returns the rest.
fn push_unit<'a>(out: &mut Vec<u8>, rest: &'a [u8]) -> &'a [u8] {
    let Some(high) = unit(rest) else { return rest };
    let rest = &rest[4..];
    if (0xd800..0xdc00).contains(&high)
        && let Some(low) = rest.strip_prefix(b"\\u").and_then(unit)
        && (0xdc00..0xe000).contains(&low)
        && let Some(whole) = char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00))
    {
        out.extend_from_slice(whole.encode_utf8(&mut [0; 4]).as_bytes());
        return &rest[6..];
    }
    match char::from_u32(high) {
        Some(whole) => out.extend_from_slice(whole.encode_utf8(&mut [0; 4]).as_bytes()),
        None => out.extend([0xe0 | (high >> 12) as u8, 0x80 | (high >> 6 & 0x3f) as u8, 0x80 | (high & 0x3f) as u8]),
    }
    rest
}

/// Where an unescaped text has the first half of a surrogate pair, and which: such bytes are not valid UTF-8.
pub(super) fn half_pair(text: &[u8]) -> Option<(usize, u16)> {
    let at = text.windows(3).position(|three| three[0] == 0xed && three[1] >= 0xa0)?;
    Some((at, 0xd000 | u16::from(text[at + 1] & 0x3f) << 6 | u16::from(text[at + 2] & 0x3f)))
}
