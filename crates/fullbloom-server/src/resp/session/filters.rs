//! The filters that a client's commands use, and the hashes of their keys.

use std::sync::Arc;

use super::super::parser::Args;
use super::{CachedEntry, Session};
use crate::fault::{Code, Fault};
use crate::kind::{Flavour, Spec};
use crate::resp::error::{CommandError, CommandResult, WRONG_TYPE, too_long};
use crate::store::{self, Entry, Lsn, Settings};

impl Session {
    /// The filter or note of this name, if it exists.
    #[inline]
    pub(in crate::resp) fn find(&mut self, name: &[u8]) -> CommandResult<Option<Arc<Entry>>> {
        let epoch = self.server.store.epoch();
        let is_current = |known: &&CachedEntry| known.epoch == epoch && known.name == name;
        if let Some(known) = self.cached.as_ref().filter(is_current)
            && known.entry.expires().is_none_or(|at| at > store::now())
        {
            return Ok(Some(known.entry.clone()));
        }
        match self.server.store.get(name) {
            Ok(entry) => {
                self.cached = Some(CachedEntry { epoch, name: name.to_vec(), entry: entry.clone() });
                Ok(Some(entry))
            }
            Err(fault) if fault.code == Code::Missing => Ok(None),
            Err(fault) => Err(fault.into()),
        }
    }

    /// The filter of this name, if it exists. Refuses a filter of the other family.
    #[inline]
    pub(in crate::resp) fn find_as(&mut self, name: &[u8], flavour: Flavour) -> CommandResult<Option<Arc<Entry>>> {
        match self.find(name)? {
            Some(entry) if entry.settings.flavour != flavour && entry.settings.flavour != Flavour::Any => {
                Err(CommandError::new(WRONG_TYPE))
            }
            found => Ok(found),
        }
    }

    /// The filter of this name; if it does not exist, `create` creates it.
    #[inline]
    pub(in crate::resp) fn get_or_create(
        &mut self,
        name: &[u8],
        flavour: Flavour,
        create: impl FnOnce(&mut Session) -> CommandResult<Arc<Entry>>,
    ) -> CommandResult<Arc<Entry>> {
        match self.find_as(name, flavour)? {
            Some(entry) => Ok(entry),
            // Another client may have created it in the meantime.
            None => create(self).or_else(|error| self.find_as(name, flavour)?.ok_or(error)),
        }
    }

    /// The filter of this name.
    pub(in crate::resp) fn get(&mut self, name: &[u8]) -> CommandResult<Arc<Entry>> {
        match self.find(name)? {
            Some(entry) if entry.is_note() => Err(CommandError::new(WRONG_TYPE)),
            found => found.ok_or_else(|| Fault::missing().into()),
        }
    }

    /// Before a change: fails while a task over the whole filter is running.
    #[inline]
    pub(in crate::resp) fn check_not_busy(&self, entry: &Arc<Entry>) -> CommandResult {
        if entry.is_busy() && !self.exclusive { Err(CommandError::Busy(entry.clone())) } else { Ok(()) }
    }

    /// Before a lookup: fails while the whole filter is being changed.
    #[inline]
    pub(in crate::resp) fn check_not_changing(&self, entry: &Arc<Entry>) -> CommandResult {
        if entry.is_changing() && !self.exclusive { Err(CommandError::Busy(entry.clone())) } else { Ok(()) }
    }

    /// After a change: the reply waits until the change is as durable as the service promises.
    #[inline]
    pub(in crate::resp) fn record(&mut self, lsn: Lsn) {
        if self.waits_for_disk {
            self.recorded = true;
            self.pending_lsn = self.pending_lsn.max(Some(lsn));
        }
    }

    /// After a reply that depends on the contents of a filter, whoever changed them; see [`Session::record`].
    #[inline]
    pub(in crate::resp) fn record_state(&mut self, entry: &Entry) {
        self.record(Lsn(entry.version()));
    }

    /// After a reply that depends on which names exist, or when they expire; see [`Session::record`].
    pub(in crate::resp) fn record_names(&mut self) {
        self.record(self.server.store.catalogue_lsn());
    }

    pub(in crate::resp) fn ok(&mut self) -> CommandResult {
        self.reply.ok();
        Ok(())
    }

    /// Replies with OK after a change.
    pub(in crate::resp) fn ok_after(&mut self, lsn: Lsn) -> CommandResult {
        self.record(lsn);
        self.ok()
    }

    /// Hashes the keys and clears one flag for each.
    #[inline]
    pub(in crate::resp) fn hash(&mut self, entry: &Arc<Entry>, keys: Args<'_>) -> CommandResult {
        self.check_not_changing(entry)?;
        let limits = &self.server.store.options.limits;
        let num_keys = keys.len() / entry.keying.texts();
        if num_keys > limits.batch_keys {
            return Err(CommandError::new(format!(
                "ERR a request has at most {} keys, not {num_keys}",
                limits.batch_keys
            )));
        }
        if num_keys * entry.keying.texts() != keys.len() {
            return Err(CommandError::new("ERR keys of a bank are pairs: owner key [owner key ...]"));
        }
        self.hashes.clear();
        for key in keys.iter() {
            if key.len() > limits.key_bytes {
                return Err(too_long(limits.key_bytes));
            }
            entry.keying.push(key, &mut self.hashes);
        }
        self.clear_flags(entry);
        Ok(())
    }

    /// Clears one flag for each hashed key.
    pub(in crate::resp) fn clear_flags(&mut self, entry: &Entry) {
        self.flags.clear();
        self.flags.resize(self.hashes.len() / entry.keying.width(), 0);
    }

    /// Looks up the keys that follow the name and sets their flags. A filter that does not exist, or is of the family
    /// `other`, has no keys.
    pub(in crate::resp) fn look_up(&mut self, args: Args<'_>, other: Flavour) -> CommandResult {
        match self.find(args.at(1))?.filter(|entry| entry.settings.flavour != other && !entry.is_note()) {
            None => {
                self.flags.clear();
                self.flags.resize(args.len() - 2, 0);
            }
            Some(entry) => {
                self.hash(&entry, args.from(2))?;
                self.look_up_hashed(&entry);
            }
        }
        Ok(())
    }

    /// Looks up the texts that were hashed and sets their flags.
    #[inline]
    pub(in crate::resp) fn look_up_hashed(&mut self, entry: &Entry) {
        entry.record_texts_looked_up();
        self.server.store.contains(entry, &self.hashes, &mut self.flags);
    }

    /// The spec of a new filter of a kind: a random seed, and keyed if the kind can be and the service allows it.
    pub(in crate::resp) fn spec(&self, kind: &str) -> CommandResult<Spec> {
        let keyed = self.server.store.is_keyed_by_default(kind);
        Ok(Spec { kind: kind.to_string().into(), seed: u64::from_le_bytes(store::random()?), keyed, ..Spec::default() })
    }

    /// Creates a filter; `expires` is in milliseconds since 1970.
    pub(in crate::resp) fn create(
        &mut self,
        name: &[u8],
        settings: Settings,
        expires: Option<u64>,
    ) -> CommandResult<Arc<Entry>> {
        match self.server.store.create_with_expiry(name, settings, expires) {
            Ok((entry, lsn)) => {
                self.record(lsn);
                Ok(entry)
            }
            Err(fault) if fault.code == Code::Limit => {
                Err(CommandError::new(format!("ERR Insufficient memory to create filter: {}", fault.text)))
            }
            Err(fault) => Err(fault.into()),
        }
    }
}
