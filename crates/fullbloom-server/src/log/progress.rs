//! [`Progress`]: how far the disk has come.

use crate::fault::{Code, Fault, Result};

/// See the head of this file.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Records up to this number are as safe as the mode promises.
    pub(super) durable: u64,
    /// Why nothing is taken at present.
    pub(super) trouble: Option<String>,
}

impl Progress {
    /// Refuses a record that is not as safe as the mode promises, and says why it will not be.
    pub(super) fn confirm(&self, number: u64) -> Result<()> {
        match &self.trouble {
            _ if self.durable >= number => Ok(()),
            Some(why) => Err(Fault::new(Code::ReadOnly, format!("not acknowledged: {why}"))),
            None => Err(stopped()),
        }
    }
}

/// The refusal of a service that ends.
pub(super) fn stopped() -> Fault {
    Fault::new(Code::ReadOnly, "not acknowledged: the service stops")
}
