//! The manifest: which filters there are, and which files hold them. Written whole, by rename.
//!
//! ```text
//! bloomery-manifest 1
//! next ID FILE           numbers that were never used
//! from BOUNDARY KNOWN    first record of the log that is needed; last one whose change of the catalogue is in here
//! filter ID LSN FILE AT LEN EXPIRES NAME CREATED FLAVOUR STRICT NOTES SPEC...    AT and LEN of those in a bundle
//! end CRC-32             of all lines before
//! ```

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use super::entry::Place;
use crate::fault::{Code, Fault, Result};
use crate::kind::{Settings, settings};

const FILE: &str = "manifest";
const HEAD: &str = "bloomery-manifest ";
const VERSION: &str = "1";

/// One filter.
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

/// See the head of this file.
#[derive(Clone, Debug)]
pub(super) struct Manifest {
    pub(super) next_id: u64,
    pub(super) next_file: u64,
    pub(super) boundary: u64,
    pub(super) known: u64,
    pub(super) rows: Vec<Row>,
}

impl Default for Manifest {
    fn default() -> Self {
        Manifest { next_id: 1, next_file: 1, boundary: 1, known: 0, rows: Vec::new() }
    }
}

impl Manifest {
    /// The manifest of a folder; an empty one where there is none.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| damaged(&path, "it is not text"))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Manifest::default()),
            Err(error) => return Err(Fault::io(&path)(error)),
        };
        Self::parse(&text).map_err(|fault| damaged(&path, &fault.text))
    }

    fn parse(text: &str) -> Result<Self> {
        let version = text.lines().next().and_then(|line| line.strip_prefix(HEAD)).unwrap_or_default();
        if version.parse::<u32>().is_ok_and(|version| version > 1) {
            return Err(Fault::new(Code::Format, format!("it has version {version}; use a newer release")));
        }
        let wrong = || Fault::new(Code::Format, "it does not read");
        let (body, end) = text.trim_end().rsplit_once('\n').ok_or_else(wrong)?;
        let crc = end.strip_prefix("end ").and_then(|crc| u32::from_str_radix(crc, 16).ok()).ok_or_else(wrong)?;
        if version != VERSION || crc32fast::hash(body.as_bytes()) != crc {
            return Err(wrong());
        }
        let mut manifest = Manifest::default();
        for line in body.lines().skip(1) {
            let (what, rest) = line.split_once(' ').ok_or_else(wrong)?;
            let mut words = rest.splitn(if what == "filter" { 7 } else { 2 }, ' ');
            let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).ok_or_else(wrong);
            match what {
                "next" => (manifest.next_id, manifest.next_file) = (number()?, number()?),
                "from" => (manifest.boundary, manifest.known) = (number()?, number()?),
                "filter" => {
                    let (id, lsn) = (number()?, number()?);
                    let place = Place { file: number()?, at: number()?, len: number()? };
                    let expires = number()?;
                    let (name, created, settings) = settings::parse(words.next().ok_or_else(wrong)?)?;
                    manifest.rows.push(Row { id, lsn, place, expires, name, created, settings });
                }
                _ => return Err(wrong()),
            }
        }
        Ok(manifest)
    }

    /// Puts it in place of the one that is there, on disk.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let mut text =
            format!("{HEAD}{VERSION}\nnext {} {}\nfrom {} {}", self.next_id, self.next_file, self.boundary, self.known);
        for row in &self.rows {
            let line = settings::line(&row.name, row.created, &row.settings);
            text.push_str(&format!(
                "\nfilter {} {} {} {} {} {} {line}",
                row.id, row.lsn, row.place.file, row.place.at, row.place.len, row.expires
            ));
        }
        let crc = crc32fast::hash(text.as_bytes());
        text.push_str(&format!("\nend {crc:08x}\n"));
        let (path, temporary) = (folder.join(FILE), folder.join("manifest.new"));
        let written = || {
            let mut file = File::create(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, &path)?;
            File::open(folder)?.sync_all()
        };
        written().map_err(Fault::io(&path))
    }
}

fn damaged(path: &Path, why: &str) -> Fault {
    Fault::new(Code::Format, format!("{}: {why}; restore it from a backup", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Spec;

    #[test]
    fn a_manifest_reads_back_and_a_changed_one_is_refused() -> Result<()> {
        let folder = tempfile::tempdir().map_err(|e| Fault::new(Code::Io, e.to_string()))?;
        let settings = Settings::of(Spec { kind: "bloom".into(), ..Spec::default() }.with("capacity", 7));
        let row = Row { id: 3, lsn: 9, place: Place::own(4), expires: 0, name: "a:b".into(), created: 1, settings };
        let manifest = Manifest { next_id: 5, next_file: 6, boundary: 7, known: 8, rows: vec![row] };
        manifest.write(folder.path())?;
        let read = Manifest::read(folder.path())?;
        assert_eq!(format!("{manifest:?}"), format!("{read:?}"));
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
