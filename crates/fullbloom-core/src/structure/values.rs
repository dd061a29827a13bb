//! [`Value`]: what `info()` shows; [`FieldValue`]: types of declared fields; `names!`: choices by name.

use crate::error::{Error, Result};

/// A value shown by `info()`.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Number(u64),
    /// A real number.
    Real(f64),
    /// Text.
    Text(String),
    /// Yes or no.
    Flag(bool),
    /// Not there.
    Nothing,
}

impl Value {
    /// The whole number, if it is one.
    pub fn as_number(&self) -> Option<u64> {
        if let Value::Number(number) = self { Some(*number) } else { None }
    }
}

/// A value of a field, in files and for people.
pub trait FieldValue: Copy {
    /// As Python sees it.
    type Shown;
    /// The 64 bits of a file.
    fn to_file(self) -> u64;
    /// Reads the value that [`FieldValue::to_file`] wrote.
    fn from_file(bits: u64) -> Result<Self>;
    /// As Python sees it.
    fn to_shown(self) -> Self::Shown;
    /// As `info()` shows it.
    fn value(self) -> Value;
}

/// The types of fields that Python shows unchanged.
macro_rules! plain_values {
    ($($T:ty: $to:expr, $from:expr, $value:expr;)*) => {
        $(impl FieldValue for $T {
            type Shown = $T;
            fn to_file(self) -> u64 {
                let to: fn($T) -> u64 = $to;
                to(self)
            }
            fn from_file(bits: u64) -> Result<Self> {
                let from: fn(u64) -> Result<$T> = $from;
                from(bits)
            }
            fn to_shown(self) -> $T {
                self
            }
            fn value(self) -> Value {
                let value: fn($T) -> Value = $value;
                value(self)
            }
        })*
    };
}

// A number beyond 32 bits is the largest of these, which the structure's own check then refuses.
plain_values! {
    u64: |n| n, Ok, Value::Number;
    u32: u64::from, |n| Ok(u32::try_from(n).unwrap_or(u32::MAX)), |n| Value::Number(n.into());
    usize: |n| n as u64, |n| Ok(usize::try_from(n).unwrap_or(usize::MAX)), |n| Value::Number(n as u64);
    f64: f64::to_bits, |bits| Ok(f64::from_bits(bits)), Value::Real;
    bool: u64::from, flag, Value::Flag;
    &'static str: |_| 0, |_| Err(Error::format("the file has a name in a field of numbers")), |s| Value::Text(s.into());
    Option<f64>: |x| x.unwrap_or(0.0).to_bits(), |bits| Ok(Some(f64::from_bits(bits)).filter(|x| *x != 0.0)),
        |x| x.map_or(Value::Nothing, Value::Real);
}

/// The name of a choice; "auto" for `None`, which `info()` leaves out.
impl FieldValue for Option<&'static str> {
    type Shown = &'static str;

    fn to_file(self) -> u64 {
        0
    }

    fn from_file(bits: u64) -> Result<Self> {
        <&str>::from_file(bits).map(Some)
    }

    fn to_shown(self) -> &'static str {
        self.unwrap_or("auto")
    }

    fn value(self) -> Value {
        self.map_or(Value::Nothing, |name| Value::Text(name.into()))
    }
}

fn flag(bits: u64) -> Result<bool> {
    match bits {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Error::Format(format!("the file has {other} in a field that must be 0 or 1; it is damaged"))),
    }
}

/// A choice among names, each with its number in files: `from_name`, `name`, and [`FieldValue`].
macro_rules! names {
    ($T:ident, $what:literal: $($Choice:ident $name:literal,)+) => {
        impl $T {
            /// Every choice with its name, in order of number.
            pub const NAMES: &'static [($T, &'static str)] = &[$(($T::$Choice, $name),)+];

            /// The public name.
            pub fn name(self) -> &'static str {
                match self { $($T::$Choice => $name,)+ }
            }

            /// Finds a choice by name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some($T::$Choice),)+ _ => None }
            }

            /// Finds a choice by its number in files.
            pub fn from_id(id: u64) -> Option<Self> {
                Self::NAMES.iter().map(|(choice, _)| *choice).find(|choice| *choice as u64 == id)
            }
        }

        impl $crate::structure::declaration::FieldValue for $T {
            type Shown = &'static str;
            fn to_file(self) -> u64 {
                self as u64
            }
            fn from_file(bits: u64) -> $crate::Result<Self> {
                let unknown = || $crate::Error::format(concat!("the file names an unknown ", $what, "; use a newer release"));
                Self::from_id(bits).ok_or_else(unknown)
            }
            fn to_shown(self) -> &'static str {
                self.name()
            }
            fn value(self) -> $crate::structure::Value {
                $crate::structure::Value::Text(self.name().into())
            }
        }
    };
}

pub(crate) use names;
