//! From a cell or value to a key: its type, canonical bytes and hash.

use std::borrow::Cow;

use crate::key::{Domain, KeyDomains, KeyHasher, PART_HEADER, end_part, float_bits};
use crate::text::select::canonical_json;
use crate::text::select::number::{MOST_DIGITS, Whole, parse_whole};
use crate::text::select::reason::Reason;

/// Bytes of the longest tuple: as for tuples of Python.
const MOST_TUPLE: usize = 16 << 20;
/// Bytes of a key that an error shows.
const SHOWN: usize = 40;

/// The type of a cell or value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// The type it has: text in a table, its own in JSON.
    Auto,
    /// Text, of numbers as they are written.
    Text,
    /// A whole number.
    Integer,
    /// A float.
    Float,
    /// True or false, which are the keys 1 and 0.
    Boolean,
    /// A UUID, which is the key of its 16 bytes.
    Uuid,
}

impl KeyType {
    /// All of them by name.
    pub const NAMED: [(&'static str, KeyType); 6] = [
        ("auto", KeyType::Auto),
        ("str", KeyType::Text),
        ("int", KeyType::Integer),
        ("float", KeyType::Float),
        ("bool", KeyType::Boolean),
        ("uuid", KeyType::Uuid),
    ];

    fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, kind)| *kind == self).map_or("key", |(name, _)| name)
    }
}

/// The contents of a record where its key is expected.
#[derive(Debug)]
pub(super) enum Value<'a> {
    /// Nothing, or null.
    Absent,
    /// A cell, or a text of JSON.
    Text(Cow<'a, [u8]>),
    /// A number of JSON.
    Number(&'a [u8]),
    /// True or false of JSON.
    Boolean(bool),
    /// An array or object of JSON.
    Nested(&'a [u8]),
}

/// A key in its canonical form.
#[derive(Debug)]
pub(super) enum Key<'a> {
    Text(Cow<'a, [u8]>),
    Word(i64),
    Long(Vec<u8>),
    Float(f64),
    Tuple(Vec<u8>),
}

impl Key<'_> {
    /// The hash of the key.
    #[inline]
    pub(super) fn hash(&self, hasher: &KeyHasher) -> u64 {
        match self {
            Key::Text(text) => hasher.text(text),
            Key::Word(value) => hasher.hash_signed(*value),
            Key::Long(bytes) => hasher.bytes(Domain::Integer, bytes),
            Key::Float(value) => hasher.float(*value),
            Key::Tuple(bytes) => hasher.bytes(Domain::Tuple, bytes),
        }
    }

    /// The domain of the key, as a set.
    #[inline]
    pub(super) fn domains(&self) -> KeyDomains {
        KeyDomains::of(match self {
            Key::Text(_) => Domain::Text,
            Key::Word(_) | Key::Long(_) => Domain::Integer,
            Key::Float(_) => Domain::Float,
            Key::Tuple(_) => Domain::Tuple,
        })
    }

    /// Writes the canonical bytes; their domain.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Domain {
        match self {
            Key::Text(text) => (out.extend_from_slice(text), Domain::Text).1,
            Key::Word(value) => (out.extend_from_slice(&value.to_le_bytes()), Domain::Integer).1,
            Key::Long(bytes) => (out.extend_from_slice(bytes), Domain::Integer).1,
            Key::Float(value) => (out.extend_from_slice(&float_bits(*value).to_le_bytes()), Domain::Float).1,
            Key::Tuple(bytes) => (out.extend_from_slice(bytes), Domain::Tuple).1,
        }
    }
}

/// The key of a value; `None` if the value has no key.
#[inline]
pub(super) fn key_of(value: Value<'_>, kind: KeyType) -> Result<Option<Key<'_>>, Reason> {
    match (value, kind) {
        (Value::Absent, _) => Ok(None),
        (Value::Text(text), KeyType::Auto | KeyType::Text) => Ok(Some(Key::Text(text))),
        (value, KeyType::Auto) => own(value).map(Some),
        (Value::Nested(text), _) => Err(not_of(kind, text)),
        (Value::Boolean(value), KeyType::Boolean) => Ok(Some(Key::Word(i64::from(value)))),
        (Value::Boolean(value), _) => as_kind(Cow::Borrowed(if value { b"true" } else { b"false" }), kind),
        (Value::Text(text), _) => as_kind(text, kind),
        (Value::Number(text), _) => as_kind(Cow::Borrowed(text), kind),
    }
}

/// The key of a value of JSON by its own type. For other types than text and numbers it is the JSON text within a
/// tuple: the order of an object's names does not count, and a bare true would equal the key 1.
fn own(value: Value<'_>) -> Result<Key<'_>, Reason> {
    let text = match value {
        Value::Absent => Vec::new(),
        Value::Text(text) => return Ok(Key::Text(text)),
        Value::Number(text) => return number(text),
        Value::Boolean(value) => if value { &b"true"[..] } else { b"false" }.to_vec(),
        Value::Nested(text) => canonical_json::text(text)?,
    };
    let mut out = Vec::new();
    push_part(&mut out, &Key::Text(Cow::Owned(text)));
    Ok(Key::Tuple(out))
}

/// A number of JSON: an integer if it is written without fraction and exponent, else a float.
fn number<'a>(text: &[u8]) -> Result<Key<'a>, Reason> {
    if text.len() > MOST_DIGITS && text.iter().skip(1).all(u8::is_ascii_digit) {
        return Err(Reason::LongNumber);
    }
    match parse_whole(text) {
        Some(Whole::Word(value)) => Ok(Key::Word(value)),
        Some(Whole::Long(bytes)) => Ok(Key::Long(bytes)),
        None => float(text).map(Key::Float).ok_or_else(|| not_of(KeyType::Float, text)),
    }
}

/// A cell, or the text of a value, as the requested type; an empty cell is a key only as text.
fn as_kind(text: Cow<'_, [u8]>, kind: KeyType) -> Result<Option<Key<'_>>, Reason> {
    if kind == KeyType::Text {
        return Ok(Some(Key::Text(text)));
    }
    let bare = text.trim_ascii();
    if bare.is_empty() {
        return Ok(None);
    }
    let key = match kind {
        KeyType::Float => float(bare).map(Key::Float),
        KeyType::Boolean => boolean(bare).map(|value| Key::Word(i64::from(value))),
        KeyType::Uuid => uuid(bare).map(|bytes| Key::Text(Cow::Owned(bytes.to_vec()))),
        _ => parse_whole(bare).map(|value| match value {
            Whole::Word(value) => Key::Word(value),
            Whole::Long(bytes) => Key::Long(bytes),
        }),
    };
    key.map(Some).ok_or_else(|| not_of(kind, &text))
}

fn float(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn boolean(text: &[u8]) -> Option<bool> {
    match text {
        b"true" | b"True" | b"TRUE" | b"1" => Some(true),
        b"false" | b"False" | b"FALSE" | b"0" => Some(false),
        _ => None,
    }
}

/// 32 hexadecimal digits, with hyphens, braces or `urn:uuid:` or without, as Python's `uuid.UUID` reads them.
fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    let bare = text.strip_prefix(b"urn:uuid:").unwrap_or(text);
    let bare = bare.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")).unwrap_or(bare);
    let mut value = 0u128;
    let mut digits = 0;
    for byte in bare.iter().filter(|byte| **byte != b'-') {
        value = value << 4 | u128::from(char::from(*byte).to_digit(16)?);
        digits += 1;
    }
    (digits == 32).then(|| value.to_be_bytes())
}

#[cold]
fn not_of(kind: KeyType, text: &[u8]) -> Reason {
    let shown = &text[..text.len().min(SHOWN)];
    let more = if shown.len() < text.len() { "..." } else { "" };
    Reason::NotOfType(kind.name(), format!("{:?}{more}", String::from_utf8_lossy(shown)))
}

fn push_part(out: &mut Vec<u8>, key: &Key<'_>) {
    let start = out.len();
    out.resize(start + PART_HEADER, 0);
    let domain = key.write(out);
    end_part(out, start, domain);
}

/// The tuple of the values of several columns; `None` if one of them has no key.
pub(super) fn tuple_of<'a>(
    parts: impl Iterator<Item = Result<Option<Key<'a>>, Reason>>,
) -> Result<Option<Key<'a>>, Reason> {
    let (mut out, mut whole) = (Vec::new(), true);
    for part in parts {
        match part? {
            Some(key) => push_part(&mut out, &key),
            None => whole = false,
        }
        if out.len() > MOST_TUPLE {
            return Err(Reason::LongTuple);
        }
    }
    Ok(whole.then_some(Key::Tuple(out)))
}
