//! [`Pattern`]: patterns of filter names.

/// The longest pattern that a client may send, in bytes; names have 128.
pub const PATTERN: usize = 1024;

/// A compiled pattern: `*` matches any text, `?` any byte, `[a-c]` or `[^a]` one of a set, `\` escapes the next byte.
#[derive(Clone, Debug)]
pub struct Pattern(Vec<Part>);

#[derive(Clone, Debug)]
enum Part {
    /// Any text.
    Text,
    /// One of these bytes.
    OneOf(Box<[bool; 256]>),
    /// This byte.
    Byte(u8),
}

impl Pattern {
    /// Compiles a pattern; `None` if it has too many bytes.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > PATTERN {
            return None;
        }
        let (mut parts, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            if bytes[at] == b'*' {
                if !matches!(parts.last(), Some(Part::Text)) {
                    parts.push(Part::Text);
                }
                at += 1;
            } else if matches!(bytes[at], b'?' | b'[') {
                let mut set = Box::new([false; 256]);
                let mut next = at + 1;
                for byte in 0..=255u8 {
                    if let Some(after) = match_one(bytes, at, byte) {
                        set[usize::from(byte)] = true;
                        next = after;
                    }
                }
                if bytes[at] == b'[' {
                    next = end_of_set(bytes, at);
                }
                parts.push(Part::OneOf(set));
                at = next;
            } else {
                at += usize::from(bytes[at] == b'\\' && at + 1 < bytes.len());
                parts.push(Part::Byte(bytes[at]));
                at += 1;
            }
        }
        Some(Pattern(parts))
    }

    /// True if `text` matches. Takes at most as many steps as the square of the length of `text`.
    pub fn matches(&self, text: &[u8]) -> bool {
        let (parts, mut p, mut t, mut star) = (&self.0, 0, 0, None);
        while t < text.len() {
            let fits = match parts.get(p) {
                Some(Part::Text) => {
                    p += 1;
                    star = Some((p, t));
                    continue;
                }
                Some(Part::OneOf(set)) => set[usize::from(text[t])],
                Some(Part::Byte(byte)) => *byte == text[t],
                None => false,
            };
            if fits {
                (p, t) = (p + 1, t + 1);
            } else {
                let Some((after, from)) = star else { return false };
                (p, t) = (after, from + 1);
                star = Some((after, t));
            }
        }
        parts[p..].iter().all(|part| matches!(part, Part::Text))
    }
}

/// The position after the set that begins at `p`.
fn end_of_set(pattern: &[u8], p: usize) -> usize {
    let mut at = p + 1 + usize::from(pattern.get(p + 1) == Some(&b'^'));
    while at < pattern.len() && pattern[at] != b']' {
        at += usize::from(pattern[at] == b'\\' && at + 1 < pattern.len());
        let ranged = pattern.get(at + 1) == Some(&b'-') && pattern.get(at + 2).is_some_and(|&b| b != b']');
        at += if ranged { 3 } else { 1 };
    }
    (at + 1).min(pattern.len())
}

/// True if `text` matches `pattern`, in the syntax of [`Pattern`]. Takes at most `pattern * text` steps.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        match match_one(pattern, p, text[t]) {
            _ if pattern.get(p) == Some(&b'*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(next) => {
                p = next;
                t += 1;
            }
            None => match star {
                None => return false,
                Some((after, at)) => {
                    p = after;
                    t = at + 1;
                    star = Some((after, t));
                }
            },
        }
    }
    pattern[p.min(pattern.len())..].iter().all(|&byte| byte == b'*')
}

/// The position in the pattern after it matched one byte; `None` if it does not match.
fn match_one(pattern: &[u8], p: usize, byte: u8) -> Option<usize> {
    match *pattern.get(p)? {
        b'?' => Some(p + 1),
        b'\\' if p + 1 < pattern.len() => (pattern[p + 1] == byte).then_some(p + 2),
        b'[' => {
            let not = pattern.get(p + 1) == Some(&b'^');
            let (mut at, mut found) = (p + 1 + usize::from(not), false);
            while at < pattern.len() && pattern[at] != b']' {
                at += usize::from(pattern[at] == b'\\' && at + 1 < pattern.len());
                let low = pattern[at];
                let ranged = pattern.get(at + 1) == Some(&b'-') && pattern.get(at + 2).is_some_and(|&b| b != b']');
                let high = if ranged { pattern[at + 2] } else { low };
                found |= (low.min(high)..=low.max(high)).contains(&byte);
                at += if ranged { 3 } else { 1 };
            }
            (found != not).then_some((at + 1).min(pattern.len()))
        }
        known => (known == byte).then_some(p + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_what_they_describe() {
        let cases = [
            ("*", "", true),
            ("a*", "abc", true),
            ("a*c", "abbc", true),
            ("a*d", "abbc", false),
            ("*a*b*", "xaxbx", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[abc", "b", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("", "", true),
            ("", "a", false),
            ("ab", "a", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
            let read = Pattern::new(pattern.as_bytes());
            assert!(read.is_some_and(|read| read.matches(text.as_bytes()) == expected), "{pattern} {text}");
        }
        assert!(Pattern::new(&[b'*'; PATTERN + 1]).is_none());
        let hard = ("a*".repeat(30) + "b", "a".repeat(2000));
        assert!(!matches(hard.0.as_bytes(), hard.1.as_bytes()));
    }
}
