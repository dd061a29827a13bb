//! A dump: a stream of pieces, the header first, or the same bytes in one file, one after the other.
//!
//! [`Loader`] takes pieces in order, as the commands give them: none may be missing, overlap, or follow the last one. A
//! header costs no memory for cells; they are allocated as they arrive.

use std::io::Write;

use super::HEAD;
use super::bloom::Chain;
use super::cuckoo::Cuckoo;
pub use super::dumpable::Dumpable;
use crate::error::{Error, Result};
use crate::foreign::bits::Hashing;
use crate::foreign::rules::{Digest, Rule};
use crate::foreign::source::Source;

/// Bytes that tell how long a header is.
const FIRST: usize = 20;
/// Bytes that are read at a time where an input is not in memory.
const PORTION: u64 = 1 << 20;

fn refuse<T: Dumpable>(why: impl AsRef<str>) -> Error {
    T::FORMAT.refuse(why)
}

/// A filter whose pieces arrive one after the other.
pub struct Loader<T> {
    filter: Option<T>,
    max_bytes: u64,
    /// Number of the first byte that has not arrived, and of the one behind the last.
    next: i64,
    end: i64,
    pieces: u64,
    is_ended: bool,
}

impl<T: Dumpable> Loader<T> {
    /// Of no pieces yet. The filter may have at most `max_bytes` of cells.
    pub fn new(max_bytes: u64) -> Self {
        Loader { filter: None, max_bytes, next: HEAD, end: HEAD, pieces: 0, is_ended: false }
    }

    /// Takes a piece and its number; (0, nothing) ends a dump.
    pub fn push(&mut self, number: i64, bytes: &[u8]) -> Result<()> {
        self.pieces += 1;
        let (pieces, next) = (self.pieces, self.next);
        if self.is_ended {
            return Err(refuse::<T>(format!("piece {pieces} follows the one that ends the dump")));
        }
        let Some(filter) = &mut self.filter else {
            if number != HEAD {
                return Err(refuse::<T>(format!("the number of its first piece, the header, is {number}, not 1")));
            }
            return self.take_header(bytes);
        };
        if number == 0 && bytes.is_empty() {
            self.is_ended = true;
            return Ok(());
        }
        let start = i64::try_from(bytes.len()).ok().and_then(|len| number.checked_sub(len));
        if bytes.is_empty() || start != Some(next) {
            let why = format!("the number of piece {pieces} is {number} with {} bytes", bytes.len());
            return Err(refuse::<T>(format!("{why}, and the next byte is {next}")));
        }
        if number > self.end {
            let most = self.end - next;
            return Err(refuse::<T>(format!("piece {pieces} has {} bytes, and {most} are missing", bytes.len())));
        }
        filter.load_piece(number, bytes).map_err(|error| match error {
            Error::Format(why) => refuse::<T>(format!("piece {pieces}: {why}")),
            error => error,
        })?;
        self.next = number;
        Ok(())
    }

    fn take_header(&mut self, header: &[u8]) -> Result<()> {
        let filter = T::of_header(header, self.max_bytes).map_err(|error| match error {
            Error::Memory(why) => Error::Memory(format!("{why}; raise max_bytes if you trust the dump")),
            _ => refuse::<T>(T::explain_header(header)),
        })?;
        let bytes = filter.runs().fold(0u64, |sum, run| sum.saturating_add(run.len() as u64));
        self.end = i64::try_from(bytes)
            .ok()
            .and_then(|bytes| bytes.checked_add(HEAD))
            .ok_or_else(|| refuse::<T>(format!("it states {bytes} bytes, more than the numbers of pieces reach")))?;
        self.filter = Some(filter);
        Ok(())
    }

    /// The filter, if all pieces have arrived.
    pub fn finish(self) -> Result<T> {
        let Some(filter) = self.filter else { return Err(refuse::<T>("it has no header")) };
        if self.next != self.end {
            let (there, all) = (self.next - HEAD, self.end - HEAD);
            return Err(refuse::<T>(format!("it ends after {there} of the {all} bytes that its header states")));
        }
        Ok(filter)
    }
}

/// The filter in the bytes of one file; they are read once, and nothing is allocated that has not been read.
pub fn read<T: Dumpable>(mut source: Source<'_>, max_bytes: u64) -> Result<T> {
    let (format, len) = (T::FORMAT, source.len());
    let head = source.head();
    let header_len = T::header_len(head).filter(|len| *len <= head.len());
    let header = &head[..header_len.unwrap_or(FIRST).min(head.len())];
    let refused = || refuse::<T>(T::explain_header(header));
    let Some(stated) = header_len.and(T::parse_total_len(head)) else { return Err(refused()) };
    if stated != len {
        let (head, present) = (header.len() as u64, len - header.len() as u64);
        let stated = stated - head;
        return Err(refuse::<T>(format!("its header states {stated} bytes of cells, and {present} follow it")));
    }
    let mut loader = Loader::<T>::new(max_bytes);
    loader.take_header(header)?;
    source.skip_head(header.len());
    let runs: Vec<u64> = loader.filter.iter().flat_map(|filter| filter.runs().map(|run| run.len() as u64)).collect();
    for run in runs {
        let mut left = run;
        while left > 0 {
            let portion = source.read_next(format, left.min(PORTION))?;
            left -= portion.len() as u64;
            loader.push(loader.next + portion.len() as i64, &portion)?;
        }
    }
    loader.finish()
}

/// Writes the header and all cells, one piece after the other.
pub fn write<T: Dumpable>(filter: &T, out: &mut dyn Write) -> std::io::Result<()> {
    out.write_all(&filter.dump_header())?;
    let mut number = HEAD;
    while let Some((next, piece)) = filter.dump_piece(number) {
        out.write_all(&piece)?;
        number = next;
    }
    Ok(())
}

/// Bytes that [`write`] writes.
pub fn len_written<T: Dumpable>(filter: &T) -> u64 {
    filter.dump_header().len() as u64 + filter.runs().map(|run| run.len() as u64).sum::<u64>()
}

/// The filter in the bytes of a file of ours, if all of its pieces had arrived when it was saved.
pub fn from_file<T: Dumpable>(bytes: &[u8], max_bytes: u64) -> Result<T> {
    let filter = T::of_file(bytes, max_bytes)?;
    if filter.runs().any(|run| run.arrived().len() < run.len()) {
        return Err(refuse::<T>("it was saved before all pieces of its dump had arrived"));
    }
    Ok(filter)
}

/// True if both have the same header and cells.
pub fn equals<T: Dumpable>(one: &T, other: &T) -> bool {
    // Cells that have not arrived are zeros.
    let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    one.dump_header() == other.dump_header()
        && one.runs().zip(other.runs()).all(|(a, b)| {
            let (a, b) = (a.arrived(), b.arrived());
            let both = a.len().min(b.len());
            a[..both] == b[..both] && is_zero(&a[both..]) && is_zero(&b[both..])
        })
}

/// What `SCANDUMP` answers to `number`: the header to 0, then a piece and its number, and (0, nothing) at the end.
pub fn scan<T: Dumpable>(filter: &T, number: i64) -> (i64, std::borrow::Cow<'_, [u8]>) {
    if number == 0 {
        return (HEAD, filter.dump_header().into());
    }
    filter.dump_piece(number).unwrap_or((0, (&[][..]).into()))
}

/// A filter that is asked by digests.
pub trait Membership: Dumpable {
    /// How its keys are hashed.
    const HASHING: Hashing;
    /// True for a key that may have been added.
    fn has(&self, digest: Digest) -> bool;
    /// Adds a key: true if it was new, or added once more.
    fn put(&mut self, digest: Digest) -> Result<bool>;
}

impl Membership for Chain {
    const HASHING: Hashing = Hashing::of_bytes(Rule::RedisBloom);
    #[inline]
    fn has(&self, digest: Digest) -> bool {
        self.contains(digest)
    }
    #[inline]
    fn put(&mut self, digest: Digest) -> Result<bool> {
        self.add(digest)
    }
}

impl Membership for Cuckoo {
    const HASHING: Hashing = Hashing::of_bytes(Rule::RedisCuckoo);
    #[inline]
    fn has(&self, [hash, _]: Digest) -> bool {
        self.contains(hash)
    }
    #[inline]
    fn put(&mut self, [hash, _]: Digest) -> Result<bool> {
        let is_new = !self.contains(hash);
        self.add(hash).map(|()| is_new)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{bloom, cuckoo};
    use super::*;
    use crate::foreign::formats;

    fn chain() -> Result<Chain> {
        let mut chain = Chain::construct(10, 0.01, 2, true)?;
        (0..100u32).try_for_each(|number| chain.add(bloom::hash(&number.to_le_bytes())).map(drop))?;
        Ok(chain)
    }

    fn tables() -> Result<Cuckoo> {
        let mut tables = Cuckoo::construct(cuckoo::Shape::new(8, 2, 20, 2)?)?;
        (0..100u32).try_for_each(|number| tables.add(cuckoo::hash(&number.to_le_bytes())))?;
        Ok(tables)
    }

    fn bytes<T: Dumpable>(filter: &T) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(filter, &mut bytes).unwrap_or_default();
        bytes
    }

    fn file<T: Dumpable>(filter: &T) -> Vec<u8> {
        let (container, mut bytes) = (filter.in_container(), Vec::new());
        container.write_with(&container.head().unwrap_or_default(), &mut bytes).unwrap_or_default();
        bytes
    }

    fn check<T: Dumpable>(filter: &T) -> Result<()> {
        let data = bytes(filter);
        let len = data.len() as u64;
        assert_eq!(len_written(filter), len);
        let read = |bytes: &[u8], most| read::<T>(Source::of(bytes), most);
        assert_eq!(bytes(&read(&data, len)?), data);
        assert_eq!(formats::detect(&data, len).map(|format| format.name), Some(T::FORMAT.name));
        for cut in 0..data.len() {
            assert!(read(&data[..cut], u64::MAX).is_err(), "{cut}");
            let short = Source::new(&data[..cut], len).map_err(|error| Error::Io(error, "test".into()))?;
            assert!(super::read::<T>(short, u64::MAX).is_err(), "{cut}");
        }
        assert!(read(&[&data[..], &[0]].concat(), u64::MAX).is_err());
        assert!(matches!(read(&data, 10), Err(Error::Memory(_))));
        let mut pieces = Vec::new();
        let mut number = 0;
        loop {
            let (next, piece) = scan(filter, number);
            pieces.push((next, piece.into_owned()));
            number = next;
            if next == 0 {
                break;
            }
        }
        let load = |pieces: &[(i64, Vec<u8>)]| {
            let mut loader = Loader::<T>::new(u64::MAX);
            pieces.iter().try_for_each(|(number, piece)| loader.push(*number, piece))?;
            loader.finish()
        };
        assert_eq!(bytes(&load(&pieces)?), data);
        assert_eq!(bytes(&load(&pieces[..pieces.len() - 1])?), data);
        for lost in 0..pieces.len() - 1 {
            let rest: Vec<_> =
                pieces.iter().enumerate().filter(|(at, _)| *at != lost).map(|(_, it)| it.clone()).collect();
            assert!(load(&rest).is_err(), "{lost}");
            let mut swapped = pieces.clone();
            swapped.swap(lost, lost + 1);
            assert!(load(&swapped).is_err(), "{lost}");
            let mut twice = pieces.clone();
            twice.insert(lost, pieces[lost].clone());
            assert!(load(&twice).is_err(), "{lost}");
        }
        let mut part = T::of_header(&filter.dump_header(), u64::MAX)?;
        part.load_piece(2, &pieces[1].1[..1])?;
        assert!(from_file::<T>(&file(filter), len).is_ok() && from_file::<T>(&file(&part), len).is_err());
        for lie in [i64::MIN, -1, 2, i64::MAX] {
            let mut lies = pieces.clone();
            lies[1].0 = lie;
            assert!(load(&lies).is_err(), "{lie}");
        }
        Ok(())
    }

    #[test]
    fn dumps_lead_back_and_every_piece_that_lies_is_refused() -> Result<()> {
        check(&chain()?)?;
        check(&tables()?)
    }

    #[test]
    fn errors_name_the_field_of_a_header() -> Result<()> {
        let (chain, tables) = (chain()?.header(), tables()?.header());
        let why = |of: &dyn Fn(&[u8]) -> String, header: &[u8], at: usize| {
            let mut lie = header.to_vec();
            lie[at] ^= 0x41;
            of(&lie)
        };
        let bloom = Chain::explain_header;
        for (at, field) in [(0, "items"), (8, "layers"), (12, "options"), (20, "bytes"), (28, "bits"), (36, "items")] {
            assert!(why(&bloom, &chain, at).contains(field), "{at} {}", why(&bloom, &chain, at));
        }
        for (at, field) in [(51, "error"), (59, "bits per entry"), (60, "hashes"), (72, "rounding")] {
            assert!(why(&bloom, &chain, at).contains(field), "{at} {}", why(&bloom, &chain, at));
        }
        let cuckoo = Cuckoo::explain_header;
        for (at, field) in [(9, "buckets"), (33, "bucket size"), (24, "tables")] {
            assert!(why(&cuckoo, &tables, at).contains(field), "{at} {}", why(&cuckoo, &tables, at));
        }
        Ok(())
    }
}
