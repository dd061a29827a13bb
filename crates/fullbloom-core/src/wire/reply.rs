//! [`Replies`]: the replies of a server, parsed from pieces of any length.
//!
//! Replies are untrusted: a stated length allocates nothing, an invalid reply is an error, and so is one longer than
//! the command may return, which is refused by its stated length before its bytes are read.

use crate::error::{Error, Result};

/// Bytes of a line: a number, or an error with its text.
const LINE: usize = 1 << 16;
/// Bytes of an item of an array, besides texts: a number, or an error in its place.
const ITEM: usize = 1 << 7;

/// The size limit of a reply. An error reply, of one line, is always allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Bytes of a text, of all texts of an array together.
    pub text: usize,
    /// Items of an array, inner ones included.
    pub items: usize,
}

impl Limit {
    /// A number, or a line of text.
    pub const LINE: Limit = Limit { text: 0, items: 0 };
    /// Bytes that the caller wrote, or has checked already.
    pub(super) const TRUSTED: Limit = Limit { text: usize::MAX, items: usize::MAX };
    /// Push messages, which are short.
    const MESSAGE: Limit = Limit { text: 1 << 20, items: 1 << 16 };

    /// A text of at most `bytes` bytes.
    pub fn text(bytes: u64) -> Self {
        Limit { text: usize::try_from(bytes).unwrap_or(usize::MAX), items: 0 }
    }

    /// At most `items` numbers.
    pub fn numbers(items: usize) -> Self {
        Limit { text: 0, items }
    }

    /// Bytes of a reply, at most.
    fn bytes(self) -> usize {
        self.items.saturating_mul(ITEM).saturating_add(self.text).saturating_add(LINE)
    }
}

/// One reply. Texts are slices of the buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reply<'a> {
    /// A whole number.
    Integer(i64),
    /// A text of known length.
    Bulk(&'a [u8]),
    /// A text of one line.
    Simple(&'a [u8]),
    /// Nothing.
    Nil,
    /// A refusal: its code, a blank, the text.
    Error(&'a [u8]),
    /// Several replies; [`items`] reads the integers among them.
    Array(&'a [u8]),
    /// A type that no command here returns.
    Other,
}

/// The integers of an array; an item of another type is `None`.
pub fn items(array: &[u8]) -> impl Iterator<Item = Option<i64>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (reply, end) = one(array, at, Limit::TRUSTED).ok()??;
        at = end;
        Some(if let Reply::Integer(number) = reply { Some(number) } else { None })
    })
}

/// The received bytes, and how many of them were read.
#[derive(Debug, Default)]
pub struct Replies {
    bytes: Vec<u8>,
    at: usize,
}

impl Replies {
    /// Adds the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<()> {
        if self.at == self.bytes.len() {
            self.bytes.clear();
        } else {
            self.bytes.drain(..self.at);
        }
        self.at = 0;
        crate::cells::allocation::reserve(&mut self.bytes, bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The next reply, once it is complete; an error as soon as it exceeds `limit`. Push messages are skipped.
    pub fn read(&mut self, limit: Limit) -> Result<Option<Reply<'_>>> {
        while let Some(b'>' | b'|') = self.bytes.get(self.at) {
            let Some(end) = past(&self.bytes, self.at, Limit::MESSAGE)? else { return self.take_due(Limit::MESSAGE) };
            self.at = end;
        }
        match one(&self.bytes, self.at, limit)? {
            Some((reply, end)) => {
                self.at = end;
                Ok(Some(reply))
            }
            None => self.take_due(limit),
        }
    }

    /// `None`, while the received bytes are no more than a reply within `limit` may have.
    fn take_due(&self, limit: Limit) -> Result<Option<Reply<'_>>> {
        if self.remaining() > limit.bytes() { Err(length_error()) } else { Ok(None) }
    }

    /// Bytes that were not read yet.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Forgets all bytes.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.at = 0;
    }
}

fn reply_error(what: &str) -> Error {
    Error::format(format!("the server's reply is not valid RESP ({what}); is it a Redis or Valkey server?"))
}

/// The refusal of a reply that is beyond its [`Limit`].
fn length_error() -> Error {
    reply_error("it is longer than requested")
}

/// The line from `at` on without its end, and the index after it.
fn line(bytes: &[u8], at: usize) -> Result<Option<(&[u8], usize)>> {
    let rest = &bytes[at..];
    match rest.iter().take(LINE).position(|&byte| byte == b'\n') {
        Some(0) => Err(reply_error("a line ends without a carriage return")),
        Some(end) if rest[end - 1] != b'\r' => Err(reply_error("a line ends without a carriage return")),
        Some(end) => Ok(Some((&rest[..end - 1], at + end + 1))),
        None if rest.len() >= LINE => Err(reply_error("a line without end")),
        None => Ok(None),
    }
}

fn parse_integer(text: &[u8]) -> Result<i64> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| reply_error("an invalid number"))
}

/// The type of the reply at `at`, the rest of its first line, and the index after that.
fn head(bytes: &[u8], at: usize) -> Result<Option<(u8, &[u8], usize)>> {
    match bytes.get(at) {
        None => Ok(None),
        Some(kind) if !b":#+-_$!=*~%>|,(".contains(kind) => Err(reply_error("an unknown kind")),
        Some(&kind) => Ok(line(bytes, at + 1)?.map(|(text, next)| (kind, text, next))),
    }
}

/// The reply at `at`, and the index after it.
fn one(bytes: &[u8], at: usize, limit: Limit) -> Result<Option<(Reply<'_>, usize)>> {
    let Some((kind, text, next)) = head(bytes, at)? else { return Ok(None) };
    let reply = match kind {
        b':' => Reply::Integer(parse_integer(text)?),
        b'#' => Reply::Integer(i64::from(text == b"t")),
        b'+' => Reply::Simple(text),
        b'-' => Reply::Error(text),
        b'_' => Reply::Nil,
        b'$' | b'!' | b'=' => {
            let most = if kind == b'!' { limit.text.max(LINE) } else { limit.text };
            let Some(end) = text_end(bytes, text, next, most)? else { return Ok(None) };
            let text = bytes.get(next..end.saturating_sub(2)).unwrap_or_default();
            return Ok(Some(match kind {
                _ if end == next => (Reply::Nil, end),
                b'!' => (Reply::Error(text), end),
                _ => (Reply::Bulk(text), end),
            }));
        }
        b'*' if text.first() == Some(&b'-') => Reply::Nil,
        b'*' | b'~' | b'%' => {
            let Some(end) = past(bytes, at, limit)? else { return Ok(None) };
            return Ok(Some((Reply::Array(&bytes[next..end]), end)));
        }
        _ => Reply::Other,
    };
    Ok(Some((reply, next)))
}

/// The end of a text of stated length that begins at `next`, and has at most `most` bytes; `next` itself if there is no
/// text.
fn text_end(bytes: &[u8], stated: &[u8], next: usize, most: usize) -> Result<Option<usize>> {
    let len = parse_integer(stated)?;
    if len < -1 {
        return Err(reply_error("a text of an impossible length"));
    }
    let Ok(len) = usize::try_from(len) else { return Ok(Some(next)) };
    if len > most {
        return Err(length_error());
    }
    let Some(end) = next.checked_add(len).and_then(|end| end.checked_add(2)) else { return Err(length_error()) };
    if bytes.len() < end {
        return Ok(None);
    }
    if &bytes[end - 2..end] == b"\r\n" { Ok(Some(end)) } else { Err(reply_error("a text longer than stated")) }
}

/// The index after the reply at `at`, for any contents within `limit`. A loop, so that no depth costs a stack.
pub(super) fn past(bytes: &[u8], mut at: usize, limit: Limit) -> Result<Option<usize>> {
    let (mut due, mut seen, mut text_left) = (1i64, 0i64, limit.text);
    let most = i64::try_from(limit.items).unwrap_or(i64::MAX);
    while due > 0 {
        let Some((kind, text, next)) = head(bytes, at)? else { return Ok(None) };
        at = next;
        match kind {
            b'$' | b'!' | b'=' => {
                match text_end(bytes, text, next, text_left.max(if kind == b'!' { LINE } else { 0 }))? {
                    Some(end) => {
                        text_left = text_left.saturating_sub(end - next);
                        at = end;
                    }
                    None => return Ok(None),
                }
            }
            b'*' | b'~' | b'>' | b'%' | b'|' => {
                let stated = parse_integer(text)?;
                if stated < -1 {
                    return Err(reply_error("an array of an impossible length"));
                }
                let pairs = if matches!(kind, b'%' | b'|') { 2 } else { 1 };
                // An attribute precedes a reply and is not one itself.
                let attribute = i64::from(kind == b'|' && seen > 0);
                due = due.saturating_add(stated.max(0).saturating_mul(pairs)).saturating_add(attribute);
            }
            _ => {}
        }
        (due, seen) = (due - 1, seen + 1);
        // The reply itself is no item of its own.
        if due.saturating_add(seen - 1) > most {
            return Err(length_error());
        }
    }
    Ok(Some(at))
}
