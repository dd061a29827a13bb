//! Commands as bytes: arrays of texts.

/// Appends `number` in digits.
fn digits(out: &mut Vec<u8>, number: u64) {
    let (mut text, mut at, mut rest) = ([0u8; 20], 20, number);
    loop {
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[at..]);
}

/// Digits of a number.
fn length(number: u64) -> u64 {
    number.checked_ilog10().map_or(1, |tens| u64::from(tens) + 1)
}

/// Begins a command of `words`, its own name among them.
pub fn begin(out: &mut Vec<u8>, words: u64) {
    out.push(b'*');
    digits(out, words);
    out.extend_from_slice(b"\r\n");
}

/// Appends a word.
pub fn word(out: &mut Vec<u8>, word: &[u8]) {
    out.push(b'$');
    digits(out, word.len() as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

/// Appends a word of `len` bytes, 0 until `fill` writes them.
pub fn room(out: &mut Vec<u8>, len: usize, fill: impl FnOnce(&mut [u8])) {
    out.push(b'$');
    digits(out, len as u64);
    out.extend_from_slice(b"\r\n");
    let first = out.len();
    out.resize(first + len, 0);
    fill(&mut out[first..]);
    out.extend_from_slice(b"\r\n");
}

/// Appends a number.
pub fn number(out: &mut Vec<u8>, number: u64) {
    out.push(b'$');
    digits(out, length(number));
    out.extend_from_slice(b"\r\n");
    digits(out, number);
    out.extend_from_slice(b"\r\n");
}

/// A whole command.
pub fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    begin(out, words.len() as u64);
    words.iter().for_each(|text| word(out, text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_are_as_the_protocol_has_them() {
        let mut out = Vec::new();
        command(&mut out, &[b"GET", b"a\r\nb", b""]);
        assert_eq!(out, b"*3\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n$0\r\n\r\n");
        for value in [0, 9, 10, 99, 100, 4_294_967_295, u64::MAX] {
            let mut out = Vec::new();
            number(&mut out, value);
            assert_eq!(out, format!("${}\r\n{value}\r\n", value.to_string().len()).as_bytes());
        }
    }
}
