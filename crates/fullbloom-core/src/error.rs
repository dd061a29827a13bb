//! The one error type. Each message names the value at fault and the remedy.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Errors, by what the caller can do about them.
#[derive(Debug)]
pub enum Error {
    /// A parameter is out of its range.
    Parameter(String),
    /// The structure would need more memory than can be had.
    Memory(String),
    /// Two filters cannot be combined; the fields that differ are named.
    Incompatible(String),
    /// Bytes are not a filter, are damaged, or come from another version.
    Format(String),
    /// The filter is mapped read-only.
    ReadOnly(String),
    /// A strict filter exceeds its capacity, or a filter cannot grow further.
    Capacity(String),
    /// The operating system refused; the path is part of the message.
    Io(std::io::Error, OsString),
}

impl Error {
    /// Builds a [`Error::Format`] from anything printable.
    pub fn format(message: impl Into<String>) -> Self {
        Error::Format(message.into())
    }

    /// Builds a [`Error::Parameter`] from anything printable.
    pub fn parameter(message: impl Into<String>) -> Self {
        Error::Parameter(message.into())
    }

    /// Why a structure over a read-only mapping cannot change.
    #[cold]
    pub fn read_only() -> Self {
        Error::ReadOnly("the filter is mapped read-only; take a copy() and change that".into())
    }

    /// A parameter that no constructor accepts is, in a file, damage.
    pub fn as_format(self) -> Self {
        match self {
            Error::Parameter(message) | Error::Memory(message) => {
                Error::Format(format!("the file holds an impossible parameter: {message}"))
            }
            other => other,
        }
    }

    /// Attaches the path to an operating-system error.
    pub fn io(error: std::io::Error, path: &Path) -> Self {
        Error::Io(error, path.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Parameter(m)
            | Error::Memory(m)
            | Error::Incompatible(m)
            | Error::Format(m)
            | Error::ReadOnly(m)
            | Error::Capacity(m) => f.write_str(m),
            Error::Io(e, path) => write!(f, "{}: {e}", display_name(path)),
        }
    }
}

impl std::error::Error for Error {}

/// A name for messages: invalid UTF-8 is escaped as `\xff`, so that two names never look alike.
pub fn display_name(name: impl AsRef<OsStr>) -> String {
    let mut text = String::new();
    for chunk in name.as_ref().as_encoded_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}
