//! [`Start`]: where a log continues, and its new segment. A segment is created under an unused name. If that fails it
//! is removed, and nothing is written to a file whose header is not on disk.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

use super::segment::{self, Head, Header, Segment};
use crate::fault::{Fault, Result};
use crate::fault_points::reach;

/// Where a log continues.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The number of the next record.
    pub next: u64,
    /// The first record of the newest segment, and the number after its last record; (0, 0) for an empty log.
    pub before: (u64, u64),
    /// The fingerprint of the secret with which filters are keyed.
    pub fingerprint: u64,
    /// The limit on the bytes of one filter.
    pub filter_bytes: u64,
}

impl Start {
    /// Begins a new segment, or reuses an empty one.
    pub(super) fn begin(&mut self, folder: &Path) -> Result<(File, Header)> {
        let path = segment::path(folder, self.next);
        if let Some(begun) = find_reusable(folder, &path, self) {
            return Ok(begun);
        }
        // A different segment with this number stays until the next checkpoint.
        self.next += u64::from(path.exists());
        begin(folder, Header::new(self.next, self.before, self.fingerprint, self.filter_bytes))
    }
}

/// The empty segment at `path`, if it begins as `start` requires.
fn find_reusable(folder: &Path, path: &Path, start: &Start) -> Option<(File, Header)> {
    let begun = Segment::open(path, start.next).ok().filter(Segment::is_empty)?;
    let Head::Sound(header) = begun.head else { return None };
    let is_same = header.fingerprint == start.fingerprint && header.filter_bytes == start.filter_bytes;
    let file = OpenOptions::new().write(true).open(path).ok().filter(|_| is_same)?;
    // The process that began it may have ended before it was on disk.
    let synced = file.sync_all().and_then(|()| File::open(folder)?.sync_all());
    synced.ok().map(|()| (file, header))
}

/// Creates a segment and syncs its name.
pub(super) fn begin(folder: &Path, header: Header) -> Result<(File, Header)> {
    let path = segment::path(folder, header.first);
    let create = || {
        reach("segment.create", folder)?;
        OpenOptions::new().write(true).create_new(true).open(&path)
    };
    let file = match create() {
        // An earlier attempt could not remove it. Nothing was ever written after its header.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && is_unused(&path) => {
            fs::remove_file(&path).and_then(|()| create())
        }
        done => done,
    };
    let mut file = file.map_err(Fault::io(&path))?;
    let fill = |file: &mut File| {
        reach("segment.created", folder)?;
        file.write_all(&header.bytes())?;
        reach("segment.written", folder)?;
        file.sync_all()?;
        reach("segment.synced", folder)?;
        File::open(folder)?.sync_all()
    };
    if let Err(error) = fill(&mut file) {
        let _ = fs::remove_file(&path);
        return Err(Fault::io(&path)(error));
    }
    Ok((file, header))
}

/// True for a file without records.
fn is_unused(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= segment::HEADER as u64)
}
