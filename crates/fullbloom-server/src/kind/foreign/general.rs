//! `%g`: a real number in six digits, as C prints it.

/// See the head of this file.
pub(super) fn general(number: f64) -> String {
    let scientific = format!("{number:.5e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let short = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if (-4..6).contains(&exponent) {
        return short(&format!("{number:.*}", (5 - exponent).max(0) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", short(digits), exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn numbers_look_as_c_prints_them() {
        let rows = [(0.005, "0.005"), (0.0025, "0.0025"), (7.8125e-5, "7.8125e-05"), (1e-10, "1e-10"), (0.25, "0.25")];
        for (number, text) in rows.into_iter().chain([(123_456.7, "123457"), (1e6, "1e+06"), (0.0, "0")]) {
            assert_eq!(general(number), text);
        }
        assert_eq!(general(0.000_123_456_78), "0.000123457");
    }
}
