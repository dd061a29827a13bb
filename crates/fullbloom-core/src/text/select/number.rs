//! Numbers as text: whole ones of any length to canonical bytes, floats as Python shows them.

use std::fmt::Write;

/// Digits of the longest whole number: Python refuses longer ones, which cost the square of their length.
pub(super) const MOST_DIGITS: usize = 4300;

/// A whole number: in the signed 64-bit range, or the canonical bytes of a longer one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Whole {
    Word(i64),
    Long(Vec<u8>),
}

/// Reads `-?[0-9]+` (also with `+`); `None` for other text, and for more digits than [`MOST_DIGITS`].
pub(super) fn parse_whole(text: &[u8]) -> Option<Whole> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > MOST_DIGITS || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if digits.len() <= 18 {
        let value = digits.iter().fold(0i64, |value, digit| 10 * value + i64::from(digit - b'0'));
        return Some(Whole::Word(if negative { -value } else { value }));
    }
    let bytes = twos_complement(&magnitude(digits), negative);
    Some(match <[u8; 8]>::try_from(bytes.as_slice()) {
        Ok(word) => Whole::Word(i64::from_le_bytes(word)),
        Err(_) => Whole::Long(bytes),
    })
}

/// The bytes of a decimal number, little-endian.
fn magnitude(digits: &[u8]) -> Vec<u8> {
    let mut limbs: Vec<u32> = Vec::new();
    for part in digits.chunks(9) {
        let scale = 10u64.pow(part.len() as u32);
        let mut carry = part.iter().fold(0u64, |value, digit| 10 * value + u64::from(digit - b'0'));
        for limb in &mut limbs {
            carry += u64::from(*limb) * scale;
            *limb = carry as u32;
            carry >>= 32;
        }
        if carry != 0 {
            limbs.push(carry as u32);
        }
    }
    limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect()
}

/// The fewest bytes, 8 or more, that hold value and sign.
fn twos_complement(magnitude: &[u8], negative: bool) -> Vec<u8> {
    let mut bytes = magnitude.to_vec();
    bytes.resize(magnitude.len().max(8) + 1, 0);
    if negative {
        let mut carry = true;
        for byte in &mut bytes {
            let (sum, over) = (!*byte).overflowing_add(u8::from(carry));
            (*byte, carry) = (sum, over);
        }
    }
    let sign = if negative && bytes.iter().any(|&byte| byte != 0) { 0xff } else { 0 };
    while bytes.len() > 8 && bytes[bytes.len() - 1] == sign && (bytes[bytes.len() - 2] ^ sign) & 0x80 == 0 {
        bytes.pop();
    }
    bytes
}

/// `value` as Python's `repr` writes it: the shortest digits that read back, an exponent below 1e-4 and from 1e16 on.
pub(super) fn push_float(out: &mut Vec<u8>, value: f64) {
    let mut text = String::new();
    let exponent = if value == 0.0 { 0 } else { exponent_of(value) };
    // Writing to a String does not fail.
    let _ = match value {
        _ if value.is_nan() => write!(text, "NaN"),
        _ if value.is_infinite() => write!(text, "{}Infinity", if value < 0.0 { "-" } else { "" }),
        _ if (-4..16).contains(&exponent) => write!(text, "{value:?}"),
        _ => {
            let digits = format!("{value:e}");
            let (mantissa, _) = digits.split_once('e').unwrap_or((&digits, ""));
            write!(text, "{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
        }
    };
    out.extend_from_slice(text.as_bytes());
}

fn exponent_of(value: f64) -> i32 {
    let text = format!("{value:e}");
    text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_take_the_fewest_bytes() {
        let long = |text: &str| match parse_whole(text.as_bytes()) {
            Some(Whole::Long(bytes)) => bytes,
            other => panic!("{other:?}"),
        };
        for value in [0, -1, 1, 999_999_999_999_999_999, i64::MAX, i64::MIN, -1_000_000_000_000_000_000] {
            assert_eq!(parse_whole(value.to_string().as_bytes()), Some(Whole::Word(value)));
        }
        assert_eq!(long("9223372036854775808"), [0, 0, 0, 0, 0, 0, 0, 0x80, 0]);
        assert_eq!(long("-9223372036854775809"), [255, 255, 255, 255, 255, 255, 255, 0x7f, 255]);
        for value in [i128::MAX, i128::MIN, 1 << 64, -(1 << 71), (1 << 71) - 1, 1 << 71] {
            let bytes = long(&value.to_string());
            let whole = value.to_le_bytes();
            assert_eq!(bytes, whole[..bytes.len()]);
            let sign = if value < 0 { 0xff } else { 0 };
            assert!(whole[bytes.len()..].iter().all(|&byte| byte == sign));
            assert!(bytes.len() == 9 || value >> (8 * bytes.len() - 9) != i128::from(sign == 0) - 1, "{value}");
        }
        assert_eq!(parse_whole(b"000000000000000000000000000000000007"), Some(Whole::Word(7)));
        assert_eq!(parse_whole(b"-00000000000000000000000000000000000"), Some(Whole::Word(0)));
        for text in ["", "-", "+", "1.0", "1e3", " 1", "0x1", "--1", "\u{661}"] {
            assert_eq!(parse_whole(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_whole(&[b'9'; MOST_DIGITS + 1]), None);
    }

    #[test]
    fn floats_are_written_as_python_does() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (-2.5e-7, "-2.5e-07"),
            (0.1, "0.1"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
            (9007199254740993.0, "9007199254740992.0"),
            (5e-324, "5e-324"),
        ];
        for (value, text) in cases {
            let mut out = Vec::new();
            push_float(&mut out, value);
            assert_eq!(String::from_utf8_lossy(&out), text);
        }
    }
}
