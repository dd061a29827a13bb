//! Why a record cannot be read, in words for the owner of the file.

use std::fmt;

/// Nesting depth of JSON brackets.
pub const MOST_DEPTH: usize = 500;

/// The error of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A row ends before a selected column; both counted from 1.
    ShortRow {
        /// Cells of the row.
        cells: usize,
        /// The column.
        wanted: usize,
    },
    /// A carriage return that ends no line, in a field without quotes.
    CarriageReturn,
    /// A quote that opens a field and is not closed.
    OpenQuote,
    /// A line is not valid JSON: what was expected, at which byte of the line from 1.
    NotJson(&'static str, usize),
    /// A line of JSON is not an object: its type.
    NotAnObject(&'static str),
    /// More nested brackets than [`MOST_DEPTH`].
    TooDeep,
    /// Half of a surrogate pair in a key.
    HalfPair(u16),
    /// A whole number of more than [`super::number::MOST_DIGITS`] digits.
    LongNumber,
    /// A key does not have the requested type: the type, the beginning of the key.
    NotOfType(&'static str, String),
    /// A tuple of more than 16 MiB.
    LongTuple,
    /// A key of a type that the filter of another program does not have: what it takes.
    NotAccepted(&'static str),
}

impl Reason {
    /// The message, after the number of the line.
    pub fn at(&self, line: u64) -> String {
        format!("line {line}{self}")
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::ShortRow { cells, wanted } => {
                let s = if *cells == 1 { "" } else { "s" };
                write!(f, ": the row has {cells} cell{s}, and the key is in column {wanted}")
            }
            Reason::CarriageReturn => {
                f.write_str(": a carriage return within a field that is not quoted; quote the field, or remove it")
            }
            Reason::OpenQuote => f.write_str(
                ": a quoted field is not closed within 1 MiB of further lines or before the end; \
                 close it, or double a quote that is text",
            ),
            Reason::NotJson(what, byte) => write!(f, " is not JSON: {what} at byte {byte}"),
            Reason::NotAnObject(what) => write!(f, " is {what}, not an object of JSON; give one object per line"),
            Reason::TooDeep => write!(f, " is nested too deeply: more than {} brackets", MOST_DEPTH),
            Reason::HalfPair(half) => write!(
                f,
                ": the key has half of a surrogate pair, \\u{half:x}, which is not text; write the whole character"
            ),
            Reason::LongNumber => {
                write!(f, " has a whole number of more than 4,300 digits")
            }
            Reason::NotOfType(kind, shown) => {
                write!(f, ": the key {shown} is not a valid {kind}; give another --key-type, or mend the record")
            }
            Reason::NotAccepted(accepted) => {
                write!(f, ": keys of this filter must be {accepted}; give another --key-type, or mend the record")
            }
            Reason::LongTuple => f.write_str(": the columns of the key have more than 16 MiB"),
        }
    }
}
