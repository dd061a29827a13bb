//! The manifest: the list of filters and their files. It is replaced atomically, by rename.
//!
//! ```text
//! fullbloom-manifest 2
//! next ID FILE           the next unused numbers
//! from BOUNDARY KNOWN    first log record needed, with which a segment begins, or 0 without a log; last record whose
//!                        change of the catalogue is included
//! key FINGERPRINT        of secret.key, hexadecimal; version 1 has no such line
//! filter ID LSN FILE AT LEN EXPIRES NAME CREATED FLAVOUR STRICT NOTES SPEC...    AT and LEN within a bundle
//! end CRC-32             of all lines before
//! ```

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::entry::Place;
use super::files::list_filter_files;
use super::salvage::Salvage;
use crate::fault::{Code, Fault, Result};
use crate::fault_points::reach;
use crate::kind::{Settings, settings};
use crate::log::segment::{Head, Segment};

const FILE: &str = "manifest";
const HEAD: &str = "fullbloom-manifest ";
/// The head of the first layout, which has the project's first name.
const HEAD_1: &str = "bloomery-manifest ";
const VERSION: u32 = 2;

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) id: u64,
    pub(super) lsn: u64,
    pub(super) place: Place,
    pub(super) expires: u64,
    pub(super) name: String,
    pub(super) created: u64,
    pub(super) settings: Settings,
}

/// The list of filters and their files.
#[derive(Clone, Debug)]
pub(super) struct Manifest {
    pub(super) next_id: u64,
    pub(super) next_file: u64,
    pub(super) boundary: u64,
    pub(super) known: u64,
    /// The fingerprint of `secret.key`; `None` in version 1, whose folder may lack its log.
    pub(super) fingerprint: Option<u64>,
    pub(super) rows: Vec<Row>,
}

impl Default for Manifest {
    fn default() -> Self {
        Manifest { next_id: 1, next_file: 1, boundary: 1, known: 0, fingerprint: None, rows: Vec::new() }
    }
}

impl Manifest {
    /// Reads the manifest of a folder, if there is one.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>> {
        match Self::text(folder)? {
            None => Ok(None),
            Some(text) => Self::parse(&text, false)
                .map(Some)
                .map_err(|fault| Fault { code: fault.code, ..manifest_error(folder, &fault.text) }),
        }
    }

    /// The manifest with which a store starts: a default one for a new folder. Salvage skips a missing or damaged
    /// manifest, except the lines that parse.
    pub(super) fn open(folder: &Path, segments: &[(u64, PathBuf)], salvage: &mut Salvage) -> Result<Self> {
        let path = Self::path(folder);
        match Self::read(folder) {
            Ok(Some(manifest)) => Ok(manifest),
            Ok(None) if is_new(folder, segments)? => Ok(Manifest::default()),
            Ok(None) => {
                let what = format!("{}: it is missing, although the folder contains a log or filters", path.display());
                salvage.skip(None, what)?;
                Ok(Manifest::default())
            }
            Err(fault) if fault.code != Code::Format => Err(fault),
            Err(fault) => {
                salvage.skip(Some(&path), fault.text)?;
                Self::parse(&Self::text(folder)?.unwrap_or_default(), true)
            }
        }
    }

    fn path(folder: &Path) -> PathBuf {
        folder.join(FILE)
    }

    fn text(folder: &Path) -> Result<Option<String>> {
        let path = Self::path(folder);
        match fs::read(&path) {
            // Bytes that are not text do not match the CRC either.
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Fault::io(&path)(error)),
        }
    }

    /// Parses the lines; if `damaged`, only those that parse.
    fn parse(text: &str, damaged: bool) -> Result<Self> {
        let head = |line| str::strip_prefix(line, HEAD).or_else(|| line.strip_prefix(HEAD_1));
        let version = text.lines().next().and_then(head).unwrap_or_default();
        let version = version.parse::<u32>().unwrap_or(0);
        let wrong = || Fault::new(Code::Format, "it cannot be parsed");
        let (body, end) = text.trim_end().rsplit_once('\n').unwrap_or((text, ""));
        let crc = end.strip_prefix("end ").and_then(|crc| u32::from_str_radix(crc, 16).ok());
        if !damaged && (version == 0 || crc != Some(crc32fast::hash(body.as_bytes()))) {
            return Err(wrong());
        }
        if version > VERSION && !damaged {
            return Err(Fault::new(Code::Unsupported, format!("it has version {version}; use a newer release")));
        }
        let mut manifest = Manifest::default();
        for line in body.lines().skip(1) {
            match manifest.parse_line(line) {
                None if !damaged => return Err(wrong()),
                _ => {}
            }
        }
        if damaged {
            let most = |of: fn(&Row) -> u64| manifest.rows.iter().map(of).max().unwrap_or(0);
            manifest.next_id = manifest.next_id.max(most(|row| row.id) + 1);
            manifest.next_file = manifest.next_file.max(most(|row| row.place.file) + 1);
            // What it says about the log and the key is not trusted.
            (manifest.boundary, manifest.fingerprint) = (0, None);
        }
        Ok(manifest)
    }

    /// Parses a line; `None` if that fails.
    fn parse_line(&mut self, line: &str) -> Option<()> {
        let (what, rest) = line.split_once(' ')?;
        let mut words = rest.splitn(if what == "filter" { 7 } else { 2 }, ' ');
        if what == "key" {
            self.fingerprint = Some(u64::from_str_radix(rest, 16).ok()?);
            return Some(());
        }
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        match what {
            "next" => (self.next_id, self.next_file) = (number()?, number()?),
            "from" => (self.boundary, self.known) = (number()?, number()?),
            "filter" => {
                let (id, lsn) = (number()?, number()?);
                let place = Place { file: number()?, at: number()?, len: number()? };
                let expires = number()?;
                let (name, created, settings) = settings::parse(words.next()?).ok()?;
                self.rows.push(Row { id, lsn, place, expires, name, created, settings });
            }
            _ => return None,
        }
        Some(())
    }

    /// Replaces the manifest on disk.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let mut text =
            format!("{HEAD}{VERSION}\nnext {} {}\nfrom {} {}", self.next_id, self.next_file, self.boundary, self.known);
        text.push_str(&format!("\nkey {:016x}", self.fingerprint.unwrap_or(0)));
        for row in &self.rows {
            let line = settings::line(&row.name, row.created, &row.settings);
            text.push_str(&format!(
                "\nfilter {} {} {} {} {} {} {line}",
                row.id, row.lsn, row.place.file, row.place.at, row.place.len, row.expires
            ));
        }
        let crc = crc32fast::hash(text.as_bytes());
        text.push_str(&format!("\nend {crc:08x}\n"));
        let (path, temporary) = (Self::path(folder), folder.join("manifest.new"));
        let written = || {
            reach("manifest.create", folder)?;
            let mut file = File::create(&temporary)?;
            reach("manifest.created", folder)?;
            file.write_all(text.as_bytes())?;
            reach("manifest.written", folder)?;
            file.sync_all()?;
            reach("manifest.synced", folder)?;
            fs::rename(&temporary, &path)?;
            reach("manifest.renamed", folder)?;
            File::open(folder)?.sync_all()
        };
        written().map_err(Fault::io(&path))
    }
}

fn manifest_error(folder: &Path, why: &str) -> Fault {
    Fault::new(Code::Format, format!("{}: {why}", Manifest::path(folder).display()))
}

/// True for a folder that needs no manifest: it has no part of a store, not even a record, or an early release wrote
/// it, which created no manifest before the first checkpoint.
fn is_new(folder: &Path, segments: &[(u64, PathBuf)]) -> Result<bool> {
    match segments.first() {
        None => Ok(list_filter_files(folder)?.is_empty()),
        Some((1, path)) => {
            let first = Segment::open(path, 1)?;
            let begun = segments.len() == 1 && first.is_empty() && list_filter_files(folder)?.is_empty();
            Ok(begun || first.head == Head::First)
        }
        Some(_) => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Spec;

    #[test]
    fn manifests_round_trip_and_changed_ones_are_refused() -> Result<()> {
        let folder = tempfile::tempdir().map_err(|e| Fault::new(Code::Io, e.to_string()))?;
        let settings = Settings::of(Spec { kind: "bloom".into(), ..Spec::default() }.with("capacity", 7));
        let row = Row { id: 3, lsn: 9, place: Place::own(4), expires: 0, name: "a:b".into(), created: 1, settings };
        let manifest =
            Manifest { next_id: 5, next_file: 6, boundary: 7, known: 8, fingerprint: Some(u64::MAX), rows: vec![row] };
        manifest.write(folder.path())?;
        let read = Manifest::read(folder.path())?;
        assert_eq!(format!("{:?}", Some(manifest)), format!("{read:?}"));
        let path = folder.path().join(FILE);
        let bytes = fs::read(&path).map_err(|e| Fault::new(Code::Io, e.to_string()))?;
        for at in 0..bytes.len() - 1 {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fs::write(&path, changed).map_err(|e| Fault::new(Code::Io, e.to_string()))?;
            assert!(Manifest::read(folder.path()).is_err(), "{at}");
        }
        Ok(())
    }
}
