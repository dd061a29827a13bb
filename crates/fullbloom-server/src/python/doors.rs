//! [`Doors`]: the tokens that there are.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::resp::{Gate, Grant, Tokens};

/// A token's number, with digest and grant.
pub(super) type Known = (u64, [u8; 32], Grant);

/// The tokens that there are, which may change while clients are connected.
#[derive(Default)]
pub(crate) struct Doors {
    pub(super) known: RwLock<Vec<Known>>,
    pub(super) epoch: AtomicU64,
    /// True once a port is reached from other machines, or there was a token.
    guarded: AtomicBool,
}

impl Doors {
    /// True where everybody needs a token, also while there is none.
    pub(super) fn is_guarded(&self) -> bool {
        self.guarded.load(Ordering::Acquire)
    }

    /// True where everybody needs a token: there are or were some, or other machines reach a port.
    pub(super) fn needs_token(&self) -> bool {
        self.guarded.load(Ordering::Acquire) || !self.known.read().is_empty()
    }

    /// Number and grant of a token. Digests are compared whole, all of them, so the time tells nothing.
    pub(super) fn find(&self, token: &[u8]) -> Option<(u64, Grant)> {
        let digest = Tokens::digest(token);
        let alike = |known: &[u8; 32]| known.iter().zip(digest).fold(0, |apart, (a, b)| apart | (a ^ b)) == 0;
        let known = self.known.read();
        known
            .iter()
            .fold(None, |found, (id, known, grant)| if alike(known) { Some((*id, grant.clone())) } else { found })
    }
}

impl Gate for Doors {
    /// Nobody's token, which is empty, opens everything as long as there is no other and only this machine asks.
    fn open(&self, token: &[u8]) -> Option<Grant> {
        if token.is_empty() {
            return (!self.needs_token()).then(Grant::all);
        }
        self.find(token).map(|(_, grant)| grant)
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    fn guard(&self) {
        // The epoch comes second: who sees its new number is refused.
        self.guarded.store(true, Ordering::Release);
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }
}
