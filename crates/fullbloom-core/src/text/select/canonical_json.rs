//! Arrays and objects as one text each, whatever the order of names: as Python's `json.dumps(value, sort_keys=True)`.

use crate::text::select::number::{MOST_DIGITS, push_float};
use crate::text::select::reason::Reason;
use crate::text::select::scan::{Scanner, half_pair, unescape};

/// The text of a value that was passed over before, so that it is JSON.
pub(super) fn text(value: &[u8]) -> Result<Vec<u8>, Reason> {
    let (mut scanner, mut out) = (Scanner::new(value), Vec::with_capacity(value.len()));
    push(&mut scanner, &mut out)?;
    Ok(out)
}

fn push(scanner: &mut Scanner<'_>, out: &mut Vec<u8>) -> Result<(), Reason> {
    match scanner.peek() {
        b'{' => push_object(scanner, out),
        b'[' => push_array(scanner, out),
        b'"' => {
            let text = scanner.text()?;
            push_text(out, &unescape(text));
            Ok(())
        }
        _ => {
            let start = scanner.at;
            scanner.skip()?;
            push_scalar(out, &scanner.bytes()[start..scanner.at])
        }
    }
}

fn push_array(scanner: &mut Scanner<'_>, out: &mut Vec<u8>) -> Result<(), Reason> {
    scanner.at += 1;
    scanner.space();
    out.push(b'[');
    while !scanner.eat(b']') {
        push(scanner, out)?;
        scanner.space();
        if scanner.eat(b',') {
            out.extend_from_slice(b", ");
            scanner.space();
        }
    }
    out.push(b']');
    Ok(())
}

/// The last value of a repeated name counts, as in Python.
fn push_object(scanner: &mut Scanner<'_>, out: &mut Vec<u8>) -> Result<(), Reason> {
    let mut members = std::collections::BTreeMap::new();
    scanner.members(|scanner, name| {
        let mut value = Vec::new();
        push(scanner, &mut value)?;
        members.insert(unescape(name), value);
        Ok(())
    })?;
    out.push(b'{');
    for (number, (name, value)) in members.iter().enumerate() {
        if number != 0 {
            out.extend_from_slice(b", ");
        }
        push_text(out, name);
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
    }
    out.push(b'}');
    Ok(())
}

fn push_scalar(out: &mut Vec<u8>, raw: &[u8]) -> Result<(), Reason> {
    let digits = raw.strip_prefix(b"-").unwrap_or(raw);
    if digits.iter().all(u8::is_ascii_digit) {
        if digits.len() > MOST_DIGITS {
            return Err(Reason::LongNumber);
        }
        out.extend_from_slice(if raw == b"-0" { b"0" } else { raw });
    } else if digits[0].is_ascii_digit() || raw == b"NaN" || digits == b"Infinity" {
        let value = std::str::from_utf8(raw).ok().and_then(|text| text.parse().ok());
        push_float(out, value.unwrap_or(f64::NAN));
    } else {
        out.extend_from_slice(raw);
    }
    Ok(())
}

/// A text in quotes and ASCII.
fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    out.push(b'"');
    while let Some((at, half)) = half_pair(rest) {
        String::from_utf8_lossy(&rest[..at]).chars().for_each(|one| push_char(out, one));
        out.extend_from_slice(format!("\\u{half:04x}").as_bytes());
        rest = &rest[at + 3..];
    }
    String::from_utf8_lossy(rest).chars().for_each(|one| push_char(out, one));
    out.push(b'"');
}

fn push_char(out: &mut Vec<u8>, one: char) {
    match one {
        '"' | '\\' => out.extend([b'\\', one as u8]),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\u{8}' => out.extend_from_slice(b"\\b"),
        '\u{c}' => out.extend_from_slice(b"\\f"),
        ' '..='~' => out.push(one as u8),
        _ => {
            let mut units = [0; 2];
            for unit in one.encode_utf16(&mut units) {
                out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
            }
        }
    }
}
