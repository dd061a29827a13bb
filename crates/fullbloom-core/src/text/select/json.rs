//! JSON lines: the values at dotted names.

use std::borrow::Cow;

use crate::text::select::key::Value;
use crate::text::select::reason::Reason;
use crate::text::select::scan::{Scanner, half_pair, unescape};

/// The selected names, nested.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    members: Vec<(Vec<u8>, Names)>,
    /// The indices of the values at this name in the answer.
    places: Vec<usize>,
}

/// Where a value is in the block.
pub(super) type Span = Option<(usize, usize)>;

impl Names {
    /// The names of dotted `paths`; the value of the nth has index n.
    pub(super) fn of(paths: &[String]) -> Self {
        let mut root = Names::default();
        for (place, path) in paths.iter().enumerate() {
            let mut names = &mut root;
            for name in path.split('.').map(str::as_bytes) {
                let at = names.members.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                    names.members.push((name.to_vec(), Names::default()));
                    names.members.len() - 1
                });
                names = &mut names.members[at].1;
            }
            names.places.push(place);
        }
        root
    }

    #[inline]
    fn find(&self, raw: &[u8]) -> Option<&Names> {
        let found = |name: &[u8]| self.members.iter().find(|(known, _)| known == name).map(|(_, names)| names);
        // Escapes in names are rare.
        if memchr::memchr(b'\\', raw).is_none() { found(raw) } else { found(&unescape(raw)) }
    }

    /// The last value of a repeated name counts, as in Python.
    fn forget(&self, found: &mut [Span]) {
        self.places.iter().for_each(|&place| found[place] = None);
        self.members.iter().for_each(|(_, names)| names.forget(found));
    }

    /// Reads the members of the object that begins here.
    fn read(&self, scanner: &mut Scanner<'_>, found: &mut [Span]) -> Result<(), Reason> {
        scanner.members(|scanner, raw| {
            let Some(names) = self.find(raw) else { return scanner.skip() };
            names.forget(found);
            let start = scanner.at;
            if !names.members.is_empty() && scanner.peek() == b'{' {
                names.read(scanner, found)?;
            } else {
                scanner.skip()?;
            }
            names.places.iter().for_each(|&place| found[place] = Some((start, scanner.at)));
            Ok(())
        })
    }

    /// The values of the line at `scanner`; false if it contains only space.
    pub(super) fn of_line(&self, scanner: &mut Scanner<'_>, found: &mut [Span]) -> Result<bool, Reason> {
        found.fill(None);
        scanner.space();
        match scanner.peek() {
            b'{' => self.read(scanner, found)?,
            b'\n' => return Ok(false),
            first => {
                scanner.skip()?;
                scanner.finish()?;
                return Err(Reason::NotAnObject(match first {
                    b'[' => "an array",
                    b'"' => "a text",
                    b'-' | b'0'..=b'9' | b'I' | b'N' => "a number",
                    b'n' => "null",
                    _ => "true or false",
                }));
            }
        }
        scanner.finish().map(|()| true)
    }
}

/// The value that was passed over as `raw`.
#[inline]
pub(super) fn value(raw: &[u8]) -> Result<Value<'_>, Reason> {
    Ok(match raw {
        [b'"', text @ .., b'"'] if memchr::memchr(b'\\', text).is_none() => Value::Text(Cow::Borrowed(text)),
        [b'"', text @ .., b'"'] => {
            let text = unescape(text);
            if let Some((_, half)) = half_pair(&text) {
                return Err(Reason::HalfPair(half));
            }
            Value::Text(Cow::Owned(text))
        }
        b"null" => Value::Absent,
        b"true" => Value::Boolean(true),
        b"false" => Value::Boolean(false),
        [b'{' | b'[', ..] => Value::Nested(raw),
        _ => Value::Number(raw),
    })
}
