//! [`Chain`]: checks that no segment of the log is missing, using the manifest and the headers.

use std::path::{Path, PathBuf};

use super::manifest::Manifest;
use crate::log::segment::{self, Head, Segment};
use crate::log::synced::Synced;

/// Record numbers that are skipped after a crash, so that none is used twice.
pub(super) const LSN_GAP: u64 = 1 << 32;

/// The segments read so far.
pub(super) struct Chain<'a> {
    manifest: &'a Manifest,
    folder: &'a Path,
    /// The previous segment: its first record, and the number after its last.
    pub(super) previous: Option<(u64, u64)>,
    /// False if the previous segment is damaged, so that its end is unknown.
    pub(super) is_whole: bool,
}

impl<'a> Chain<'a> {
    pub(super) fn new(manifest: &'a Manifest, folder: &'a Path) -> Self {
        Chain { manifest, folder, previous: None, is_whole: true }
    }

    /// The first and the newest segment, if they are known to exist and are missing.
    pub(super) fn find_missing(&self, segments: &[&(u64, PathBuf)], synced: Synced) -> Vec<String> {
        let boundary = Some(self.manifest.boundary).filter(|&first| self.manifest.fingerprint.is_some() && first != 0);
        let newest = Some(synced.newest).filter(|&first| first != 0 && first >= self.manifest.boundary);
        let mut known: Vec<u64> = boundary.into_iter().chain(newest).collect();
        known.dedup();
        known.retain(|known| segments.iter().all(|(first, _)| first != known));
        known.into_iter().map(|first| self.describe_missing(first)).collect()
    }

    /// What is missing between the previous segment and this one.
    pub(super) fn find_gap(&mut self, segment: &Segment, next: u64) -> Option<String> {
        let is_whole = std::mem::replace(&mut self.is_whole, true);
        match (segment.head, self.previous) {
            (Head::Sound(header), Some(previous)) if header.before != previous => {
                let is_next = header.before.0 == previous.0;
                // A damaged segment is reported as such.
                (is_whole || !is_next).then(|| match is_next {
                    true => self.describe_truncated(previous, header.before.1),
                    false => self.describe_missing(header.before.0),
                })
            }
            (Head::Sound(header), None) if header.before.0 != 0 && segment.first != self.manifest.boundary => {
                Some(self.describe_missing(header.before.0))
            }
            // The first layout does not name other segments. Its numbers continue, except those skipped after a crash.
            (Head::First, _) if segment.first > next && segment.first - next < LSN_GAP && is_whole => {
                Some(self.describe_missing(next))
            }
            _ => None,
        }
    }

    fn describe_missing(&self, first: u64) -> String {
        format!("{}: this part of the log is missing", segment::path(self.folder, first).display())
    }

    fn describe_truncated(&self, (first, end): (u64, u64), known: u64) -> String {
        let path = segment::path(self.folder, first);
        format!("{}: it ends before record {end}, but had records up to {}", path.display(), known.saturating_sub(1))
    }
}
