//! [`Reader`]: parses JSON. It keeps no value and copies only strings with escapes.

use crate::fault::{Fault, Result};

/// How deep ignored values may nest.
const DEEPEST: usize = 128;
/// The most digits of an integer: the time to convert digits grows with their square.
const MOST_DIGITS: usize = 4300;
/// The number of digits that always fits into an `i128`.
const SURE_DIGITS: usize = 38;

pub(super) fn syntax_error(what: &str, at: usize) -> Fault {
    Fault::invalid(format!("the body is not valid JSON: {what} at byte {at}"))
}

/// An integer or a float.
pub(super) enum Number<'a> {
    Small(i128),
    /// Sign and digits of a larger integer.
    Large(bool, &'a [u8]),
    Float(f64),
}

pub(super) struct Reader<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    /// A string after its escapes were replaced.
    pub(super) unescaped: Vec<u8>,
    /// The parts of an array.
    pub(super) parts: Vec<u8>,
}

/// The position of a string in the text; or in `unescaped`, if it has escapes.
pub(super) enum Place {
    Text(usize, usize),
    Unescaped,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a [u8]) -> Result<Self> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        if let Err(error) = std::str::from_utf8(text) {
            return Err(syntax_error("it is not UTF-8", error.valid_up_to()));
        }
        Ok(Reader { text, at: 0, unescaped: Vec::new(), parts: Vec::new() })
    }

    /// The next byte after blanks.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(&byte) = self.text.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    pub(super) fn expect(&mut self, byte: u8) -> Result<()> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(syntax_error(&format!("{:?} is missing", char::from(byte)), self.at))
    }

    pub(super) fn end(&mut self) -> Result<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(syntax_error("something follows its value", self.at)),
        }
    }

    /// Reads the items between commas up to `end`, each with `one`.
    pub(super) fn read_items(&mut self, end: u8, mut one: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        if self.peek() == Some(end) {
            self.at += 1;
            return Ok(());
        }
        loop {
            one(self)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(byte) if byte == end => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(syntax_error("a comma or an end is missing", self.at)),
            }
        }
    }

    /// Reads the members of an object; `one` reads the value that belongs to a name.
    pub(super) fn read_members(&mut self, mut one: impl FnMut(&mut Self, &[u8]) -> Result<()>) -> Result<()> {
        self.read_items(b'}', |reader| {
            let place = reader.string()?;
            reader.expect(b':')?;
            match place {
                Place::Text(start, end) => {
                    let text = reader.text;
                    one(reader, &text[start..end])
                }
                Place::Unescaped => {
                    let name = std::mem::take(&mut reader.unescaped);
                    one(reader, &name)
                }
            }
        })
    }

    pub(super) fn word(&mut self, word: &[u8]) -> bool {
        let there = self.text[self.at..].starts_with(word);
        self.at += if there { word.len() } else { 0 };
        there
    }

    pub(super) fn truth(&mut self) -> Result<bool> {
        match (self.word(b"true"), self.word(b"false")) {
            (false, false) => Err(syntax_error("a value is missing", self.at)),
            (truth, _) => Ok(truth),
        }
    }

    /// Skips bytes up to the next quote or backslash.
    fn skip_plain(&mut self) -> Result<&'a [u8]> {
        let rest = &self.text[self.at..];
        let end =
            memchr::memchr2(b'"', b'\\', rest).ok_or_else(|| syntax_error("a string is not terminated", self.at))?;
        let plain = &rest[..end];
        if plain.iter().any(|&byte| byte < b' ') {
            return Err(syntax_error("a text holds a control character", self.at));
        }
        self.at += end;
        Ok(plain)
    }

    pub(super) fn string(&mut self) -> Result<Place> {
        self.expect(b'"')?;
        let start = self.at;
        let mut plain = self.skip_plain()?;
        if self.word(b"\"") {
            return Ok(Place::Text(start, self.at - 1));
        }
        self.unescaped.clear();
        while !self.word(b"\"") {
            self.unescaped.extend_from_slice(plain);
            self.at += 1; // the backslash
            self.escape()?;
            plain = self.skip_plain()?;
        }
        self.unescaped.extend_from_slice(plain);
        Ok(Place::Unescaped)
    }

    fn digits(&mut self) -> usize {
        let digits = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        digits
    }

    pub(super) fn number(&mut self) -> Result<Number<'a>> {
        let start = self.at;
        if self.word(b"NaN") {
            return Ok(Number::Float(f64::NAN));
        }
        let negative = self.word(b"-");
        if self.word(b"Infinity") {
            return Ok(Number::Float(if negative { f64::NEG_INFINITY } else { f64::INFINITY }));
        }
        let whole = self.at;
        let count = self.digits();
        if count == 0 {
            return Err(syntax_error("a value is missing", start));
        }
        if count > 1 && self.text[whole] == b'0' {
            return Err(syntax_error("a number begins with 0", start));
        }
        let behind = self.at;
        if self.word(b".") && self.digits() == 0 {
            return Err(syntax_error("a number ends in a point", start));
        }
        if self.word(b"e") || self.word(b"E") {
            let _ = self.word(b"+") || self.word(b"-");
            if self.digits() == 0 {
                return Err(syntax_error("an exponent has no digits", start));
            }
        }
        let text = self.text;
        let shown = |bytes: &'a [u8]| std::str::from_utf8(bytes).unwrap_or_default();
        if self.at > behind {
            let value = shown(&text[start..self.at]).parse();
            return value.map(Number::Float).map_err(|_| syntax_error("a number is malformed", start));
        }
        let digits = &text[whole..behind];
        if count > MOST_DIGITS {
            let text = format!("an integer may have {MOST_DIGITS} digits, got {count}; send it as a text");
            return Err(Fault::invalid(text));
        }
        if count <= SURE_DIGITS {
            let value: i128 = shown(digits).parse().map_err(|_| syntax_error("a number is malformed", start))?;
            return Ok(Number::Small(if negative { -value } else { value }));
        }
        Ok(Number::Large(negative, digits))
    }

    pub(super) fn skip(&mut self, depth: usize) -> Result<()> {
        if depth > DEEPEST {
            return Err(syntax_error("it nests too deep", self.at));
        }
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'[') => {
                self.at += 1;
                self.read_items(b']', |reader| reader.skip(depth + 1))
            }
            Some(b'{') => {
                self.at += 1;
                self.read_members(|reader, _| reader.skip(depth + 1))
            }
            Some(b't' | b'f') => self.truth().map(drop),
            Some(b'n') if self.word(b"null") => Ok(()),
            _ => self.number().map(drop),
        }
    }

    /// Replaces an escape sequence, after its backslash.
    fn escape(&mut self) -> Result<()> {
        let at = self.at;
        let known = self.text.get(at).copied();
        self.at += 1;
        let byte = match known {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let code = self.code(at)?;
                let mut utf8 = [0; 4];
                self.unescaped.extend_from_slice(code.encode_utf8(&mut utf8).as_bytes());
                return Ok(());
            }
            _ => return Err(syntax_error("an escape is unknown", at)),
        };
        self.unescaped.push(byte);
        Ok(())
    }

    /// The character of `\uXXXX`, or of a surrogate pair.
    fn code(&mut self, at: usize) -> Result<char> {
        let lone = || Fault::invalid("a key is not valid Unicode: it has a lone surrogate");
        let first = self.hex()?;
        let code = match first {
            0xd800..=0xdbff if self.word(b"\\u") => match self.hex()? {
                second @ 0xdc00..=0xdfff => 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                _ => return Err(lone()),
            },
            0xd800..=0xdfff => return Err(lone()),
            code => code,
        };
        char::from_u32(code).ok_or_else(|| syntax_error("an escape is unknown", at))
    }

    fn hex(&mut self) -> Result<u32> {
        let digits = self.text.get(self.at..self.at + 4).unwrap_or_default();
        if digits.len() < 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(syntax_error("\\u takes four hexadecimal digits", self.at));
        }
        self.at += 4;
        Ok(digits.iter().fold(0, |code, &digit| code << 4 | char::from(digit).to_digit(16).unwrap_or(0)))
    }
}

/// The canonical bytes of an integer with more than 38 digits: the shortest two's complement, little-endian.
pub(super) fn two_complement(negative: bool, digits: &[u8]) -> Vec<u8> {
    const TEN_TO_18: u128 = 1_000_000_000_000_000_000;
    let mut words: Vec<u64> = Vec::new();
    let first = digits.len() % 18;
    let groups = std::iter::once(&digits[..first]).chain(digits[first..].chunks(18));
    for group in groups {
        let mut carry = group.iter().fold(0u128, |value, &digit| value * 10 + u128::from(digit - b'0'));
        for word in &mut words {
            let product = u128::from(*word) * TEN_TO_18 + carry;
            *word = product as u64;
            carry = product >> 64;
        }
        if carry > 0 {
            words.push(carry as u64);
        }
    }
    if negative {
        let mut carry = true;
        for word in &mut words {
            (*word, carry) = (!*word).overflowing_add(u64::from(carry));
        }
    }
    let filler = if negative { 0xff } else { 0 };
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.push(filler);
    let spare = |bytes: &[u8]| bytes.len() > 9 && bytes[bytes.len() - 2] >> 7 == filler >> 7;
    while bytes.last() == Some(&filler) && spare(&bytes) {
        bytes.pop();
    }
    bytes
}
