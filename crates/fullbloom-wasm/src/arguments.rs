//! [`Arguments`]: parameters of a constructor by name, as JavaScript gave them; sentences are those of Python.

use wasm_bindgen::JsValue;

use crate::core::KeyHasher;
use crate::fault::{Fault, Result};

/// Parameters by name.
pub(crate) struct Arguments {
    names: Vec<String>,
    values: Vec<JsValue>,
}

impl Arguments {
    /// As many values as names.
    pub(crate) fn new(names: Vec<String>, values: Vec<JsValue>) -> Self {
        Arguments { names, values }
    }

    /// The value of `name`; `undefined` is not there.
    fn get(&self, name: &str) -> Option<&JsValue> {
        let found = self.names.iter().zip(&self.values).find(|(known, _)| *known == name);
        found.map(|(_, value)| value).filter(|value| !value.is_undefined())
    }

    /// Refuses a name that is not `known`.
    pub(crate) fn check(&self, class: &str, known: &[&str]) -> Result<()> {
        match self.names.iter().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(Fault::parameter_type(format!(
                "{class}() got an unexpected keyword argument '{name}'; it takes {}, seed, secret",
                known.join(", ")
            ))),
        }
    }

    /// The value of `name`, if it was given.
    pub(crate) fn read<'a, T: Argument<'a>>(&'a self, name: &str) -> Result<Option<T>> {
        self.get(name).map(|value| T::read(name, value)).transpose()
    }

    /// The value of `name`, which must be there.
    pub(crate) fn get_required<'a, T: Argument<'a>>(&'a self, class: &str, name: &str) -> Result<T> {
        let missing = || Fault::parameter_type(format!("{class}() missing 1 required argument: '{name}'"));
        self.read(name)?.ok_or_else(missing)
    }
}

/// A parameter of a type that a declaration may name.
pub(crate) trait Argument<'a>: Sized {
    /// Reads the value of `name`.
    fn read(name: &str, value: &'a JsValue) -> Result<Self>;
}

/// `value` for an error.
fn describe(value: &JsValue) -> String {
    if let Some(number) = value.as_f64() {
        return format!("{number}");
    }
    if let Some(text) = value.as_string() {
        return format!("{text:?}");
    }
    match value.as_bool() {
        Some(flag) => format!("{flag}"),
        None if value.is_null() => "null".into(),
        None => value.js_typeof().as_string().map_or_else(|| "a value".into(), |class| format!("a {class}")),
    }
}

/// A whole number of at least `least`.
pub(crate) fn parse_whole(name: &str, value: &JsValue, least: u64) -> Result<u64> {
    let beyond = |shown: String| Fault::parameter(format!("{name} must be between {least} and 2**64 - 1, got {shown}"));
    if value.is_bigint() {
        let number = u64::try_from(value.clone()).ok().filter(|&number| number >= least);
        return number.ok_or_else(|| beyond("another bigint".into()));
    }
    match value.as_f64() {
        // A number beyond 2^53 is not the one that was written down, unless that was a power of 2 or the like.
        Some(number) if number.trunc() == number => {
            let fits = number >= least as f64 && number < 18_446_744_073_709_551_616.0;
            if fits { Ok(number as u64) } else { Err(beyond(describe(value))) }
        }
        _ => Err(Fault::parameter_type(format!("{name} must be a whole number, got {}", describe(value)))),
    }
}

impl<'a> Argument<'a> for u64 {
    fn read(name: &str, value: &'a JsValue) -> Result<Self> {
        parse_whole(name, value, 1)
    }
}

impl<'a> Argument<'a> for f64 {
    fn read(name: &str, value: &'a JsValue) -> Result<Self> {
        let wrong = || Fault::parameter_type(format!("{name} must be a number, got {}", describe(value)));
        value.as_f64().ok_or_else(wrong)
    }
}

impl<'a> Argument<'a> for bool {
    fn read(name: &str, value: &'a JsValue) -> Result<Self> {
        let wrong = || Fault::parameter_type(format!("{name} must be true or false, got {}", describe(value)));
        value.as_bool().ok_or_else(wrong)
    }
}

impl<'a> Argument<'a> for String {
    fn read(name: &str, value: &'a JsValue) -> Result<Self> {
        let wrong = || Fault::parameter_type(format!("{name} must be a string, got {}", describe(value)));
        value.as_string().ok_or_else(wrong)
    }
}

impl<'a, T: Argument<'a>> Argument<'a> for Option<T> {
    fn read(name: &str, value: &'a JsValue) -> Result<Self> {
        if value.is_null() { Ok(None) } else { T::read(name, value).map(Some) }
    }
}

/// The hasher of a seed and a secret, which has 16 bytes or none.
pub(crate) fn hasher(seed: &JsValue, secret: &[u8]) -> Result<KeyHasher> {
    let seed = if seed.is_undefined() { 0 } else { parse_whole("seed", seed, 0)? };
    Ok(secret_of(secret)?.map_or_else(|| KeyHasher::seeded(seed), |secret| KeyHasher::keyed(seed, &secret)))
}

/// The 16 bytes of a secret; none for no bytes.
pub(crate) fn secret_of(secret: &[u8]) -> Result<Option<[u8; 16]>> {
    if secret.is_empty() {
        return Ok(None);
    }
    let wrong = |_| Fault::parameter(format!("secret must be 16 bytes long, got {} bytes", secret.len()));
    secret.try_into().map(Some).map_err(wrong)
}
