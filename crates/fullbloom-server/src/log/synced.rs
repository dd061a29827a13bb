//! [`Synced`]: what is known to be on disk, in a file beside the segments, so that recovery can distinguish a missing or
//! truncated segment from what a crash leaves.
//!
//! ```text
//! "BLMYSYN1" | u64 first record of the newest segment | u64 last record that was synced | u32 CRC-32 of the 24 bytes
//! ```
//! It is written after the sync that it reports, and never synced itself: an old one reports too little, never too much. A
//! missing or damaged file reports nothing.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::segment::{long, word};
use crate::fault::{Code, Fault, Result};

const MAGIC: &[u8; 8] = b"BLMYSYN1";
const FILE: &str = "synced";
const LENGTH: usize = 28;

/// What is known to be synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    /// The first record of the newest segment whose header was synced; 0 if unknown.
    pub newest: u64,
    /// The last record that was synced.
    pub record: u64,
}

impl Synced {
    /// Reads the file in the folder of a log.
    pub fn read(folder: &Path) -> Self {
        let bytes = fs::read(folder.join(FILE)).unwrap_or_default();
        let Ok(bytes) = <[u8; LENGTH]>::try_from(bytes) else { return Synced::default() };
        if !bytes.starts_with(MAGIC) || crc32fast::hash(&bytes[..24]) != word(&bytes, 24) {
            return Synced::default();
        }
        Synced { newest: long(&bytes, 8), record: long(&bytes, 16) }
    }

    fn bytes(self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..16].copy_from_slice(&self.newest.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.record.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..24]);
        bytes[24..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}

/// The current segment, as far as it is not known to be synced.
#[derive(Default)]
pub(super) struct CurrentSegment {
    pub(super) file: Option<Arc<File>>,
    pub(super) record: u64,
    /// True from a write until the next sync begins.
    pub(super) dirty: bool,
    pub(super) stop: bool,
}

/// The file, open as long as the log is.
pub(super) struct SyncedFile {
    /// `None` if it cannot be written; the log does not depend on it.
    file: Option<File>,
    written: Synced,
}

impl SyncedFile {
    pub(super) fn open(folder: &Path, written: Synced) -> Self {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(folder.join(FILE)).ok();
        let file = file.filter(|file| file.set_len(LENGTH as u64).is_ok());
        let mut opened = SyncedFile { file, written: Synced::default() };
        opened.update(written);
        opened
    }

    /// Records that more is synced than before.
    pub(super) fn update(&mut self, more: Synced) {
        let next =
            Synced { newest: self.written.newest.max(more.newest), record: self.written.record.max(more.record) };
        if next != self.written {
            self.written = next;
            if let Some(file) = &self.file {
                let _ = file.write_all_at(&next.bytes(), 0);
            }
        }
    }
}

/// How far the disk has come.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Records up to this number are as durable as the mode promises.
    pub(super) durable: u64,
    /// Why changes are refused at present.
    pub(super) trouble: Option<String>,
}

impl Progress {
    /// Refuses a record that is not yet as durable as the mode promises, and says why.
    pub(super) fn confirm(&self, number: u64) -> Result<()> {
        match &self.trouble {
            _ if self.durable >= number => Ok(()),
            Some(why) => Err(Fault::new(Code::ReadOnly, format!("not acknowledged: {why}"))),
            None => Err(stopping_fault()),
        }
    }
}

/// The refusal of a service that is stopping.
pub(super) fn stopping_fault() -> Fault {
    Fault::new(Code::ReadOnly, "not acknowledged: the service is stopping")
}
