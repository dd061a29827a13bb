//! Batches of keys. Results are bytes: one byte per key, 1 or 0, or eight keys per byte, the first in the lowest bit.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::results::pack_bits;
use super::{Service, Versions, to_exception};
use crate::fault::{Code, Fault, Result};
use crate::json::{self, Body, Caps, Hashing};
use crate::kind::{Kind, value_if_present};
use crate::limits::Limits;
use crate::store::{Entry, Lsn, Store};
use fullbloom_core::key::{BaseHash, KeyDomains, KeyHasher};

#[derive(Clone, Copy)]
enum Form {
    /// One key per line.
    Lines,
    /// One key.
    One,
    /// Each key preceded by its length (4 bytes, little-endian).
    Packed,
    /// Hashes of 8 bytes each, little-endian, of keys of these domains.
    Hashes(KeyDomains),
    /// A JSON object with one key or several.
    Json,
    /// One JSON value per line.
    JsonLines,
}

fn parse_form(name: &str) -> Result<Form> {
    match name {
        "lines" => Ok(Form::Lines),
        "one" => Ok(Form::One),
        "packed" => Ok(Form::Packed),
        "hashes" => Ok(Form::Hashes(KeyDomains::HASHED)),
        "json" => Ok(Form::Json),
        "ndjson" => Ok(Form::JsonLines),
        _ => match name.strip_prefix("hashes of ").and_then(KeyDomains::from_name) {
            Some(domains) => Ok(Form::Hashes(domains)),
            None => Err(Fault::invalid("keys are lines, one, packed, hashes, hashes of a type, json or ndjson")),
        },
    }
}

/// Appends the hash of a text; refuses a text that is too long.
fn push_hash(entry: &Entry, limits: &Limits, key: &[u8], hashes: &mut Vec<u64>) -> Result<()> {
    Caps::from(limits).check_key(key.len())?;
    entry.keying.push(key, hashes);
    Ok(())
}

fn hash_one(entry: &Entry, limits: &Limits, key: &[u8]) -> Result<Vec<u64>> {
    let mut hashes = Vec::with_capacity(entry.keying.width());
    push_hash(entry, limits, key, &mut hashes)?;
    Ok(hashes)
}

/// One zero for each hashed key.
fn zeros_per_key<T: Clone + Default>(entry: &Entry, hashes: &[u64]) -> Vec<T> {
    vec![T::default(); hashes.len() / entry.keying.width()]
}

/// Calls `push` with each line. Lines end in `
/// ` or `\r
/// `; the last may lack its end.
fn each_line(caps: Caps, text: &[u8], mut push: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let (mut start, mut count) = (0, 0);
    while start < text.len() {
        let end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |at| start + at);
        let line = &text[start..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        caps.check_key(line.len())?;
        count += 1;
        if count > caps.keys {
            return Err(caps.too_many());
        }
        push(line)?;
        start = end + 1;
    }
    Ok(())
}

fn hash_lines(entry: &Entry, limits: &Limits, text: &[u8]) -> Result<Vec<u64>> {
    let most = limits.batch_keys * entry.keying.width();
    let mut hashes = Vec::with_capacity((text.len() / 16).min(most));
    if !entry.keying.is_pairs() {
        each_line(limits.into(), text, |line| {
            entry.keying.push(line, &mut hashes);
            Ok(())
        })?;
        return Ok(hashes);
    }
    // Each part has a limit of its own.
    let caps = Caps { key_bytes: 2 * limits.key_bytes + 1, ..limits.into() };
    each_line(caps, text, |line| {
        let tab = memchr::memchr(b'\t', line).ok_or_else(|| Fault::invalid("a line is an owner, a tab and a key"))?;
        push_hash(entry, limits, &line[..tab], &mut hashes)?;
        push_hash(entry, limits, &line[tab + 1..], &mut hashes)
    })?;
    Ok(hashes)
}

fn hash_packed(entry: &Entry, limits: &Limits, mut packed: &[u8]) -> Result<Vec<u64>> {
    let wrong = || Fault::invalid("packed keys are each 4 bytes of length, little-endian, and so many bytes");
    let most = limits.batch_keys * entry.keying.width();
    let mut hashes = Vec::new();
    while !packed.is_empty() {
        let (length, rest) = packed.split_first_chunk::<4>().ok_or_else(wrong)?;
        let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(wrong)?;
        push_hash(entry, limits, key, &mut hashes)?;
        if hashes.len() > most {
            return Err(Caps::from(limits).too_many());
        }
        packed = rest;
    }
    Ok(hashes)
}

/// How JSON keys of a filter are hashed; without `wait`, `None` while the filter is being changed.
fn key_hashing(entry: &Entry, wait: bool) -> Option<Hashing> {
    if !entry.keying.is_own() {
        return Some(Hashing::Foreign(entry.keying));
    }
    let hasher = if wait { entry.read() } else { entry.try_read()? }.hasher();
    Some(if entry.keying.is_pairs() { Hashing::Pairs(hasher) } else { Hashing::Own(hasher) })
}

/// Hashes the keys of a body; without `wait`, `None` while the filter is being changed.
fn hash_keys(store: &Store, entry: &Entry, form: Form, body: &[u8], wait: bool) -> Result<Option<Body>> {
    let limits = &store.options.limits;
    let domains = KeyDomains::TEXT;
    let whole = |words: Vec<u64>, domains: KeyDomains| {
        entry.keying.check_whole(words.len())?;
        Ok(Some(Body { words, domains, ..Body::default() }))
    };
    let texts = |words: Result<Vec<u64>>| words.and_then(|words| whole(words, domains));
    match form {
        Form::Json | Form::JsonLines => {
            let Some(hashing) = key_hashing(entry, wait) else { return Ok(None) };
            match form {
                Form::Json => json::body(body, &hashing, limits.into()).map(Some),
                _ => json::lines(body, &hashing, limits.into()).map(Some),
            }
        }
        Form::One => texts(hash_one(entry, limits, body)),
        Form::Lines => texts(hash_lines(entry, limits, body)),
        Form::Packed => texts(hash_packed(entry, limits, body)),
        Form::Hashes(domains) => {
            entry.check_hashes()?;
            let most = limits.batch_keys * entry.keying.width();
            whole(read_hashes(Caps { keys: most, ..limits.into() }, body)?, domains)
        }
    }
}

fn read_hashes(caps: Caps, body: &[u8]) -> Result<Vec<u64>> {
    let (words, rest) = body.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(Fault::invalid(format!("hashes have 8 bytes each, got {} bytes", body.len())));
    }
    if words.len() > caps.keys {
        return Err(caps.too_many());
    }
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// Hashes the keys of a body without values.
fn hash_unpaired(store: &Store, entry: &Entry, form: &str, body: &[u8]) -> Result<Body> {
    let body = hash_keys(store, entry, parse_form(form)?, body, true)?.unwrap_or_default();
    if body.values.is_some() {
        return Err(Fault::invalid("\"values\" come with add only"));
    }
    Ok(body)
}

/// The warning for a lookup of keys of a type that was never added. In-process filters warn once; the service attaches
/// the warning to every reply, because it does not know which client has seen it.
fn type_warning(filter: &dyn Kind, domains: KeyDomains) -> Option<String> {
    let surprise = filter.hasher().domains_mut().surprise(domains)?;
    Some(format!(
        "{surprise}; equal texts and numbers are different keys, so none of them is found: send keys of the type that \
         was added, in JSON or Arrow (a line of text/plain is text)"
    ))
}

/// Finds a filter. Hashes that were computed elsewhere fit only the filter with the number `of`.
fn find_filter(store: &Store, name: &str, of: Option<u64>) -> Result<Arc<Entry>> {
    let entry = store.filter(name.as_bytes())?;
    match of {
        Some(id) if id != entry.id => {
            Err(Fault::new(Code::Changed, "the filter was replaced while the keys were read; send them again"))
        }
        _ => Ok(entry),
    }
}

/// The results as bytes, the number of keys, the number of positive results, the kind of body ("one" key, "many" or
/// "pairs"), whether the filter exceeds its capacity, and the warning of [`type_warning`].
type Answers<'py> = (Bound<'py, PyBytes>, usize, u64, &'static str, bool, Option<String>);

/// The result of a change that would have had to wait: none, and no record to wait for.
const UNCHANGED: (Option<BatchResult>, Lsn) = (None, Lsn(0));

struct BatchResult {
    results: Vec<u8>,
    body_kind: &'static str,
    over: bool,
    warning: Option<String>,
}

fn body_kind(single: bool) -> &'static str {
    if single { "one" } else { "many" }
}

fn to_answers(py: Python<'_>, batch: BatchResult, pack: bool) -> Answers<'_> {
    let results = batch.results;
    let yes = results.iter().map(|&b| u64::from(b)).sum();
    let keys = results.len();
    let bytes = if pack { pack_bits(&results) } else { results };
    (PyBytes::new(py, &bytes), keys, yes, batch.body_kind, batch.over, batch.warning)
}

/// Numbers as bytes, 8 each, little-endian; and the kind of body.
type Numbers<'py> = (Bound<'py, PyBytes>, &'static str);
/// [`Numbers`], which keys have none (a byte each, 1 or 0; empty if all have one), and the warning of [`type_warning`].
type KeyNumbers<'py> = (Bound<'py, PyBytes>, &'static str, Bound<'py, PyBytes>, Option<String>);

fn numbers(py: Python<'_>, (numbers, single): (Vec<u64>, bool)) -> PyResult<Numbers<'_>> {
    let bytes = PyBytes::new_with(py, 8 * numbers.len(), |out| {
        let (words, _) = out.as_chunks_mut::<8>();
        words.iter_mut().zip(&numbers).for_each(|(word, number)| *word = number.to_le_bytes());
        Ok(())
    })?;
    Ok((bytes, body_kind(single)))
}

impl Service {
    /// A number for each key, which `read` writes; it returns which keys have none.
    fn read_numbers<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        form: &str,
        body: &[u8],
        of: Option<u64>,
        read: impl Send + FnOnce(&dyn Kind, &[u64], &mut [u64]) -> Result<Vec<u8>>,
    ) -> PyResult<KeyNumbers<'py>> {
        let (found, nulls, warning) = self.call(py, |store| {
            let entry = find_filter(store, name, of)?;
            let body = hash_unpaired(store, &entry, form, body)?;
            let mut numbers = zeros_per_key(&entry, &body.words);
            let filter = entry.read();
            let nulls = read(filter.as_ref(), &body.words, &mut numbers)?;
            let warning = type_warning(filter.as_ref(), body.domains);
            Ok(((numbers, body.single), nulls, warning))
        })?;
        let (bytes, body_kind) = numbers(py, found)?;
        Ok((bytes, body_kind, PyBytes::new(py, &nulls), warning))
    }
}

/// Hashes the keys of a body: bytes, 8 per word. `form` is "lines", "json", "ndjson" or "hashes"; the hash is that of
/// the key rule. Refuses values.
#[pyfunction]
#[pyo3(signature = (form, body, *, seed, secret, hash, most_keys, key_bytes))]
#[allow(clippy::too_many_arguments)] // keywords of Python
pub(super) fn hash_body<'py>(
    py: Python<'py>,
    form: &str,
    body: &[u8],
    seed: u64,
    secret: Option<[u8; 16]>,
    hash: &str,
    most_keys: usize,
    key_bytes: usize,
) -> PyResult<Numbers<'py>> {
    let work = || {
        let base = BaseHash::ALL
            .into_iter()
            .find(|base| base.name() == hash)
            .ok_or_else(|| Fault::invalid(format!("no hash is called {hash:?}")))?;
        let hasher = match &secret {
            Some(secret) => KeyHasher::keyed(seed, secret),
            None => KeyHasher::with_base(seed, base),
        };
        let caps = Caps { keys: most_keys, key_bytes };
        match parse_form(form)? {
            Form::Json => {
                let body = json::body(body, &Hashing::Own(hasher), caps)?;
                if body.values.is_some() {
                    return Err(Fault::new(
                        Code::Unsupported,
                        "a filter in Redis takes no values, and a static one has none to add",
                    ));
                }
                Ok((body.words, body.single))
            }
            Form::JsonLines => json::lines(body, &Hashing::Own(hasher), caps).map(|body| (body.words, false)),
            Form::Hashes(_) => read_hashes(caps, body).map(|words| (words, false)),
            _ => {
                let mut words = Vec::new();
                each_line(caps, body, |line| {
                    words.push(hasher.text(line));
                    Ok(())
                })?;
                Ok((words, false))
            }
        }
    };
    let done = py.detach(work).map_err(|fault| to_exception(py, &fault))?;
    numbers(py, done)
}

#[pymethods]
impl Service {
    /// Adds keys; returns for each whether it was certainly new. A JSON body may contain a label or value for each.
    /// Without `wait`, returns None, and adds none, while a task reads the whole filter.
    #[pyo3(signature = (name, form, body, *, pack=true, wait=true, versions=None, of=None))]
    #[allow(clippy::too_many_arguments)] // keywords of Python
    fn add<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        form: &str,
        body: &[u8],
        pack: bool,
        wait: bool,
        versions: Versions,
        of: Option<u64>,
    ) -> PyResult<Option<Answers<'py>>> {
        let done = self.change(py, |store| {
            let entry = find_filter(store, name, of)?;
            if !wait && entry.is_being_read() {
                return Ok(UNCHANGED);
            }
            let body = hash_keys(store, &entry, parse_form(form)?, body, true)?.unwrap_or_default();
            // Hashing a million keys takes long enough for a task to begin.
            if !wait && entry.is_being_read() {
                return Ok(UNCHANGED);
            }
            let at = entry.at(versions.as_deref()).with_domains(body.domains);
            let mut new = zeros_per_key(&entry, &body.words);
            let (lsn, body_kind) = match &body.values {
                Some(values) if values.len() == new.len() => (store.add_pairs(at, &body.words, values)?, "pairs"),
                Some(values) => {
                    let text = format!("there are {} keys and {} values; give one for each", new.len(), values.len());
                    return Err(Fault::invalid(text));
                }
                None => (store.add(at, &body.words, &mut new)?, body_kind(body.single)),
            };
            let over = entry.is_over_capacity();
            Ok((Some(BatchResult { results: new, body_kind, over, warning: None }), lsn))
        })?;
        Ok(done.map(|done| to_answers(py, done, pack)))
    }

    /// Looks up keys; returns for each whether it is probably present. Without `wait`, returns None while the filter is
    /// being changed.
    #[pyo3(signature = (name, form, body, *, pack=true, wait=true, of=None))]
    #[allow(clippy::too_many_arguments)] // keywords of Python
    fn check<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        form: &str,
        body: &[u8],
        pack: bool,
        wait: bool,
        of: Option<u64>,
    ) -> PyResult<Option<Answers<'py>>> {
        let found = self.call(py, |store| {
            let entry = find_filter(store, name, of)?;
            let Some(body) = hash_keys(store, &entry, parse_form(form)?, body, wait)? else { return Ok(None) };
            if body.values.is_some() {
                return Err(Fault::invalid("\"values\" come with add only"));
            }
            let filter = if wait {
                entry.read()
            } else {
                let Some(filter) = entry.try_read() else { return Ok(None) };
                filter
            };
            let warning = type_warning(filter.as_ref(), body.domains);
            drop(filter);
            let Some(over) = (if wait { Some(entry.is_over_capacity()) } else { entry.try_is_over_capacity() }) else {
                return Ok(None);
            };
            let mut found = zeros_per_key(&entry, &body.words);
            if wait {
                store.contains(&entry, &body.words, &mut found);
            } else if !store.try_contains(&entry, &body.words, &mut found) {
                return Ok(None);
            }
            Ok(Some(BatchResult { results: found, body_kind: body_kind(body.single), over, warning }))
        })?;
        Ok(found.map(|done| to_answers(py, done, pack)))
    }

    /// Removes keys; returns for each whether it was not certainly absent. Without `wait`, returns None, and removes
    /// none, while a task reads the whole filter.
    #[pyo3(signature = (name, form, body, *, pack=true, wait=true, versions=None, of=None))]
    #[allow(clippy::too_many_arguments)] // keywords of Python
    fn remove<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        form: &str,
        body: &[u8],
        pack: bool,
        wait: bool,
        versions: Versions,
        of: Option<u64>,
    ) -> PyResult<Option<Answers<'py>>> {
        let done = self.change(py, |store| {
            let entry = find_filter(store, name, of)?;
            if !wait && entry.is_being_read() {
                return Ok(UNCHANGED);
            }
            let body = hash_unpaired(store, &entry, form, body)?;
            if !wait && entry.is_being_read() {
                return Ok(UNCHANGED);
            }
            let mut removed = zeros_per_key(&entry, &body.words);
            let lsn = store.remove(entry.at(versions.as_deref()), &body.words, &mut removed)?;
            let warning = type_warning(entry.read().as_ref(), body.domains);
            let (body_kind, over) = (body_kind(body.single), entry.is_over_capacity());
            Ok((Some(BatchResult { results: removed, body_kind, over, warning }), lsn))
        })?;
        Ok(done.map(|done| to_answers(py, done, pack)))
    }

    /// The number of occurrences of each key, as bytes of 8 per key.
    #[pyo3(signature = (name, form, body, *, of=None))]
    fn count<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        form: &str,
        body: &[u8],
        of: Option<u64>,
    ) -> PyResult<KeyNumbers<'py>> {
        self.read_numbers(py, name, form, body, of, |filter, words, numbers| {
            filter.count(words, numbers).map(|()| Vec::new())
        })
    }

    /// The label or value of each key, as bytes of 8 per key, and which keys have none.
    #[pyo3(signature = (name, form, body, *, of=None))]
    fn values<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        form: &str,
        body: &[u8],
        of: Option<u64>,
    ) -> PyResult<KeyNumbers<'py>> {
        self.read_numbers(py, name, form, body, of, |filter, words, numbers| {
            filter.values(words, numbers)?;
            let is_null = |(&hash, &value)| value_if_present(filter, hash, value).is_none();
            let nulls: Vec<u8> = words.iter().zip(&*numbers).map(|pair| u8::from(is_null(pair))).collect();
            Ok(if nulls.contains(&1) { nulls } else { Vec::new() })
        })
    }

    /// The cells of one text.
    fn positions(&self, py: Python<'_>, name: &str, key: &[u8]) -> PyResult<Vec<u64>> {
        self.call(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            let hash = hash_one(&entry, &store.options.limits, key)?;
            entry.read().positions(hash[0])
        })
    }

    /// Removes all keys.
    #[pyo3(signature = (name, *, versions=None))]
    fn clear(&self, py: Python<'_>, name: &str, versions: Versions) -> PyResult<()> {
        self.change(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            store.clear(entry.at(versions.as_deref())).map(|lsn| ((), lsn))
        })
    }

    /// Advances the time of a filter with a window to `now`, in seconds.
    #[pyo3(signature = (name, now, *, versions=None))]
    fn advance(&self, py: Python<'_>, name: &str, now: f64, versions: Versions) -> PyResult<()> {
        self.change(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            store.advance(entry.at(versions.as_deref()), now).map(|lsn| ((), lsn))
        })
    }
}
