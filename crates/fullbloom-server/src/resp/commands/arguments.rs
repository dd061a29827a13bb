//! Arguments as numbers and texts.

use crate::resp::error::{CommandError, CommandResult};

/// An integer as Redis accepts it: without a plus sign and without leading zeros.
pub(super) fn integer(word: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(word).ok()?;
    let number = text.parse::<i64>().ok()?;
    let plain = word.first() != Some(&b'+') && (text == "0" || !text.trim_start_matches('-').starts_with('0'));
    plain.then_some(number)
}

/// A real number. Rejects NaN, and numbers so small that they would become zero.
pub(super) fn real(word: &[u8]) -> Option<f64> {
    let number = std::str::from_utf8(word).ok()?.parse::<f64>().ok()?;
    let digits = word.split(|byte| matches!(byte, b'e' | b'E')).next().unwrap_or_default();
    let vanished = number == 0.0 && digits.iter().any(|digit| matches!(digit, b'1'..=b'9'));
    (!number.is_nan() && !vanished).then_some(number)
}

/// [`integer`], or the error that Redis returns.
pub(super) fn parse_integer(word: &[u8]) -> CommandResult<i64> {
    integer(word).ok_or_else(|| CommandError::new("ERR value is not an integer or out of range"))
}

/// Compares a word with a keyword, case-insensitive.
pub(super) fn is(word: &[u8], known: &str) -> bool {
    word.eq_ignore_ascii_case(known.as_bytes())
}

/// A word that must be UTF-8.
pub(super) fn text(word: &[u8]) -> CommandResult<&str> {
    std::str::from_utf8(word).map_err(|_| CommandError::new("ERR a word is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_one_form() {
        for (word, number) in [("0", 0), ("-1", -1), ("9223372036854775807", i64::MAX)] {
            assert_eq!(integer(word.as_bytes()), Some(number));
        }
        for word in ["", "+1", "01", "-01", "1.0", "x", "9223372036854775808", " 1"] {
            assert_eq!(integer(word.as_bytes()), None, "{word}");
        }
        assert_eq!((real(b"0.5"), real(b"1e-3"), real(b"nan"), real(b"x")), (Some(0.5), Some(0.001), None, None));
    }
}
