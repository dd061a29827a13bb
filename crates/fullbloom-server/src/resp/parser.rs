//! [`Parser`]: parses commands from the bytes of a connection, without copying them.
//!
//! A command is an array of bulk strings, or a line of words. The parser keeps its progress within an incomplete
//! command, so it visits no byte twice. It checks every length against [`Caps`] before anything is allocated.

use crate::limits::Limits;

/// The longest line of words, in bytes.
const LINE: usize = 64 << 10;
/// The longest line with a length, including its end: 20 characters of an `i64`.
const NUMBER: usize = 32;

/// The position of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    start: u32,
    end: u32,
}

/// The arguments of a command; the first is its name.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Args<'a> {
    /// The arguments at `spans` in `bytes`.
    pub fn new(bytes: &'a [u8], spans: &'a [Span]) -> Self {
        Args { bytes, spans }
    }

    /// The number of arguments.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// True if there are no arguments.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The argument at `index`; empty beyond the last.
    #[inline]
    pub fn at(&self, index: usize) -> &'a [u8] {
        self.spans.get(index).map_or(&[], |span| &self.bytes[span.start as usize..span.end as usize])
    }

    /// The arguments from `first` on.
    #[inline]
    pub fn from(&self, first: usize) -> Args<'a> {
        Args { bytes: self.bytes, spans: self.spans.get(first..).unwrap_or_default() }
    }

    /// All arguments.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.spans.iter().map(move |span| &bytes[span.start as usize..span.end as usize])
    }
}

/// What a client may send.
#[derive(Clone, Copy, Debug)]
pub struct Caps {
    /// The most arguments of a command.
    pub arguments: usize,
    /// The most bytes of an argument.
    pub bulk: usize,
    /// The most bytes of a command.
    pub request: usize,
    /// True until the client has authenticated.
    pub unauthenticated: bool,
}

impl Caps {
    /// The caps of an authenticated client.
    pub fn of(limits: &Limits) -> Self {
        let request = limits.request_bytes.min(u32::MAX as usize / 2);
        Caps { arguments: limits.batch_keys.saturating_add(64), bulk: request, request, unauthenticated: false }
    }

    /// The caps of a client that must authenticate first.
    pub fn before_auth() -> Self {
        Caps { arguments: 10, bulk: 16 << 10, request: 64 << 10, unauthenticated: true }
    }
}

/// Why a connection is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// The bytes are not a command. Holds the error message.
    Protocol(String),
    /// The bytes are an HTTP request, which a third party may have caused: the connection is closed without a reply.
    Http,
}

/// How far the parser got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Bytes are missing: at least this many, as far as the parser knows.
    Missing(usize),
    /// A complete command of this many bytes. It may have no words, and then gets no reply.
    Array(usize),
    /// The same, as a line: its words are in [`Parser::words`].
    Line(usize),
}

/// The progress within an incomplete command.
#[derive(Debug, Default)]
pub struct Parser {
    /// The number of bytes parsed, or searched for the end of a line.
    at: usize,
    /// The arguments still to come, once the head has been parsed.
    left: usize,
    /// The length of the argument whose head has been parsed.
    bulk: Option<usize>,
    /// The words of a line, without their quotes.
    words: Vec<u8>,
}

fn protocol_error(text: impl Into<String>) -> ParseError {
    ParseError::Protocol(text.into())
}

/// The number in the line at `at`, and the position of the next line; `None` if the line is incomplete.
#[inline]
fn number(bytes: &[u8], at: usize, too_big: &str) -> Result<Option<(Option<i64>, usize)>, ParseError> {
    let mut value = 0u64;
    let line = &bytes[at..bytes.len().min(at + NUMBER)];
    for (i, &byte) in line.iter().enumerate() {
        match byte {
            b'0'..=b'9' if i < 18 && (value > 0 || i == 0) => value = value * 10 + u64::from(byte - b'0'),
            b'\r' if i > 0 => {
                return Ok((at + i + 1 < bytes.len()).then_some((Some(value as i64), at + i + 2)));
            }
            _ => return odd_number(bytes, line, at, too_big),
        }
    }
    if line.len() == NUMBER { Err(protocol_error(too_big)) } else { Ok(None) }
}

/// [`number`] for anything but a few digits.
#[cold]
fn odd_number(bytes: &[u8], line: &[u8], at: usize, too_big: &str) -> Result<Option<(Option<i64>, usize)>, ParseError> {
    match memchr::memchr(b'\r', line) {
        None if line.len() == NUMBER => Err(protocol_error(too_big)),
        None => Ok(None),
        Some(end) if at + end + 1 >= bytes.len() => Ok(None),
        Some(end) => {
            let text = std::str::from_utf8(&line[..end]).unwrap_or_default();
            let value = text.parse::<i64>().ok().filter(|value| value.to_string() == text);
            Ok(Some((value, at + end + 2)))
        }
    }
}

impl Parser {
    /// The words of the parsed line.
    pub fn words(&self) -> &[u8] {
        &self.words
    }

    /// Parses the command at the start of `bytes`; `spans` collects its arguments. Call it again with the same bytes
    /// and more of them, or with what follows the command.
    #[inline]
    pub fn next(&mut self, bytes: &[u8], spans: &mut Vec<Span>, caps: &Caps) -> Result<Progress, ParseError> {
        if self.left == 0 {
            spans.clear();
            match bytes.first() {
                None => return Ok(Progress::Missing(1)),
                Some(b'*') => {}
                Some(_) => return self.line(bytes, spans, caps),
            }
            let Some((count, next)) = number(bytes, 1, "too big mbulk count string")? else {
                self.at = 1;
                return Ok(Progress::Missing(1));
            };
            self.left = self.check_count(count, caps)?;
            self.at = next;
        }
        while self.left > 0 {
            match self.argument(bytes, spans, caps)? {
                None => self.left -= 1,
                Some(missing) => return Ok(Progress::Missing(missing)),
            }
        }
        Ok(Progress::Array(std::mem::take(&mut self.at)))
    }

    fn check_count(&self, count: Option<i64>, caps: &Caps) -> Result<usize, ParseError> {
        match count {
            Some(count) if count <= 0 => Ok(0),
            Some(count) if count as usize <= caps.arguments => Ok(count as usize),
            Some(_) if caps.unauthenticated => Err(protocol_error("unauthenticated multibulk length")),
            _ => Err(protocol_error("invalid multibulk length")),
        }
    }

    /// Parses one argument; returns how many bytes are missing, if any.
    #[inline]
    fn argument(&mut self, bytes: &[u8], spans: &mut Vec<Span>, caps: &Caps) -> Result<Option<usize>, ParseError> {
        let length = match self.bulk {
            Some(length) => length,
            None => {
                match bytes.get(self.at) {
                    None => return Ok(Some(1)),
                    Some(b'$') => {}
                    Some(&other) => {
                        return Err(protocol_error(format!("expected '$', got '{}'", other.escape_ascii())));
                    }
                }
                let Some((length, next)) = number(bytes, self.at + 1, "too big bulk count string")? else {
                    return Ok(Some(1));
                };
                let length = match length {
                    Some(length) if length >= 0 && length as u64 <= caps.bulk as u64 => length as usize,
                    Some(length) if length >= 0 && caps.unauthenticated => {
                        return Err(protocol_error("unauthenticated bulk length"));
                    }
                    _ => return Err(protocol_error("invalid bulk length")),
                };
                if next + length + 2 > caps.request {
                    return Err(protocol_error("too big request"));
                }
                self.at = next;
                length
            }
        };
        let end = self.at + length;
        if bytes.len() < end + 2 {
            self.bulk = Some(length);
            return Ok(Some(end + 2 - bytes.len()));
        }
        self.bulk = None;
        spans.push(Span { start: self.at as u32, end: end as u32 });
        self.at = end + 2;
        Ok(None)
    }

    /// Parses a line of words.
    #[cold]
    fn line(&mut self, bytes: &[u8], spans: &mut Vec<Span>, caps: &Caps) -> Result<Progress, ParseError> {
        let Some(end) = memchr::memchr(b'\n', &bytes[self.at..]).map(|end| self.at + end) else {
            self.at = bytes.len();
            if self.at > LINE.min(caps.request) {
                return Err(protocol_error("too big inline request"));
            }
            return Ok(Progress::Missing(1));
        };
        if end > LINE.min(caps.request) {
            return Err(protocol_error("too big inline request"));
        }
        self.at = 0;
        self.words.clear();
        let line = &bytes[..end];
        split_words(line.strip_suffix(b"\r").unwrap_or(line), &mut self.words, spans)
            .ok_or_else(|| protocol_error("unbalanced quotes in request"))?;
        if let Some(first) = spans.first() {
            let first = &self.words[first.start as usize..first.end as usize];
            if first.eq_ignore_ascii_case(b"post") || first.eq_ignore_ascii_case(b"host:") {
                return Err(ParseError::Http);
            }
        }
        if spans.len() > caps.arguments {
            return Err(protocol_error("too big inline request"));
        }
        Ok(Progress::Line(end + 1))
    }
}

/// Splits a line into words and resolves quotes, as redis-cli does; `None` if quotes are unbalanced.
fn split_words(line: &[u8], words: &mut Vec<u8>, spans: &mut Vec<Span>) -> Option<()> {
    let mut at = 0;
    loop {
        while line.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        if at >= line.len() {
            return Some(());
        }
        let start = words.len() as u32;
        while let Some(&byte) = line.get(at).filter(|byte| !byte.is_ascii_whitespace()) {
            at += 1;
            match byte {
                b'"' | b'\'' => {
                    at = parse_quoted(line, at, byte, words)?;
                    // A quote ends its word.
                    if line.get(at).is_some_and(|next| !next.is_ascii_whitespace()) {
                        return None;
                    }
                }
                _ => words.push(byte),
            }
        }
        spans.push(Span { start, end: words.len() as u32 });
    }
}

/// Copies the text in quotes from `at` on; returns the position after it.
fn parse_quoted(line: &[u8], mut at: usize, quote: u8, words: &mut Vec<u8>) -> Option<usize> {
    let hex = |at: usize| {
        let digits = std::str::from_utf8(line.get(at..at + 2)?).ok()?;
        digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u8::from_str_radix(digits, 16).ok())?
    };
    loop {
        let byte = *line.get(at)?;
        at += 1;
        match (byte, quote, line.get(at)) {
            (byte, quote, _) if byte == quote => return Some(at),
            (b'\\', b'\'', Some(b'\'')) => {
                words.push(b'\'');
                at += 1;
            }
            (b'\\', b'"', Some(&next)) => {
                at += 1;
                match (next, hex(at)) {
                    (b'x', Some(value)) => {
                        words.push(value);
                        at += 2;
                    }
                    (b'n', _) => words.push(b'\n'),
                    (b'r', _) => words.push(b'\r'),
                    (b't', _) => words.push(b'\t'),
                    (b'b', _) => words.push(8),
                    (b'a', _) => words.push(7),
                    (other, _) => words.push(other),
                }
            }
            _ => words.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPS: Caps = Caps { arguments: 100, bulk: 1000, request: 2000, unauthenticated: false };

    /// All commands in `bytes`, passed in pieces that end at `cuts`.
    fn commands(bytes: &[u8], cuts: &[usize], caps: &Caps) -> Result<Vec<Vec<Vec<u8>>>, ParseError> {
        let (mut parser, mut spans, mut found, mut start) = (Parser::default(), Vec::new(), Vec::new(), 0);
        for &cut in cuts.iter().chain([&bytes.len()]) {
            loop {
                let there = &bytes[start..cut];
                let (words, length) = match parser.next(there, &mut spans, caps)? {
                    Progress::Missing(missing) => {
                        assert!(missing > 0);
                        break;
                    }
                    Progress::Array(length) => (there, length),
                    Progress::Line(length) => (parser.words(), length),
                };
                found.push(Args::new(words, &spans).iter().map(<[u8]>::to_vec).collect());
                start += length;
            }
        }
        Ok(found)
    }

    fn parse_all(bytes: &[u8]) -> Result<Vec<Vec<Vec<u8>>>, ParseError> {
        commands(bytes, &[], &CAPS)
    }

    #[test]
    fn input_split_anywhere_gives_the_same_commands() {
        let bytes = b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n*0\r\nPING  x\r\n*-1\r\n\r\n*3\r\n$6\r\nBF.ADD\r\n$1\r\na\r\n$13\r\n\r\n$1\r\n*2\r\nabc\r\nset \"a b\\x41\\n\" 'c\\'d'\n";
        let expected = parse_all(bytes).unwrap();
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
    fn errors_have_the_wording_of_redis() {
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
            assert_eq!(parse_all(bytes), Err(ParseError::Protocol(text.into())), "{}", bytes.escape_ascii());
        }
        let three = format!("*3\r\n{0}{0}{0}", format!("$900\r\n{}\r\n", "x".repeat(900)));
        assert_eq!(parse_all(three.as_bytes()), Err(ParseError::Protocol("too big request".into())));
        for bytes in [&b"POST / HTTP/1.1\r\n"[..], b"GET / HTTP/1.1\r\nHost: x\r\n"] {
            assert_eq!(parse_all(bytes), Err(ParseError::Http));
        }
        let unknown = Caps::before_auth();
        let refused = |bytes| commands(bytes, &[], &unknown).unwrap_err();
        assert_eq!(refused(b"*11\r\n"), ParseError::Protocol("unauthenticated multibulk length".into()));
        assert_eq!(refused(b"*1\r\n$16385\r\n"), ParseError::Protocol("unauthenticated bulk length".into()));
    }

    #[test]
    fn any_bytes_split_anywhere_are_commands_or_an_error() {
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
            let once = parse_all(&bytes);
            let mut cuts: Vec<usize> = (0..3).map(|_| draw(bytes.len() + 1)).collect();
            cuts.sort_unstable();
            assert_eq!(commands(&bytes, &cuts, &CAPS), once, "{} {cuts:?}", bytes.escape_ascii());
            if once.is_ok() { good += 1 } else { bad += 1 }
        }
        assert!(good > 1000 && bad > 1000, "{good} {bad}");
    }
}
