//! Records with a chosen key: read and hashed without the GIL, then looked up or added.

use std::ops::Range;
use std::sync::Arc;

use fullbloom_core::cells::allocation::{reserve, zeroed};
use fullbloom_core::key::{KeyDomains, KeyHasher};
use fullbloom_core::structure::{Addable, Filter};
use fullbloom_core::text::add_marked;
use fullbloom_core::text::select::{self, Hashing, KeyType, KeyedRecords as Core, Selection as CoreSelection, Table};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::{MaybeBytes, create_part, not_a_filter};
use crate::arrow::import;
use crate::arrow::meaning::Meaning;
use crate::build::key_buffer::KeyBuffer;
use crate::classes::{with_filter, with_lookup_filter};
use crate::dataframes::exports;
use crate::errors::{OrRaise, parameter};
use crate::foreign::records as foreign;
use crate::locking::biased_lock::BiasedLock;
use crate::locking::slices;
use crate::operations::warnings::{expect, warn_overfull};
use crate::parameters;
use crate::python_objects::bytes;

/// Keys for which a filter is kept locked: some 5 ms.
const PART: usize = 1 << 16;

/// Bytes of the number of a row.
const ROW_NUMBER: usize = size_of::<u32>();

/// (records selected, their bytes, the bytes of the others)
pub(super) type Parts<'py> = (usize, MaybeBytes<'py>, MaybeBytes<'py>);

mod arguments {
    crate::parameters::readers!(
        kept: "bool"; dropped: "bool"; found: "bool"; absent: "bool"; once: "bool"; skip: "bool"; quotes: "bool";
    );
}

/// Where the keys of records are, and how a filter hashes them.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct Selection {
    core: Arc<CoreSelection>,
}

fn read_texts(name: &str, values: &Bound<'_, PyList>) -> PyResult<Vec<String>> {
    values.iter().map(|value| parameters::text(name, &value).map(str::to_owned)).collect()
}

fn read_type(py: Python<'_>, name: &str) -> PyResult<KeyType> {
    let found = KeyType::NAMED.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
    let known = KeyType::NAMED.map(|(known, _)| known).join(", ");
    found.ok_or_else(|| parameter(py, format!("a key type is one of {known}, got {name:?}")))
}

fn read_types(names: &Bound<'_, PyList>) -> PyResult<Vec<KeyType>> {
    read_texts("types", names)?.iter().map(|name| read_type(names.py(), name)).collect()
}

/// How a filter or a [`KeyBuffer`] hashes keys.
fn hashing_of(filter: &Bound<'_, PyAny>) -> PyResult<Hashing> {
    if let Ok(buffer) = filter.cast::<KeyBuffer>() {
        return Ok(Hashing::Own(buffer.get().hasher));
    }
    if let Some(hashing) = foreign::hashing_of(filter) {
        return Ok(Hashing::Foreign(hashing));
    }
    hasher_of(filter).map(Hashing::Own)
}

/// The hasher of a filter of fullbloom.
fn hasher_of(filter: &Bound<'_, PyAny>) -> PyResult<KeyHasher> {
    with_lookup_filter!(filter, lock => Ok(lock.read(filter.py(), |filter| *filter.hasher())))
        .unwrap_or_else(|| not_a_filter(filter))
}

/// The records of whole lines, which are keys of another program's filter; a line that cannot be a key is an error.
pub(super) fn read_lines<'py>(filter: &Bound<'py, PyAny>, block: &[u8]) -> PyResult<KeyedRecords> {
    let py = filter.py();
    let selection = Selection::lines(filter, None)?;
    let records = selection.read(&bytes::create(py, block)?, false)?;
    match records.fault(0) {
        Some(why) => Err(fullbloom_core::Error::format(why)).or_raise(py),
        None => Ok(records),
    }
}

#[pymethods]
impl Selection {
    /// Whole lines: each is its own key, of the type `kind`; texts if that is None, or the type of the keys of another
    /// program's filter.
    #[staticmethod]
    #[pyo3(signature = (filter: "_Filter | KeyBuffer", kind: "str | None" = None) -> "Selection")]
    pub(super) fn lines(filter: &Bound<'_, PyAny>, kind: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let kind = match kind {
            Some(kind) => read_type(filter.py(), parameters::text("kind", kind)?)?,
            None => foreign::type_of_lines(filter).unwrap_or(KeyType::Auto),
        };
        Ok(Selection { core: Arc::new(CoreSelection::lines(hashing_of(filter)?, kind)) })
    }

    /// Cells of CSV or TSV, of `columns` from 0 on; with `quotes`, a quote at the beginning of a cell opens a text.
    #[staticmethod]
    #[pyo3(signature = (filter: "_Filter | KeyBuffer", columns: "list[int]", types: "list[str]", *, delimiter: "str",
                        quotes: "bool" = true) -> "Selection")]
    fn rows(
        filter: &Bound<'_, PyAny>,
        columns: &Bound<'_, PyList>,
        types: &Bound<'_, PyList>,
        delimiter: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::quotes)] quotes: bool,
    ) -> PyResult<Self> {
        let py = filter.py();
        let columns: PyResult<Vec<usize>> = columns
            .iter()
            .map(|column| parameters::parse_whole("columns", &column, 0).map(|column| column as usize))
            .collect();
        let &[delimiter] = parameters::text("delimiter", delimiter)?.as_bytes() else {
            return Err(parameter(py, "delimiter must be one byte of ASCII"));
        };
        let (hashing, table) = (hashing_of(filter)?, Table { delimiter, quotes });
        let core = CoreSelection::rows(hashing, table, &columns?, &read_types(types)?).or_raise(py)?;
        Ok(Selection { core: Arc::new(core) })
    }

    /// Values of JSON lines, of dotted `names`.
    #[staticmethod]
    #[pyo3(signature = (filter: "_Filter | KeyBuffer", names: "list[str]", types: "list[str]") -> "Selection")]
    fn objects(filter: &Bound<'_, PyAny>, names: &Bound<'_, PyList>, types: &Bound<'_, PyList>) -> PyResult<Self> {
        let (hashing, names) = (hashing_of(filter)?, read_texts("names", names)?);
        let core = CoreSelection::objects(hashing, &names, &read_types(types)?).or_raise(filter.py())?;
        Ok(Selection { core: Arc::new(core) })
    }

    /// The end of the last whole record of `block`, which begins with a record; 0 if no record ends in it.
    #[pyo3(signature = (block: "bytes") -> "int")]
    fn cut(&self, block: &Bound<'_, PyBytes>) -> usize {
        let bytes = block.as_bytes();
        block.py().detach(|| self.core.find_end(bytes))
    }

    /// The records of a block of whole records. A malformed record raises FormatError, or is counted with `skip`.
    #[pyo3(signature = (block: "bytes", *, skip: "bool" = false) -> "KeyedRecords")]
    pub(super) fn read(
        &self,
        block: &Bound<'_, PyBytes>,
        #[pyo3(from_py_with = arguments::skip)] skip: bool,
    ) -> PyResult<KeyedRecords> {
        let (py, bytes) = (block.py(), block.as_bytes());
        let core = py.detach(|| self.core.read(bytes, skip)).or_raise(py)?;
        Ok(KeyedRecords { selection: Arc::clone(&self.core), block: block.clone().unbind(), core })
    }
}

/// The records of a block, with the hashes of their keys.
#[pyclass(frozen, module = "fullbloom._core")]
pub(crate) struct KeyedRecords {
    pub(super) selection: Arc<CoreSelection>,
    pub(super) block: Py<PyBytes>,
    pub(super) core: Core,
}

impl KeyedRecords {
    /// The bytes of the records that `mask` keeps, and of the others.
    pub(super) fn parts<'py>(&self, py: Python<'py>, mask: &[u8], kept: bool, dropped: bool) -> PyResult<Parts<'py>> {
        let block = self.block.as_bytes(py);
        let (mut kept, mut dropped) = (kept.then(Vec::new), dropped.then(Vec::new));
        let partition = py.detach(|| {
            kept.as_mut().map_or(Ok(()), |kept| reserve(kept, block.len()))?;
            self.core.part(block, mask, kept.as_mut(), dropped.as_mut())
        });
        partition.or_raise(py)?;
        let selected = mask.iter().map(|&mark| usize::from(mark)).sum::<usize>() + self.core.without_key();
        Ok((selected, create_part(py, kept)?, create_part(py, dropped)?))
    }

    /// Number of records.
    pub(super) fn count_lines(&self) -> u64 {
        self.core.len() as u64
    }

    /// Adds the keys of `range`; returns a mark for each that was new.
    pub(super) fn add_range<F: Addable>(
        &self,
        py: Python<'_>,
        lock: &BiasedLock<F>,
        range: Range<usize>,
        once: bool,
    ) -> PyResult<Vec<u8>> {
        let keys = self.core.hashes().len();
        let hashes = &self.core.hashes()[range.start.min(keys)..range.end.min(keys).max(range.start.min(keys))];
        let mut mask = zeroed(hashes.len()).or_raise(py)?;
        let (mut overfull, domains) = (false, self.core.domains());
        slices::run_locked(lock, py, hashes.len(), |session, start| {
            let end = hashes.len().min(start + PART);
            session.write(|filter| {
                let added = add_marked(filter, &hashes[start..end], &mut mask[start..end], once);
                filter.record_domains(domains, added)?;
                overfull |= filter.newly_overfull();
                Ok(end)
            })
        })?;
        if overfull {
            warn_overfull(py, lock, None)?;
        }
        Ok(mask)
    }
}

impl KeyedRecords {
    /// Marks the keys that a filter of fullbloom has.
    fn check_own(&self, filter: &Bound<'_, PyAny>, mask: &mut [u8]) -> PyResult<()> {
        let (py, hashes) = (filter.py(), self.core.hashes());
        with_lookup_filter!(filter, lock => {
            expect(py, lock, self.core.domains())?;
            slices::run_locked(lock, py, hashes.len(), |session, start| {
                let end = hashes.len().min(start + PART);
                session.read(|filter| filter.contains_hashes(&hashes[start..end], &mut mask[start..end]));
                Ok(end)
            })
        })
        .unwrap_or_else(|| not_a_filter(filter))
    }
}

#[pymethods]
impl KeyedRecords {
    /// Number of records, including those without a key and malformed ones.
    fn __len__(&self) -> usize {
        self.core.len()
    }

    /// Number of records without a key.
    #[getter]
    fn without_key(&self) -> usize {
        self.core.without_key()
    }

    /// Number of malformed records.
    #[getter]
    fn faults(&self) -> u64 {
        self.core.faults()
    }

    /// Number of lines of the block.
    #[getter]
    fn lines(&self) -> u64 {
        self.core.lines()
    }

    /// The error of the first malformed record and its line, with `before` lines in front of the block.
    #[pyo3(signature = (before: "int" = 0) -> "str | None")]
    pub(super) fn fault(&self, before: u64) -> Option<String> {
        self.core.first_fault().map(|(line, reason)| reason.at(before.saturating_add(*line)))
    }

    /// Adds every key; (records kept, their bytes, those of the others). Records with a new key, or without a key, are kept.
    /// With `once`, known keys are not added again: for structures in which copies take slots.
    #[pyo3(signature = (filter: "_Filter", *, once: "bool" = false, kept: "bool" = true, dropped: "bool" = false)
           -> "tuple[int, bytes | None, bytes | None]")]
    pub(super) fn add<'py>(
        &self,
        filter: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::once)] once: bool,
        #[pyo3(from_py_with = arguments::kept)] kept: bool,
        #[pyo3(from_py_with = arguments::dropped)] dropped: bool,
    ) -> PyResult<Parts<'py>> {
        let py = filter.py();
        let mut marks: Vec<u8> = zeroed(self.core.keys()).or_raise(py)?;
        if foreign::add(filter, self.core.digests(), &mut marks)? {
            return self.parts(py, &marks, kept, dropped);
        }
        let mask = with_filter!(filter, lock => self.add_range(py, lock, 0..usize::MAX, once))
            .unwrap_or_else(|| not_a_filter(filter))?;
        self.parts(py, &mask, kept, dropped)
    }

    /// Adds `count` keys from the key at `start` on; a mark for each that was new. Records without a key have no mark.
    #[pyo3(signature = (filter: "_Filter", start: "int", count: "int", *, once: "bool" = false) -> "bytes")]
    fn add_some<'py>(
        &self,
        filter: &Bound<'py, PyAny>,
        start: usize,
        count: usize,
        #[pyo3(from_py_with = arguments::once)] once: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (py, range) = (filter.py(), start..start.saturating_add(count));
        let mask = with_filter!(filter, lock => self.add_range(py, lock, range, once))
            .unwrap_or_else(|| not_a_filter(filter))?;
        bytes::create(py, &mask)
    }

    /// As `add`, for keys that were added and marked before.
    #[pyo3(signature = (marks: "bytes", *, kept: "bool" = true, dropped: "bool" = false)
           -> "tuple[int, bytes | None, bytes | None]")]
    fn part<'py>(
        &self,
        marks: &Bound<'py, PyBytes>,
        #[pyo3(from_py_with = arguments::kept)] kept: bool,
        #[pyo3(from_py_with = arguments::dropped)] dropped: bool,
    ) -> PyResult<Parts<'py>> {
        self.parts(marks.py(), marks.as_bytes(), kept, dropped)
    }

    /// Looks up every key; (records found, their bytes, those of the absent). A record without a key is absent.
    #[pyo3(signature = (filter: "_Filter", *, found: "bool" = true, absent: "bool" = false)
           -> "tuple[int, bytes | None, bytes | None]")]
    pub(super) fn check<'py>(
        &self,
        filter: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::found)] found: bool,
        #[pyo3(from_py_with = arguments::absent)] absent: bool,
    ) -> PyResult<Parts<'py>> {
        let py = filter.py();
        let mut mask = zeroed(self.core.keys()).or_raise(py)?;
        if !foreign::check(filter, self.core.digests(), &mut mask) {
            self.check_own(filter, &mut mask)?;
        }
        mask.iter_mut().for_each(|mark: &mut u8| *mark ^= 1);
        let (others, absent, found) = self.parts(py, &mask, absent, found)?;
        Ok((self.core.len() - self.core.faults() as usize - others, found, absent))
    }

    /// As `add`, without changing the filter; the last item has the marks of the new keys, for `remember`.
    #[pyo3(signature = (filter: "_Filter", *, kept: "bool" = true, dropped: "bool" = false)
           -> "tuple[int, bytes | None, bytes | None, bytes]")]
    fn select_new<'py>(
        &self,
        filter: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::kept)] kept: bool,
        #[pyo3(from_py_with = arguments::dropped)] dropped: bool,
    ) -> PyResult<(usize, MaybeBytes<'py>, MaybeBytes<'py>, Bound<'py, PyBytes>)> {
        let py = filter.py();
        let mask = with_filter!(filter, lock => {
            expect(py, lock, self.core.domains())?;
            lock.detach(py, |session| session.read(|filter| select::fresh(filter, self.core.hashes()))).or_raise(py)
        })
        .unwrap_or_else(|| not_a_filter(filter))?;
        let (selected, kept, dropped) = self.parts(py, &mask, kept, dropped)?;
        Ok((selected, kept, dropped, bytes::create(py, &mask)?))
    }

    /// All records, each after `new` if `marks` (from `select_new`) marks it, else after `old`.
    #[pyo3(signature = (marks: "bytes", new: "bytes", old: "bytes") -> "bytes")]
    fn label<'py>(
        &self,
        marks: &Bound<'py, PyBytes>,
        new: &Bound<'_, PyBytes>,
        old: &Bound<'_, PyBytes>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let py = marks.py();
        let block = self.block.as_bytes(py);
        bytes::create(
            py,
            &self.core.mark_records(block, marks.as_bytes(), new.as_bytes(), old.as_bytes()).or_raise(py)?,
        )
    }

    /// Adds the keys that `marks` marks, only those of the first `written` kept bytes if that is given; without marks, all.
    #[pyo3(signature = (filter: "_Filter", marks: "bytes | None" = None, written: "int | None" = None) -> "None")]
    fn remember(
        &self,
        filter: &Bound<'_, PyAny>,
        marks: Option<&Bound<'_, PyBytes>>,
        written: Option<usize>,
    ) -> PyResult<()> {
        let (py, hashes) = (filter.py(), self.core.hashes());
        let mut mask = marks.map_or(Vec::new(), |marks| marks.as_bytes().to_vec());
        mask.resize(hashes.len(), u8::from(marks.is_none()));
        if let Some(bytes) = written {
            self.core.limit(&mut mask, bytes);
        }
        let marked: Vec<u64> =
            hashes.iter().zip(&mask).filter(|(_, mark)| **mark != 0).map(|(hash, _)| *hash).collect();
        with_filter!(filter, lock => slices::run_locked(lock, py, marked.len(), |session, start| {
            let end = marked.len().min(start + PART);
            session.write(|filter| {
                let added = filter.add_hashes(&marked[start..end], None);
                filter.record_domains(self.core.domains(), added)
            }).map(|()| end)
        }))
        .unwrap_or_else(|| not_a_filter(filter))
    }
}

#[pymethods]
impl KeyBuffer {
    /// Appends the keys of records; records without a key are skipped.
    fn records(&self, py: Python<'_>, records: &KeyedRecords) -> PyResult<()> {
        self.record(records.core.domains());
        py.detach(|| self.push(records.core.hashes())).or_raise(py)
    }
}

#[pymethods]
impl KeyedRecords {
    /// The rows of an Arrow column of keys; a null is not a key. Their bytes are their numbers, 4 bytes each in native byte
    /// order: there is no text, so a second pass cannot compare it.
    #[staticmethod]
    #[pyo3(signature = (filter: "_Filter", keys: "object") -> "KeyedRecords")]
    fn of_column(filter: &Bound<'_, PyAny>, keys: &Bound<'_, PyAny>) -> PyResult<KeyedRecords> {
        let (py, hashing) = (filter.py(), hashing_of(filter)?);
        let mut keyed = Vec::<u8>::new();
        let core = match hashing {
            Hashing::Own(hasher) => Self::hash_column(keys, hasher, &mut keyed)?,
            Hashing::Foreign(hashing) => foreign::hash_column(keys, &hashing, ROW_NUMBER, &mut keyed)?,
        };
        let rows = u32::try_from(keyed.len()).map_err(|_| parameter(py, "a batch has fewer than 2^32 rows"))?;
        let mut numbers: Vec<u8> = zeroed(keyed.len() * ROW_NUMBER).or_raise(py)?;
        for (row, number) in (0..rows).zip(numbers.chunks_exact_mut(ROW_NUMBER)) {
            number.copy_from_slice(&row.to_ne_bytes());
        }
        let selection = Arc::new(CoreSelection::lines(hashing, KeyType::Auto));
        Ok(KeyedRecords { selection, block: bytes::create(py, &numbers)?.unbind(), core })
    }
}

impl KeyedRecords {
    /// The hashes of a column; `keyed` gets a 1 for each row with a key.
    fn hash_column(keys: &Bound<'_, PyAny>, hasher: KeyHasher, keyed: &mut Vec<u8>) -> PyResult<Core> {
        let py = keys.py();
        let mut chunks = import::open(Meaning::Keys(hasher), keys, &exports::export_capsules(keys)?)?;
        let (mut hashes, mut domains) = (Vec::<u64>::new(), KeyDomains::NONE);
        while let Some(chunk) = chunks.next(py)? {
            let (start, len) = (hashes.len(), chunk.source.len());
            reserve(&mut hashes, len).and_then(|()| reserve(keyed, len)).or_raise(py)?;
            hashes.resize(start + len, 0);
            keyed.resize(start + len, 0);
            chunk.nulls.mark(0, &mut keyed[start..]);
            if keyed[start..].iter().any(|&mark| mark != 0) {
                domains = domains.with(chunk.source.domains());
            }
            py.detach(|| chunk.source.fill(0, &mut hashes[start..]));
        }
        Core::of_rows(ROW_NUMBER, keyed, &hashes, domains).or_raise(py)
    }
}
