//! Escape sequences of JSON strings.

use super::{Reader, wrong};
use crate::fault::{Fault, Result};

impl Reader<'_> {
    /// Replaces what follows a backslash.
    pub(super) fn escape(&mut self) -> Result<()> {
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
            _ => return Err(wrong("an escape is unknown", at)),
        };
        self.unescaped.push(byte);
        Ok(())
    }

    /// The character of `\uXXXX`, or of two halves of one.
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
        char::from_u32(code).ok_or_else(|| wrong("an escape is unknown", at))
    }

    fn hex(&mut self) -> Result<u32> {
        let digits = self.text.get(self.at..self.at + 4).unwrap_or_default();
        if digits.len() < 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(wrong("\\u takes four hexadecimal digits", self.at));
        }
        self.at += 4;
        Ok(digits.iter().fold(0, |code, &digit| code << 4 | char::from(digit).to_digit(16).unwrap_or(0)))
    }
}
