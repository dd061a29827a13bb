//! Header, parameter table, section table: writing them, and reading them from hostile bytes.

use super::tag;
use crate::cells::{LINE_BYTES, Memory};
use crate::error::{Error, Result};
use crate::key::{AddedDomains, BaseHash, KEY_RULE_VERSION, KeyDomains, KeyHasher};

/// As PNG's: a high byte, a name, and line ends that a text-mode copy would change.
pub const MAGIC: [u8; 8] = *b"\x89BLOOM\r\n";
/// Version of this layout.
pub const FORMAT_VERSION: u16 = 1;

const FIXED: usize = 64;
/// Offset of the two table lengths in the fixed part.
const COUNTS_AT: usize = 44;
/// Offset of the length of the file.
const FILE_LEN_AT: usize = 32;
const PARAM: usize = 16;
const SECTION: usize = 32;
const FLAG_OPEN_FOR_WRITING: u32 = 1;
/// A filter has tens of parameters per stage at most; a larger table is not plausible.
const MAX_ENTRIES: usize = 1 << 15;

/// How much to check when reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// Header, tables and lengths: constant time.
    Header,
    /// Everything, every bit of the file.
    Full,
}

/// The header and the parameter table.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Which structure.
    pub variant: u16,
    /// Which scheme placed the cells.
    pub scheme: u16,
    /// Seed of the key hash.
    pub seed: u64,
    /// Fingerprint of the secret, 0 for none.
    pub secret_fingerprint: u64,
    /// The file was being written to and never closed: checksums and counts are stale.
    pub unclean: bool,
    /// (tag, index, value); floats as their bits.
    pub params: Vec<(u16, u16, u64)>,
}

/// The index of the parameters of a whole whose parts count from 0.
pub const WHOLE: u16 = 0xffff;

impl Header {
    /// A header for a structure whose keys `hasher` hashes.
    pub fn new(variant: u16, scheme: u16, hasher: &KeyHasher) -> Self {
        let base = hasher.base();
        let named = (base != BaseHash::Xxh3).then_some((tag::HASH, 0, base as u64));
        let domains = hasher.domains().number().map(|number| (tag::KEY_DOMAINS, 0, number));
        let params = named.into_iter().chain(domains).collect();
        let (seed, secret_fingerprint) = (hasher.seed(), hasher.secret_fingerprint());
        Header { variant, scheme, seed, secret_fingerprint, unclean: false, params }
    }

    /// True if a parameter names the base hash.
    pub fn names_hash(&self) -> bool {
        self.get(tag::HASH, 0).is_ok()
    }

    /// True if a parameter, of any part, records the domains of keys.
    pub fn records_domains(&self) -> bool {
        self.params.iter().any(|(tag, ..)| *tag == tag::KEY_DOMAINS)
    }

    /// Number of parameters that [`Header::new`] wrote for the hasher.
    pub fn hasher_params(&self) -> usize {
        usize::from(self.names_hash()) + usize::from(self.records_domains())
    }

    /// The domains of the keys, as far as they are recorded. A file that was not closed may hold more of them.
    pub fn added_domains(&self) -> Result<AddedDomains> {
        let mut numbers = self.params.iter().filter(|(tag, ..)| *tag == tag::KEY_DOMAINS);
        let Some(&(_, index, number)) = numbers.next() else { return Ok(AddedDomains::UNKNOWN) };
        if ![0, WHOLE].contains(&index) || numbers.next().is_some() {
            return Err(Error::format("the file records its key types twice, or in part; it is damaged"));
        }
        let newer = || Error::format("the file records unknown key types; use a newer release");
        let mut added = AddedDomains::from_file(number).ok_or_else(newer)?;
        if self.unclean {
            added.insert(KeyDomains::HASHED);
        }
        Ok(added)
    }

    /// The base hash.
    fn base(&self) -> Result<BaseHash> {
        let Ok(number) = self.get(tag::HASH, 0) else { return Ok(BaseHash::Xxh3) };
        let named =
            BaseHash::from_number(number).filter(|base| *base != BaseHash::Xxh3 && self.secret_fingerprint == 0);
        named.ok_or_else(|| Error::format("the file names an unknown hash; use a newer release"))
    }

    /// Adds a whole-number parameter.
    pub fn set(&mut self, tag: u16, index: u16, value: u64) {
        self.params.push((tag, index, value));
    }

    /// Adds a float parameter.
    pub fn set_f64(&mut self, tag: u16, index: u16, value: f64) {
        self.set(tag, index, value.to_bits());
    }

    /// A whole-number parameter, which must be there.
    pub fn get(&self, tag: u16, index: u16) -> Result<u64> {
        let found = self.params.iter().find(|(t, i, _)| (*t, *i) == (tag, index));
        found.map(|(_, _, v)| *v).ok_or_else(|| {
            Error::format(format!("the file lacks parameter {tag} (index {index}); it is damaged or foreign"))
        })
    }

    /// A float parameter, which must be there.
    pub fn get_f64(&self, tag: u16, index: u16) -> Result<f64> {
        Ok(f64::from_bits(self.get(tag, index)?))
    }

    /// Adds the parameters of a part, under `index`, without the domains of keys, which the whole records.
    pub fn nest(&mut self, index: u16, part: &Header) {
        let own = part.params.iter().filter(|(tag, ..)| *tag != tag::KEY_DOMAINS);
        self.params.extend(own.map(|&(tag, _, value)| (tag, index, value)));
    }

    /// The header of the part that [`Header::nest`] took in under `index`; its variant and scheme are
    /// for the caller to set.
    pub fn part(&self, index: u16) -> Header {
        let mine = self.params.iter().filter(|(_, i, _)| *i == index);
        Header { params: mine.map(|&(tag, _, value)| (tag, 0, value)).collect(), ..*self }
    }

    /// The key hasher of this file: needs the right secret exactly when one was used.
    pub fn hasher(&self, secret: Option<&[u8; 16]>) -> Result<KeyHasher> {
        let (base, added) = (self.base()?, self.added_domains()?);
        let wrong = match (secret, self.secret_fingerprint) {
            (None, 0) => return Ok(KeyHasher::with_base(self.seed, base).holding(added)),
            (None, _) => "the filter was built with a secret; pass secret= to open it",
            (Some(_), 0) => "the filter was built without a secret; open it without secret=",
            (Some(secret), fingerprint) => {
                let hasher = KeyHasher::keyed(self.seed, secret);
                if hasher.secret_fingerprint() == fingerprint {
                    return Ok(hasher.holding(added));
                }
                "secret is not the one the filter was built with"
            }
        };
        Err(Error::parameter(wrong))
    }
}

/// A run of payload bytes.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// Its contents.
    pub kind: u32,
    /// Its number among sections of its kind.
    pub index: u32,
    /// The bytes.
    pub bytes: &'a [u8],
    /// The expected checksum, if the bytes are in a file that nobody changes.
    pub checksum: Option<u32>,
}

impl<'a> Section<'a> {
    /// The only section of its kind, with all of `memory`.
    pub fn of(kind: u32, memory: &'a Memory) -> Self {
        Section { kind, index: 0, bytes: memory.bytes(), checksum: memory.checksum() }
    }

    /// The checksum of the bytes. Damaged bytes are refused: once written again, under a new checksum, nobody could
    /// detect the damage.
    pub fn check(&self) -> Result<u32> {
        let crc = crc32fast::hash(self.bytes);
        if self.checksum.is_some_and(|wanted| wanted != crc) { Err(Memory::checksum_error()) } else { Ok(crc) }
    }
}

/// A structure in the form of a file.
pub struct Container<'a> {
    /// The header.
    pub header: Header,
    /// The payload.
    pub sections: Vec<Section<'a>>,
}

fn align(offset: usize) -> usize {
    offset.next_multiple_of(LINE_BYTES)
}

/// Length of header and tables, padded.
fn head_len(params: usize, sections: usize) -> usize {
    align(FIXED + params * PARAM + sections * SECTION)
}

impl Container<'_> {
    /// Length of the whole file.
    pub fn nbytes(&self) -> usize {
        let head = head_len(self.header.params.len(), self.sections.len());
        self.sections.iter().fold(head, |at, s| align(at + s.bytes.len()))
    }

    /// Header and tables, checksummed and padded.
    pub fn head(&self) -> Result<Vec<u8>> {
        let (params, sections) = (&self.header.params, &self.sections);
        let mut at = head_len(params.len(), sections.len());
        let mut head = Vec::with_capacity(at);
        head.extend_from_slice(&MAGIC);
        for half in [FORMAT_VERSION, self.header.variant, self.header.scheme, KEY_RULE_VERSION] {
            head.extend_from_slice(&half.to_le_bytes());
        }
        head.extend_from_slice(&self.header.seed.to_le_bytes());
        head.extend_from_slice(&self.header.secret_fingerprint.to_le_bytes());
        head.extend_from_slice(&(self.nbytes() as u64).to_le_bytes());
        let flags = if self.header.unclean { FLAG_OPEN_FOR_WRITING } else { 0 };
        head.extend_from_slice(&flags.to_le_bytes());
        head.extend_from_slice(&(params.len() as u16).to_le_bytes());
        head.extend_from_slice(&(sections.len() as u16).to_le_bytes());
        head.resize(FIXED, 0);
        for (tag, index, value) in params {
            head.extend_from_slice(&tag.to_le_bytes());
            head.extend_from_slice(&index.to_le_bytes());
            head.extend_from_slice(&[0; 4]);
            head.extend_from_slice(&value.to_le_bytes());
        }
        for section in sections {
            head.extend_from_slice(&section.kind.to_le_bytes());
            head.extend_from_slice(&section.index.to_le_bytes());
            head.extend_from_slice(&(at as u64).to_le_bytes());
            head.extend_from_slice(&(section.bytes.len() as u64).to_le_bytes());
            let crc = if self.header.unclean { 0 } else { section.check()? };
            head.extend_from_slice(&crc.to_le_bytes());
            head.extend_from_slice(&[0; 4]);
            at = align(at + section.bytes.len());
        }
        head.resize(align(head.len()), 0);
        let crc = crc32fast::hash(&head);
        head[FIXED - 4..FIXED].copy_from_slice(&crc.to_le_bytes());
        Ok(head)
    }

    /// Writes the whole file to `out`; `head` is [`Container::head`].
    pub fn write_with(&self, head: &[u8], out: &mut dyn std::io::Write) -> std::io::Result<()> {
        out.write_all(head)?;
        for section in &self.sections {
            out.write_all(section.bytes)?;
            let padding = align(section.bytes.len()) - section.bytes.len();
            out.write_all(&[0; LINE_BYTES][..padding])?;
        }
        Ok(())
    }
}

/// A section of a file: the position of its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Its contents.
    pub kind: u32,
    /// Its number among sections of its kind.
    pub index: u32,
    /// First byte.
    pub offset: usize,
    /// Number of bytes.
    pub len: usize,
    /// Checksum of the bytes.
    pub crc: u32,
}

/// A file with a valid header and valid lengths.
#[derive(Debug)]
pub struct ContainerIndex {
    /// The header.
    pub header: Header,
    /// The sections, in file order.
    pub sections: Vec<Span>,
}

impl ContainerIndex {
    /// Reads `bytes`, the whole file.
    pub fn new(bytes: &[u8], verify: Verify) -> Result<Self> {
        let parsed = Self::from_head(bytes, bytes.len())?;
        if verify == Verify::Full {
            parsed.check_payload(bytes)?;
        }
        Ok(parsed)
    }

    /// Bytes of header and tables of a file that begins with `bytes`; 64 if that is not readable.
    pub fn head_len(bytes: &[u8]) -> usize {
        let count = |at: usize| bytes.get(at..at + 2).map_or(0, |b| usize::from(u16::from_le_bytes([b[0], b[1]])));
        head_len(count(COUNTS_AT), count(COUNTS_AT + 2))
    }

    /// Bytes of the whole file that begins with `bytes`, as its header says; 0 if that is not readable.
    pub fn file_len(bytes: &[u8]) -> usize {
        let len = bytes.get(FILE_LEN_AT..).and_then(<[u8]>::first_chunk::<8>);
        // No memory is so large, and sums of such lengths are numbers yet.
        len.map_or(0, |len| usize::try_from(u64::from_le_bytes(*len)).unwrap_or(usize::MAX).min(usize::MAX >> 8))
    }

    /// Reads header and tables from `bytes`, the beginning of a file of `file` bytes.
    pub fn from_head(bytes: &[u8], file: usize) -> Result<Self> {
        let mut reader = Reader(bytes);
        if reader.take::<8>().map_err(|_| Self::foreign(bytes))? != MAGIC {
            return Err(Self::foreign(bytes));
        }
        let version = reader.u16()?;
        if version != FORMAT_VERSION {
            return Err(Error::format(format!(
                "the file has format version {version}, this release reads {FORMAT_VERSION}; use a newer release"
            )));
        }
        let (variant, scheme, key_rule) = (reader.u16()?, reader.u16()?, reader.u16()?);
        let (seed, secret_fingerprint) = (reader.u64()?, reader.u64()?);
        let file_len = reader.u64()?;
        let (flags, params, sections) = (reader.u32()?, usize::from(reader.u16()?), usize::from(reader.u16()?));
        for _ in 0..3 {
            reader.zero()?;
        }
        let crc = reader.u32()?;
        if file_len != file as u64 {
            return Err(Error::format(format!(
                "the file is {file} bytes long, its header says {file_len}: it was cut short or added to"
            )));
        }
        if params > MAX_ENTRIES || sections > MAX_ENTRIES {
            return Err(Error::format("the file's tables are longer than any filter's"));
        }
        let head = bytes.get(..head_len(params, sections)).ok_or_else(|| Error::format("the file is cut short"))?;
        Self::check_head(head, crc)?;
        if key_rule != KEY_RULE_VERSION {
            return Err(Error::format(format!(
                "the file uses key rule {key_rule}, this release knows {KEY_RULE_VERSION}; use a newer release"
            )));
        }
        if flags & !FLAG_OPEN_FOR_WRITING != 0 {
            return Err(Error::format(format!("the file sets unknown flags ({flags:#x}); use a newer release")));
        }
        let mut header = Header { variant, scheme, seed, secret_fingerprint, unclean: flags != 0, params: Vec::new() };
        for _ in 0..params {
            let (tag, index) = (reader.u16()?, reader.u16()?);
            reader.zero()?;
            header.params.push((tag, index, reader.u64()?));
        }
        let sections = Self::read_sections(&mut reader, sections, head.len(), file)?;
        Ok(ContainerIndex { header, sections })
    }

    fn foreign(bytes: &[u8]) -> Error {
        if bytes.is_empty() {
            return Error::format("the file is empty; it is not a fullbloom file");
        }
        Error::format("this is not a fullbloom file (it does not start with \\x89BLOOM)")
    }

    fn check_head(head: &[u8], crc: u32) -> Result<()> {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&head[..FIXED - 4]);
        hasher.update(&[0; 4]);
        hasher.update(&head[FIXED..]);
        if hasher.finalize() != crc {
            return Err(Error::format("the file's header does not match its checksum; the file is damaged"));
        }
        Ok(())
    }

    /// The section table: sections follow each other without gaps and fill the file.
    fn read_sections(reader: &mut Reader<'_>, count: usize, head: usize, file: usize) -> Result<Vec<Span>> {
        let mut spans = Vec::new();
        let mut at = head;
        for _ in 0..count {
            let (kind, index) = (reader.u32()?, reader.u32()?);
            let (offset, len) = (reader.size()?, reader.size()?);
            let crc = reader.u32()?;
            reader.zero()?;
            if offset != at || len > file - at {
                return Err(Error::format("a section of the file lies outside of it; the file is damaged"));
            }
            at = align(at + len);
            if at > file {
                return Err(Error::format("the file is cut short inside a section"));
            }
            spans.push(Span { kind, index, offset, len, crc });
        }
        if at != file {
            return Err(Error::format("the file holds bytes that belong to no section"));
        }
        Ok(spans)
    }

    /// Checks every byte after the tables.
    pub fn check_payload(&self, bytes: &[u8]) -> Result<()> {
        if self.header.unclean {
            return Err(Error::format(
                "the file was open for writing and never closed, so its checksums are stale; \
                 open it with verify=\"header\", or once with mode=\"r+\" to renew them",
            ));
        }
        // The file may have been truncated since its length was read.
        if self.sections.last().is_some_and(|span| align(span.offset + span.len) > bytes.len()) {
            return Err(Error::format("the file was cut short while it was opened"));
        }
        for span in &self.sections {
            let end = span.offset + span.len;
            if crc32fast::hash(&bytes[span.offset..end]) != span.crc {
                return Err(Error::format(format!(
                    "section {} of the file does not match its checksum; the file is damaged",
                    span.index
                )));
            }
            if bytes[end..align(end)].iter().any(|&b| b != 0) {
                return Err(Error::format("padding of the file is not zero; the file is damaged"));
            }
        }
        Ok(())
    }

    /// The span of one section.
    pub fn section(&self, kind: u32, index: u32) -> Result<Span> {
        let found = self.sections.iter().find(|s| (s.kind, s.index) == (kind, index));
        found.copied().ok_or_else(|| {
            Error::format(format!("the file lacks section {kind} (index {index}); it is damaged or foreign"))
        })
    }
}

/// A reader over bytes that never runs past them.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or_else(|| Error::format("the file is cut short"))?;
        self.0 = rest;
        Ok(*head)
    }

    fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.take()?))
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn size(&mut self) -> Result<usize> {
        usize::try_from(self.u64()?).map_err(|_| Error::format("the file names a length beyond this machine's"))
    }

    fn zero(&mut self) -> Result<()> {
        if self.u32()? == 0 { Ok(()) } else { Err(Error::format("a reserved field of the file is not zero")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_cut_short_after_its_length_was_read_is_refused() {
        let header = Header::new(1, 1, &KeyHasher::with_base(0, BaseHash::Xxh3));
        let section = Section { kind: 1, index: 0, bytes: b"short", checksum: None };
        let container = Container { header, sections: vec![section] };
        let mut file = Vec::new();
        container.write_with(&container.head().unwrap(), &mut file).unwrap();
        let parsed = ContainerIndex::from_head(&file, file.len()).unwrap();
        parsed.check_payload(&file).unwrap();
        // Without a part of the padding, without all of it, and without a part of the section.
        for missing in [1, 59, 60] {
            assert!(parsed.check_payload(&file[..file.len() - missing]).is_err());
        }
    }
}
