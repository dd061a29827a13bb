//! Many keys, in any container, and the results in the same one.
//!
//! [`keys::batch`](crate::keys::batch) passes on a hash of 64 bits for each key; the digests of other programs are wider,
//! and computed from the bytes of the keys. Containers are read by the same code.

use std::marker::PhantomData;
use std::sync::Mutex;

use fullbloom_core::cells::allocation::{reserve, zeroed};
use fullbloom_core::foreign::bits::Hashing;
use fullbloom_core::foreign::rules::Digest;
use fullbloom_core::key::KeyHasher;
use fullbloom_core::parallel::workers;
use fullbloom_core::structure::HashSource;
use fullbloom_core::structure::batch::useful_threads;
use pyo3::ffi;
use pyo3::prelude::*;

use super::job::Job;
use super::keys::{digest_exact, digest_key, digest_parts, refuse};
use super::target::{Measure, Target};
use crate::arrow::export::Writer;
use crate::arrow::import::{self, Chunk};
use crate::arrow::meaning::Meaning;
use crate::cpython::{self, Items};
use crate::dataframes::exports::{self, Export, Missing};
use crate::dataframes::{queries, results};
use crate::errors::{OrRaise, at, key_type};
use crate::keys::buffer::{self, BufferView};
use crate::keys::refusals;
use crate::locking::biased_lock::BiasedLock;
use crate::locking::slices;
use crate::python_objects::answers;
use crate::python_objects::lists::ListBuilder;

/// Digests on the way from keys to bits: 16 KiB.
const CHUNK: usize = 1024;
/// Objects that are read while attached: 128 KiB of digests, 1 ms of work.
const OBJECTS: usize = 1 << 13;
/// Rows for which the filter stays locked: 1 to 3 ms.
const LOCKED: usize = 1 << 16;
/// With several threads more, so that starting them is 1 % of the work.
const LOCKED_THREADED: usize = 1 << 22;
/// Rows that a thread looks up at a time.
const PART: usize = 1 << 15;
/// Rows whose results are collected before they become part of a column; with several threads, [`LOCKED_THREADED`].
const PORTION: usize = 1 << 20;

/// Rows that several threads hash at a time, and one thread adds; a key of several digests counts as often.
const HASHED_THREADED: usize = 1 << 17;

/// A filter, and what a batch does with it: `A` is the type of a result.
pub(super) struct Batch<'a, F: Target, A: Measure = u8> {
    lock: &'a BiasedLock<F>,
    hashing: Hashing,
    job: Job,
    /// Threads that may hash and look up rows of columns. The filter is changed by one.
    threads: usize,
    results: PhantomData<A>,
}

/// Why a row has no digest; the first row is the least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RowError {
    /// A key of another type.
    Row(usize),
    /// The column has no single keys.
    Column,
}

impl<'a, F: Target, A: Measure> Batch<'a, F, A> {
    pub(super) fn new(lock: &'a BiasedLock<F>, hashing: Hashing, job: Job, threads: usize) -> Self {
        Batch { lock, hashing, job, threads, results: PhantomData }
    }

    /// Runs over `keys`; returns the results; None for a batch without results.
    pub(super) fn run<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = keys.py();
        cpython::learn(py);
        if let Some(items) = Items::of(keys) {
            return self.list(&items);
        }
        refusals::refuse_filter(keys)?;
        refusals::refuse_single(keys)?;
        if exports::supports_arrow(keys)? {
            return self.column(keys);
        }
        // SAFETY: a live object, and an attached thread.
        if unsafe { ffi::PyObject_CheckBuffer(keys.as_ptr()) } == 1
            && let BufferView::Column(column, _keep) = buffer::open(&KeyHasher::seeded(0), keys)?
        {
            let whole = Rows { source: &column, start: 0, before: 0, valid: None };
            if !self.is_answered() {
                self.rows(py, &whole, column.len(), None)?;
                return Ok(py.None().into_bound(py));
            }
            return answers::like_buffer(keys, column.len(), |out: &mut [A]| {
                self.rows(py, &whole, out.len(), Some(out))
            });
        }
        if let Some(rows) = queries::fetch(keys)? {
            return self.column(&rows);
        }
        queries::refuse(keys)?;
        let found = self.iterate(keys, None)?;
        if self.is_answered() { answers::like_objects(keys, found.answers) } else { Ok(py.None().into_bound(py)) }
    }

    fn is_answered(&self) -> bool {
        self.job != Job::Update
    }

    /// The job for digests of objects.
    fn digests(&self, py: Python<'_>, digests: &[Digest], out: Option<&mut [A]>) -> PyResult<()> {
        if self.job == Job::Check {
            let Some(out) = out else { return Ok(()) };
            self.lock.detach(py, |session| session.read(|filter| A::look(filter, digests, out)));
            return Ok(());
        }
        self.lock.detach(py, |session| session.write(|filter| A::change(filter, self.job, digests, out))).or_raise(py)
    }

    /// A list or a tuple.
    fn list<'py>(&self, items: &Items<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let (py, len) = (items.keys.py(), items.keys.len()?);
        let parts = self.hashing.parts();
        let most = (OBJECTS / parts).min(len);
        let mut digests: Vec<Digest> = zeroed(most * parts).or_raise(py)?;
        let mut outs = zeroed(if self.is_answered() { most } else { 0 }).or_raise(py)?;
        let mut answer = A::start_list(py, if self.is_answered() { len } else { 0 })?;
        let mut start = 0;
        while start < len {
            let room = most.min(len - start);
            let (count, error) = self.digest_items(items, start, &mut digests[..room * parts]);
            self.digests(py, &digests[..count * parts], self.is_answered().then(|| &mut outs[..count]))?;
            if self.is_answered() {
                answer.extend(&outs[..count])?;
            }
            if let Some(error) = error {
                return Err(at(py, start + count, error));
            }
            py.check_signals()?;
            start += room;
            if count < room {
                break; // the list shrank while a key's own code ran
            }
        }
        if self.is_answered() { answer.finish() } else { Ok(py.None().into_bound(py)) }
    }

    /// Digests the items from `start` on until `out` is full, the list ends, or a key is refused.
    fn digest_items(&self, items: &Items<'_, '_>, start: usize, out: &mut [Digest]) -> (usize, Option<PyErr>) {
        let (mut done, parts) = (0, self.hashing.parts());
        if parts > 1 {
            for out in out.chunks_exact_mut(parts) {
                match items.get(start + done).map(|key| digest_parts(&self.hashing, &key, out)) {
                    Some(Ok(())) => done += 1,
                    Some(Err(error)) => return (done, Some(error)),
                    None => break,
                }
            }
            return (done, None);
        }
        while done < out.len() {
            // SAFETY: keys of an exact class are hashed without running Python code; they are alive meanwhile.
            done += unsafe { items.fill(start + done, &mut out[done..], |key| digest_exact(&self.hashing, key)) };
            let Some(out) = out.get_mut(done) else { break };
            match items.get(start + done).map(|key| digest_key(&self.hashing, &key)) {
                Some(Ok(digest)) => *out = digest,
                Some(Err(error)) => return (done, Some(error)),
                None => break,
            }
            done += 1;
        }
        (done, None)
    }

    /// Any other iterable; `missing` items are skipped, and have no result.
    fn iterate(&self, keys: &Bound<'_, PyAny>, missing: Option<&Missing>) -> PyResult<Found<A>> {
        let (py, mut items, mut found) = (keys.py(), keys.try_iter()?, Found::default());
        let (mut digests, mut valid, mut outs): (Vec<Digest>, Vec<u8>, Vec<A>) = Default::default();
        let parts = self.hashing.parts();
        let most = OBJECTS / parts;
        reserve(&mut digests, most * parts).or_raise(py)?;
        reserve(&mut valid, most).or_raise(py)?;
        reserve(&mut outs, most).or_raise(py)?;
        loop {
            digests.clear();
            valid.clear();
            let mut error = None;
            while valid.len() < most && error.is_none() {
                let Some(item) = items.next() else { break };
                let is_key = item.and_then(|item| match missing {
                    Some(missing) if missing.is_null(&item) => Ok(false),
                    _ if parts == 1 => digest_key(&self.hashing, &item).map(|digest| {
                        digests.push(digest);
                        true
                    }),
                    _ => {
                        let start = digests.len();
                        digests.resize(start + parts, [0; 2]);
                        let digested = digest_parts(&self.hashing, &item, &mut digests[start..]);
                        digested.inspect_err(|_| digests.truncate(start)).map(|()| true)
                    }
                });
                match is_key {
                    Ok(is_key) => valid.push(is_key.into()),
                    Err(refused) => error = Some(refused),
                }
            }
            outs.clear();
            outs.resize(digests.len() / parts, A::default());
            self.digests(py, &digests, self.is_answered().then_some(&mut outs[..]))?;
            found.rows += valid.len();
            if self.is_answered() {
                found.extend(py, &outs, &valid)?;
            }
            if let Some(error) = error {
                return Err(at(py, found.rows, error));
            }
            if valid.len() < most {
                return Ok(found);
            }
            py.check_signals()?;
        }
    }

    /// A column or a table that supports the Arrow interface.
    fn column<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = keys.py();
        let capsules = match exports::export(keys)? {
            Export::Capsules(capsules) => capsules,
            Export::Objects(objects, missing) => {
                let found = self.iterate(&objects, Some(&missing))?;
                if !self.is_answered() {
                    return Ok(py.None().into_bound(py));
                }
                let mut column = Writer::with_capacity::<A>(py, found.rows, true)?;
                column.append(&found.answers, &found.valid);
                return answers::like_arrow::<A>(keys, vec![column.finish::<A>()], false);
            }
            Export::Array(values) => return results::wrap_in_series(keys, self.run(&values)?),
        };
        let mut chunks = import::open(Meaning::Keys(KeyHasher::seeded(0)), keys, &capsules)?;
        let mut parts = Vec::new();
        let mut before = 0;
        while let Some(chunk) = chunks.next(py)? {
            parts.extend(self.chunk(py, &chunk, before)?);
            before += chunk.source.len();
            py.check_signals()?;
        }
        if self.is_answered() {
            answers::like_arrow::<A>(keys, parts, chunks.streamed)
        } else {
            Ok(py.None().into_bound(py))
        }
    }

    /// One chunk of a column, `before` rows after its beginning, a portion at a time.
    fn chunk(&self, py: Python<'_>, chunk: &Chunk, before: usize) -> PyResult<Option<crate::arrow::ArrowColumn>> {
        let (len, nullable) = (chunk.source.len(), chunk.has_nulls());
        let portion = if self.threads > 1 { LOCKED_THREADED } else { PORTION };
        let mut column = self.is_answered().then(|| Writer::with_capacity::<A>(py, len, nullable)).transpose()?;
        let mut marks: Vec<u8> = zeroed(if nullable { portion.min(len) } else { 0 }).or_raise(py)?;
        let mut outs: Vec<A> = zeroed(if self.is_answered() { portion.min(len) } else { 0 }).or_raise(py)?;
        for start in (0..len).step_by(portion) {
            let count = portion.min(len - start);
            let valid = marks.get_mut(..count).unwrap_or_default();
            slices::detach_if_long(py, valid.len(), || chunk.nulls.mark(start, valid));
            let out = outs.get_mut(..count).unwrap_or_default();
            let valid = &*valid;
            let rows = Rows { source: &*chunk.source, start, before, valid: nullable.then_some(valid) };
            self.rows(py, &rows, count, self.is_answered().then_some(&mut *out))?;
            if let Some(column) = &mut column {
                slices::detach_if_long(py, count, || column.append(out, valid));
            }
        }
        Ok(column.map(Writer::finish::<A>))
    }

    /// `count` rows of a column.
    fn rows(&self, py: Python<'_>, rows: &Rows<'_>, count: usize, out: Option<&mut [A]>) -> PyResult<()> {
        let refused = match (self.job, out) {
            (Job::Check, Some(out)) => self.check_rows(py, rows, out),
            (Job::Check, None) => Ok(None),
            (_, out) => self.change_rows(py, rows, count, out),
        };
        match refused? {
            None => Ok(()),
            Some(RowError::Row(row)) => {
                let got = rows.source.domains().to_string();
                Err(at(py, rows.before + rows.start + row, refuse(py, &self.hashing, &format!("keys of type {got}"))))
            }
            Some(RowError::Column) => {
                Err(key_type(py, "rows of several fields cannot be keys of other programs' filters; pass one column"))
            }
        }
    }

    /// Looks up a row for each of `out`; returns the first that was refused.
    fn check_rows(&self, py: Python<'_>, rows: &Rows<'_>, out: &mut [A]) -> PyResult<Option<RowError>> {
        let count = out.len();
        let locked = if self.threads > 1 { LOCKED_THREADED } else { LOCKED / self.hashing.parts() };
        let refused = Mutex::new(None);
        slices::run_locked(self.lock, py, count, |session, first| {
            let end = count.min(first + locked);
            let (out, threads) = (&mut out[first..end], useful_threads(self.threads, end - first));
            let check = |filter: &F, start: usize, out: &mut [A]| {
                if let Err(why) = self.check_part(filter, rows, start, out) {
                    let mut refused = workers::lock(&refused);
                    *refused = Some(refused.map_or(why, |other: RowError| other.min(why)));
                }
            };
            session.read(|filter| {
                if threads == 1 {
                    return check(filter, first, out);
                }
                let parts = out.chunks_mut(PART).enumerate();
                workers::queue(parts, threads, |(i, out)| check(filter, first + i * PART, out));
            });
            Ok(if workers::lock(&refused).is_some() { count } else { end })
        })?;
        Ok(*workers::lock(&refused))
    }

    /// Looks up the rows from `start` on, one for each of `out`.
    fn check_part(&self, filter: &F, rows: &Rows<'_>, start: usize, out: &mut [A]) -> Result<(), RowError> {
        if let Some(words) = rows.words(start, out.len())
            && A::look_words(filter, words, out)
        {
            return Ok(());
        }
        let (mut digests, parts) = ([[0; 2]; CHUNK], self.hashing.parts());
        let most = CHUNK / parts;
        for (i, out) in out.chunks_mut(most).enumerate() {
            let digests = &mut digests[..out.len() * parts];
            rows.digest(&self.hashing, start + i * most, digests)?;
            A::look(filter, digests, out);
        }
        Ok(())
    }

    /// Changes the filter by `count` rows up to one that is refused, which it returns.
    fn change_rows(
        &self,
        py: Python<'_>,
        rows: &Rows<'_>,
        count: usize,
        mut out: Option<&mut [A]>,
    ) -> PyResult<Option<RowError>> {
        let (mut refused, parts) = (None, self.hashing.parts());
        let threads = useful_threads(self.threads, count);
        let most = if threads > 1 { HASHED_THREADED / parts } else { CHUNK / parts };
        let locked = most.max(LOCKED / parts);
        let mut digests: Vec<Digest> = zeroed(most.min(count) * parts).or_raise(py)?;
        slices::run_locked(self.lock, py, count, |session, first| {
            let end = count.min(first + locked);
            for start in (first..end).step_by(most) {
                let count_here = most.min(end - start);
                let digests = &mut digests[..count_here * parts];
                let filled = self.hash_rows(rows, start, digests, threads);
                let known = match filled {
                    Ok(()) => count_here,
                    Err(RowError::Row(row)) => row - start,
                    Err(RowError::Column) => 0,
                };
                let out = out.as_deref_mut().map(|out| &mut out[start..start + known]);
                self.change_by_known(session, &digests[..known * parts], rows.valid_from(start, known), out)?;
                if let Err(why) = filled {
                    refused = Some(why);
                    return Ok(count);
                }
            }
            Ok(end)
        })?;
        Ok(refused)
    }

    /// Fills `out` with the digests of the rows from `start` on, on several threads; the first row that was refused.
    fn hash_rows(&self, rows: &Rows<'_>, start: usize, out: &mut [Digest], threads: usize) -> Result<(), RowError> {
        if threads == 1 {
            return rows.digest(&self.hashing, start, out);
        }
        let (refused, parts) = (Mutex::new(None), self.hashing.parts());
        let rows_each = (out.len() / parts).div_ceil(4 * threads).max(1);
        workers::queue(out.chunks_mut(rows_each * parts).enumerate(), threads, |(i, out)| {
            if let Err(why) = rows.digest(&self.hashing, start + i * rows_each, out) {
                let mut refused = workers::lock(&refused);
                *refused = Some(refused.map_or(why, |other: RowError| other.min(why)));
            }
        });
        workers::lock(&refused).map_or(Ok(()), Err)
    }

    /// Changes the filter by rows whose digests are known; nulls are skipped.
    fn change_by_known(
        &self,
        session: &crate::locking::biased_lock::Session<'_, F>,
        digests: &[Digest],
        valid: Option<&[u8]>,
        mut out: Option<&mut [A]>,
    ) -> fullbloom_core::Result<()> {
        let job = self.job;
        let Some(valid) = valid else { return session.write(|filter| A::change(filter, job, digests, out)) };
        session.write(|filter| {
            let keys = digests.chunks_exact(self.hashing.parts()).enumerate();
            for (i, key) in keys.filter(|(i, _)| valid[*i] != 0) {
                A::change(filter, job, key, out.as_deref_mut().map(|out| &mut out[i..=i]))?;
            }
            Ok(())
        })
    }
}

/// Rows of a column, which begin at `start`, `before` rows of the batch before it; `valid` has a 0 for each null.
struct Rows<'a> {
    source: &'a dyn HashSource,
    start: usize,
    before: usize,
    valid: Option<&'a [u8]>,
}

impl Rows<'_> {
    fn valid_from(&self, start: usize, count: usize) -> Option<&[u8]> {
        self.valid.map(|valid| &valid[start..start + count])
    }

    /// `count` rows from `start` on, if they are integers of 64 bits.
    fn words(&self, start: usize, count: usize) -> Option<&[[u8; 8]]> {
        let first = self.start + start;
        self.source.as_words().map(|words| &words[first..first + count])
    }

    /// Fills `out` with the digests of the rows from `start` on; those of nulls are any.
    fn digest(&self, hashing: &Hashing, start: usize, out: &mut [Digest]) -> Result<(), RowError> {
        let (first, parts) = (self.start + start, hashing.parts());
        if parts == 1
            && let Some(words) = self.words(start, out.len())
            && hashing.digest_words(words, out)
        {
            return Ok(());
        }
        let is_valid = |i: usize| self.valid.is_none_or(|valid| valid[start + i] != 0);
        let (mut row, mut refused) = (0, None);
        let has_keys = self.source.each_key(first, out.len() / parts, &mut |domain, bytes| {
            let is_key = if parts == 1 {
                hashing.digest(domain, bytes).map(|digest| out[row] = digest).is_some()
            } else {
                hashing.digest_parts(domain, bytes, &mut out[row * parts..(row + 1) * parts])
            };
            if !is_key && refused.is_none() && is_valid(row) {
                refused = Some(RowError::Row(start + row));
            }
            row += 1;
        });
        if has_keys { refused.map_or(Ok(()), Err) } else { Err(RowError::Column) }
    }
}

/// The results for Python objects, one a row if results are wanted.
#[derive(Default)]
struct Found<A> {
    rows: usize,
    answers: Vec<A>,
    valid: Vec<u8>,
}

impl<A: Measure> Found<A> {
    /// Appends rows: `outs` are the results of those that are `valid`.
    fn extend(&mut self, py: Python<'_>, outs: &[A], valid: &[u8]) -> PyResult<()> {
        reserve(&mut self.answers, valid.len()).or_raise(py)?;
        reserve(&mut self.valid, valid.len()).or_raise(py)?;
        self.valid.extend_from_slice(valid);
        let mut outs = outs.iter();
        let mut next = |valid: &u8| if *valid == 0 { A::default() } else { outs.next().copied().unwrap_or_default() };
        self.answers.extend(valid.iter().map(&mut next));
        Ok(())
    }
}
