//! The filters that a client's commands are about, and the hashes of their keys.

use std::sync::Arc;

use super::super::halt::{Done, Halt, WRONG_TYPE, too_long};
use super::super::parse::Args;
use super::Session;
use super::known::Known;
use crate::fault::{Code, Fault};
use crate::kind::Flavour;
use crate::store::{self, Entry, Lsn};

impl Session {
    /// The filter or note of this name, if there is one.
    #[inline]
    pub(in crate::resp) fn find(&mut self, name: &[u8]) -> Done<Option<Arc<Entry>>> {
        let epoch = self.server.store.epoch();
        let alike = |known: &&Known| known.epoch == epoch && known.name == name;
        if let Some(known) = self.known.as_ref().filter(alike)
            && known.entry.expires().is_none_or(|at| at > store::now())
        {
            return Ok(Some(known.entry.clone()));
        }
        match self.server.store.get(name) {
            Ok(entry) => {
                self.known = Some(Known { epoch, name: name.to_vec(), entry: entry.clone() });
                Ok(Some(entry))
            }
            Err(fault) if fault.code == Code::Missing => Ok(None),
            Err(fault) => Err(fault.into()),
        }
    }

    /// The filter of this name, if there is one, and it is not of the other sort.
    #[inline]
    pub(in crate::resp) fn find_as(&mut self, name: &[u8], flavour: Flavour) -> Done<Option<Arc<Entry>>> {
        match self.find(name)? {
            Some(entry) if entry.settings.flavour != flavour && entry.settings.flavour != Flavour::Any => {
                Err(Halt::text(WRONG_TYPE))
            }
            found => Ok(found),
        }
    }

    /// The filter of this name.
    pub(in crate::resp) fn get(&mut self, name: &[u8]) -> Done<Arc<Entry>> {
        match self.find(name)? {
            Some(entry) if entry.is_note() => Err(Halt::text(WRONG_TYPE)),
            found => found.ok_or_else(|| Fault::missing().into()),
        }
    }

    /// Before a change of a filter.
    #[inline]
    pub(in crate::resp) fn ready(&self, entry: &Arc<Entry>) -> Done {
        if entry.is_busy() && !self.exclusive { Err(Halt::Wait(entry.clone())) } else { Ok(()) }
    }

    /// Before a look at a filter.
    #[inline]
    pub(in crate::resp) fn ready_to_look(&self, entry: &Arc<Entry>) -> Done {
        if entry.is_changing() && !self.exclusive { Err(Halt::Wait(entry.clone())) } else { Ok(()) }
    }

    /// After a change: its answer is sent when it is as safe as the service promises.
    #[inline]
    pub(in crate::resp) fn note(&mut self, lsn: Lsn) {
        if self.waits {
            self.noted = true;
            self.changed = self.changed.max(Some(lsn));
        }
    }

    /// After an answer that rests on what a filter holds, whoever has put it there; see [`Session::note`].
    #[inline]
    pub(in crate::resp) fn note_state(&mut self, entry: &Entry) {
        self.note(Lsn(entry.version()));
    }

    /// After an answer that rests on which names there are, or until when; see [`Session::note`].
    pub(in crate::resp) fn note_names(&mut self) {
        self.note(self.server.store.catalogued());
    }

    /// Makes `hashes` those of the keys, and `flags` as long.
    #[inline]
    pub(in crate::resp) fn hash(&mut self, entry: &Arc<Entry>, keys: Args<'_>) -> Done {
        self.ready_to_look(entry)?;
        let limits = &self.server.store.options.limits;
        if keys.len() > limits.batch_keys {
            return Err(Halt::text(format!(
                "ERR a request has at most {} keys, not {}",
                limits.batch_keys,
                keys.len()
            )));
        }
        self.hashes.clear();
        for key in keys.iter() {
            if key.len() > limits.key_bytes {
                return Err(too_long(limits.key_bytes));
            }
            entry.text.push(key, &mut self.hashes);
        }
        self.clear_flags(entry);
        Ok(())
    }

    /// As many flags as keys whose hashes are at hand, none set.
    pub(in crate::resp) fn clear_flags(&mut self, entry: &Entry) {
        self.flags.clear();
        self.flags.resize(self.hashes.len() / entry.text.width(), 0);
    }
}
