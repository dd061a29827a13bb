//! Records of text and of columns as keys of these filters, for the command line.

use fullbloom_core::cells::allocation::{reserve, zeroed};
use fullbloom_core::foreign::bits::Hashing;
use fullbloom_core::foreign::key_type::KeyType;
use fullbloom_core::foreign::redisbloom::bloom::Chain;
use fullbloom_core::foreign::redisbloom::cuckoo::Cuckoo;
use fullbloom_core::foreign::redisbloom::dump::Membership;
use fullbloom_core::foreign::rules::Digest;
use fullbloom_core::key::KeyHasher;
use fullbloom_core::text::select::{KeyType as LineType, KeyedRecords};
use pyo3::prelude::*;

use super::keys::refuse;
use super::target::Target;
use super::{ForeignCuckooFilter, ForeignFilter, ForeignScalableFilter, ForeignStaticFilter};
use crate::arrow::import;
use crate::arrow::meaning::Meaning;
use crate::dataframes::exports;
use crate::errors::{OrRaise, at, key_type};
use crate::locking::slices;

/// Keys for which a filter is kept locked: some 5 ms.
const PART: usize = 1 << 16;

/// `$work` with the lock and the hashing of a filter of another program; `None` for another object.
macro_rules! with_foreign {
    ($object:expr, $lock:ident, $hashing:ident => $work:expr) => {{
        let object = $object;
        if let Ok(filter) = object.cast::<ForeignFilter>() {
            let ($lock, $hashing) = (&filter.get().lock, filter.get().hashing);
            Some($work)
        } else if let Ok(filter) = object.cast::<ForeignStaticFilter>() {
            let ($lock, $hashing) = (&filter.get().lock, filter.get().hashing);
            Some($work)
        } else if let Ok(filter) = object.cast::<ForeignScalableFilter>() {
            let ($lock, $hashing) = (&filter.get().lock, Chain::HASHING);
            Some($work)
        } else if let Ok(filter) = object.cast::<ForeignCuckooFilter>() {
            let ($lock, $hashing) = (&filter.get().lock, Cuckoo::HASHING);
            Some($work)
        } else {
            None
        }
    }};
}

/// How a filter of another program hashes keys; `None` for another object.
pub(crate) fn hashing_of(filter: &Bound<'_, PyAny>) -> Option<Hashing> {
    with_foreign!(filter, _lock, hashing => hashing)
}

/// The type as which a filter of another program takes lines; `None` for another object.
pub(crate) fn type_of_lines(filter: &Bound<'_, PyAny>) -> Option<LineType> {
    Some(match hashing_of(filter)?.key_type() {
        KeyType::Long | KeyType::Int | KeyType::Hash | KeyType::Word => LineType::Integer,
        KeyType::Float | KeyType::Double => LineType::Float,
        KeyType::Any | KeyType::Bytes | KeyType::Utf16 | KeyType::Printed => LineType::Auto,
    })
}

/// Marks the keys with these digests that a filter of another program has; false for another object.
pub(crate) fn check(filter: &Bound<'_, PyAny>, digests: &[Digest], mask: &mut [u8]) -> bool {
    let py = filter.py();
    with_foreign!(filter, lock, hashing => {
        let parts = hashing.parts();
        for (digests, mask) in digests.chunks(PART * parts).zip(mask.chunks_mut(PART)) {
            lock.detach(py, |session| session.read(|filter| filter.contains_keys(digests, mask)));
        }
    })
    .is_some()
}

/// Adds the keys with these digests to a filter of another program, and marks those that were new; false for another object.
pub(crate) fn add(filter: &Bound<'_, PyAny>, digests: &[Digest], new: &mut [u8]) -> PyResult<bool> {
    let py = filter.py();
    let added = with_foreign!(filter, lock, hashing => {
        let parts = hashing.parts();
        slices::run_locked(lock, py, new.len(), |session, start| {
            let end = new.len().min(start + PART);
            let (digests, new) = (&digests[start * parts..end * parts], &mut new[start..end]);
            session.write(|filter| filter.add_keys(digests, Some(new)))?;
            Ok(end)
        })
    });
    added.map_or(Ok(false), |added| added.map(|()| true))
}

/// The rows of a column, each a record of `width` bytes; `keyed` gets a 1 for each row with a key.
pub(crate) fn hash_column(
    keys: &Bound<'_, PyAny>,
    hashing: &Hashing,
    width: usize,
    keyed: &mut Vec<u8>,
) -> PyResult<KeyedRecords> {
    let (py, parts) = (keys.py(), hashing.parts());
    let mut chunks = import::open(Meaning::Keys(KeyHasher::seeded(0)), keys, &exports::export_capsules(keys)?)?;
    let mut records = KeyedRecords::of_parts(parts);
    while let Some(chunk) = chunks.next(py)? {
        let (before, len) = (keyed.len(), chunk.source.len());
        let mut digests: Vec<Digest> = zeroed(len * parts).or_raise(py)?;
        reserve(keyed, len).or_raise(py)?;
        keyed.resize(before + len, 0);
        chunk.nulls.mark(0, &mut keyed[before..]);
        let valid = &keyed[before..];
        let (mut row, mut refused) = (0, None);
        let has_keys = chunk.source.each_key(0, len, &mut |domain, bytes| {
            let is_key = hashing.digest_parts(domain, bytes, &mut digests[row * parts..(row + 1) * parts]);
            if !is_key && valid[row] != 0 {
                refused.get_or_insert(row);
            }
            row += 1;
        });
        if !has_keys {
            return Err(key_type(
                py,
                "rows of several fields cannot be keys of other programs' filters; select one column",
            ));
        }
        if let Some(row) = refused {
            let got = format!("keys of type {}", chunk.source.domains());
            return Err(at(py, before + row, refuse(py, hashing, &got)));
        }
        for (row, digests) in digests.chunks_exact(parts).enumerate() {
            let end = (before + row + 1) * width;
            let pushed = if valid[row] != 0 { records.push_digests(end, digests) } else { records.push(end, None) };
            pushed.or_raise(py)?;
        }
    }
    Ok(records)
}
