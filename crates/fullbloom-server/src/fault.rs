//! [`Fault`]: why the service refuses, with the code that RESP and HTTP clients see.

use std::fmt;
use std::path::Path;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Fault>;

/// What went wrong, by what the client can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A word of the request is wrong.
    Invalid,
    /// No filter has the name.
    Missing,
    /// The name is taken.
    Exists,
    /// The filter's kind does not do that.
    Unsupported,
    /// The filter, or the service, has no room.
    Full,
    /// A cap of the service stands in the way.
    Limit,
    /// Too much is under way; later it may fit.
    Overloaded,
    /// The two filters cannot be combined.
    Incompatible,
    /// Nothing is taken at present: the disk is full, or failed.
    ReadOnly,
    /// The client may not.
    Denied,
    /// The filter has another version than the change is meant for.
    Changed,
    /// The filter lives on another node.
    Elsewhere,
    /// Bytes are not a filter, or are damaged.
    Format,
    /// A file cannot be read or written.
    Io,
}

impl Code {
    /// As the control plane names it.
    pub fn name(self) -> &'static str {
        match self {
            Code::Invalid => "invalid",
            Code::Missing => "missing",
            Code::Exists => "exists",
            Code::Unsupported => "unsupported",
            Code::Full => "full",
            Code::Limit => "limit",
            Code::Overloaded => "overloaded",
            Code::Incompatible => "incompatible",
            Code::ReadOnly => "read-only",
            Code::Denied => "denied",
            Code::Changed => "changed",
            Code::Elsewhere => "elsewhere",
            Code::Format => "format",
            Code::Io => "io",
        }
    }
}

/// A refusal. Its text never holds a key.
#[derive(Clone, Debug)]
pub struct Fault {
    /// What it is.
    pub code: Code,
    /// What to tell people: the value at fault and the remedy.
    pub text: String,
}

impl Fault {
    /// A refusal with its text.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Fault { code, text: text.into() }
    }

    /// A word of the request is wrong.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::new(Code::Invalid, text)
    }

    /// No filter has the name.
    pub fn missing() -> Self {
        Self::new(Code::Missing, "not found")
    }

    /// What the system refused, with the path.
    pub fn io(path: &Path) -> impl Fn(std::io::Error) -> Fault {
        move |error| Fault::new(Code::Io, format!("{}: {error}", path.display()))
    }

    /// What the kind of a filter cannot do.
    pub fn unsupported(class: &str, operation: &str) -> Self {
        Self::new(Code::Unsupported, format!("a {class} cannot {operation}"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Fault {}

impl From<fullbloom_core::Error> for Fault {
    fn from(error: fullbloom_core::Error) -> Self {
        use fullbloom_core::Error;
        let code = match &error {
            Error::Parameter(_) => Code::Invalid,
            Error::Memory(_) => Code::Limit,
            Error::Incompatible(_) => Code::Incompatible,
            Error::Format(_) => Code::Format,
            Error::ReadOnly(_) => Code::ReadOnly,
            Error::Capacity(_) => Code::Full,
            Error::Io(..) => Code::Io,
        };
        Fault::new(code, error.to_string())
    }
}
