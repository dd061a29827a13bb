//! Making a filter, and numbers that it shows.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use fullbloom_core::structure::Value;

use super::super::halt::{Done, Halt};
use super::super::session::Session;
use crate::fault::Code;
use crate::kind::{Kind, Spec};
use crate::store::{Entry, Settings};

/// A whole number that a filter shows, by its name.
pub(super) fn number_of(filter: &dyn Kind, name: &str) -> Option<u64> {
    filter.info().into_iter().find_map(|(known, value)| match value {
        Value::Number(number) if known == name => Some(number),
        _ => None,
    })
}

impl Session {
    /// A structure of a kind, keyed where it can be unless the service was told not to, with a seed of its own.
    pub(super) fn spec(&self, kind: &str) -> Done<Spec> {
        let keyed = self.server.store.is_keyed_unasked(kind);
        Ok(Spec { kind: kind.to_string().into(), seed: drawn()?, keyed, ..Spec::default() })
    }

    /// Makes a filter, which is dropped at a time in milliseconds since 1970, if any is given.
    pub(super) fn create(&mut self, name: &[u8], settings: Settings, expires: Option<u64>) -> Done<Arc<Entry>> {
        match self.server.store.create_until(name, settings, expires) {
            Ok((entry, lsn)) => {
                self.note(lsn);
                Ok(entry)
            }
            Err(fault) if fault.code == Code::Limit => {
                Err(Halt::text(format!("ERR Insufficient memory to create filter: {}", fault.text)))
            }
            Err(fault) => Err(fault.into()),
        }
    }
}

/// A random number from the system.
fn drawn() -> Done<u64> {
    let mut bytes = [0; 8];
    let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    read.map_err(|error| Halt::text(format!("ERR /dev/urandom: {error}")))?;
    Ok(u64::from_le_bytes(bytes))
}
