//! [`Fault`]: an error on its way to JavaScript: the name of its class and a sentence.

use wasm_bindgen::JsValue;

use crate::core::Error;

/// A result of this crate.
pub(crate) type Result<T> = std::result::Result<T, Fault>;

/// The class of an error, by the name that it has in Python and in the package, and its message.
#[derive(Debug)]
pub(crate) struct Fault {
    class: &'static str,
    message: String,
}

impl Fault {
    /// An error of this class.
    pub(crate) fn new(class: &'static str, message: impl Into<String>) -> Self {
        Fault { class, message: message.into() }
    }

    /// A parameter out of its range.
    pub(crate) fn parameter(message: impl Into<String>) -> Self {
        Fault::new("ParameterError", message)
    }

    /// A parameter of the wrong type.
    pub(crate) fn parameter_type(message: impl Into<String>) -> Self {
        Fault::new("ParameterTypeError", message)
    }

    /// A key that has no canonical bytes.
    pub(crate) fn key_type(message: impl Into<String>) -> Self {
        Fault::new("KeyTypeError", message)
    }

    /// More memory than there is.
    pub(crate) fn memory(bytes: usize) -> Self {
        Fault::new("FilterMemoryError", format!("{bytes} bytes of memory cannot be had; give keys in smaller parts"))
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::Parameter(message) => Fault::new("ParameterError", message),
            Error::Memory(message) => Fault::new("FilterMemoryError", message),
            Error::Incompatible(message) => Fault::new("IncompatibleFilters", message),
            Error::Format(message) => Fault::new("FormatError", message),
            Error::ReadOnly(message) => Fault::new("ReadOnlyFilter", message),
            Error::Capacity(message) => Fault::new("FilterFull", message),
            error @ Error::Io(..) => Fault::new("FullbloomError", error.to_string()),
        }
    }
}

impl From<Fault> for JsValue {
    /// The class, a colon, the message: `errors.ts` makes an object of it, so that this crate imports nothing for it.
    fn from(fault: Fault) -> Self {
        JsValue::from_str(&format!("{}:{}", fault.class, fault.message))
    }
}
