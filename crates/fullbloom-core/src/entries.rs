//! [`Entries`]: the operations that depend on what an entry consists of, and on when a structure takes entries.
//!
//! The rows of the registry say both. Callers that handle any structure, such as the service, ask here and name neither
//! structures nor ways of adding.

use crate::error::Result;
use crate::structure::{Addable, Filter};

/// Operations on the entries of any structure; `None` if the structure does not have the operation.
pub trait Entries: Filter {
    /// Adds keys in order; sets `new` to 1 for each key that was certainly new.
    fn add_keys(&mut self, _hashes: &[u64], _new: Option<&mut [u8]>) -> Option<Result<()>> {
        None
    }
    /// Adds keys with a label or value each, or changes the values of a map; sets `new` to 1 for each key that changed
    /// something.
    fn put_values(&mut self, _hashes: &[u64], _values: &[u64], _new: Option<&mut [u8]>) -> Option<Result<()>> {
        None
    }
    /// Writes the label or value of each key, 0 for a key without one.
    fn read_values(&self, _hashes: &[u64], _values: &mut [u64]) -> Option<()> {
        None
    }
    /// True for a key that is certainly absent, in a structure whose absent keys have no value.
    fn lacks_value(&self, _hash: u64) -> bool {
        false
    }
    /// Forgets every key and the domains of keys.
    fn forget_all(&mut self) -> Option<Result<()>> {
        None
    }
    /// Advances time to `now`, in seconds, and returns how many generations expired.
    fn advance_to(&mut self, _now: f64) -> Option<Result<u64>> {
        None
    }
}

/// The entries of a row.
macro_rules! entries {
    (open [key value] $Class:ty) => {
        impl Entries for $Class {
            fn put_values(&mut self, hashes: &[u64], values: &[u64], new: Option<&mut [u8]>) -> Option<Result<()>> {
                Some(self.put_hashes(hashes, values, new))
            }
            fn read_values(&self, hashes: &[u64], values: &mut [u64]) -> Option<()> {
                self.get_hashes(hashes, values);
                Some(())
            }
            fn forget_all(&mut self) -> Option<Result<()>> {
                let done = <$Class>::clear(self);
                if done.is_ok() {
                    self.hasher_mut().domains_mut().clear();
                }
                Some(done)
            }
        }
    };
    (open $entry:tt $Class:ty) => {
        impl Entries for $Class {
            fn add_keys(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Option<Result<()>> {
                Some(self.check_writable().and_then(|()| self.add_hashes(hashes, new)))
            }
            fn forget_all(&mut self) -> Option<Result<()>> {
                Some(Addable::empty(self))
            }
            fn advance_to(&mut self, now: f64) -> Option<Result<u64>> {
                self.pass_time(now)
            }
        }
    };
    (built [key value] $Class:ty) => {
        impl Entries for $Class {
            fn put_values(&mut self, hashes: &[u64], values: &[u64], mut new: Option<&mut [u8]>) -> Option<Result<()>> {
                let mut put = || {
                    values.iter().try_for_each(|&value| self.check_settable(value))?;
                    for (i, (&hash, &value)) in hashes.iter().zip(values).enumerate() {
                        let done = self.set_hash(hash, value)?;
                        if let Some(new) = &mut new {
                            new[i] = u8::from(done);
                        }
                    }
                    Ok(())
                };
                Some(put())
            }
            fn read_values(&self, hashes: &[u64], values: &mut [u64]) -> Option<()> {
                self.get_hashes(hashes, 0, values);
                Some(())
            }
            fn lacks_value(&self, hash: u64) -> bool {
                self.get_hash(hash).is_none()
            }
        }
    };
    (built $entry:tt $Class:ty) => {
        impl Entries for $Class {}
    };
}

/// All rows.
macro_rules! rows {
    ({} $({
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        adds: $when:ident $entry:tt, $($rest:tt)*
    })*) => {
        $(entries!($when $entry crate::$family::$Class);)*
    };
}
crate::variants!(rows! {});
