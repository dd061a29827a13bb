//! [`Fault`]: why the service refuses a request, with the code that RESP and HTTP clients see.

use std::fmt;
use std::path::Path;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Fault>;

/// The reason, from the client's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A part of the request is invalid.
    Invalid,
    /// No filter has this name.
    Missing,
    /// The name is taken.
    Exists,
    /// The kind of filter does not support the operation.
    Unsupported,
    /// The filter, or the service, is full.
    Full,
    /// A limit of the service is exceeded.
    Limit,
    /// The service is overloaded; the request may succeed later.
    Overloaded,
    /// The two filters cannot be combined.
    Incompatible,
    /// Changes are refused at present: the disk is full, or failed.
    ReadOnly,
    /// The client lacks the permission.
    Denied,
    /// The filter has another version than the change requires.
    Changed,
    /// The name belongs to another node.
    Elsewhere,
    /// The bytes are not a filter, or are damaged.
    Format,
    /// A file cannot be read or written.
    Io,
}

impl Code {
    /// The name of the code in the control plane.
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

/// A refusal. Its text never contains a key.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The reason.
    pub code: Code,
    /// The message for people: the value at fault and the remedy.
    pub text: String,
}

impl Fault {
    /// A refusal with its text.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Fault { code, text: text.into() }
    }

    /// A part of the request is invalid.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::new(Code::Invalid, text)
    }

    /// No filter has this name.
    pub fn missing() -> Self {
        Self::new(Code::Missing, "not found")
    }

    /// An I/O error, with the path.
    pub fn io(path: &Path) -> impl Fn(std::io::Error) -> Fault {
        move |error| Fault::new(Code::Io, format!("{}: {error}", path.display()))
    }

    /// An operation that a kind of filter does not support.
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
