//! Keys in, answers out. Answers are bytes: one a key, 1 or 0, or eight keys a byte, the first in its lowest bit.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{Service, Versions};
use crate::fault::{Code, Fault, Result};
use crate::limits::Limits;
use crate::store::{Entry, Store};

/// How keys are written down.
#[derive(Clone, Copy)]
enum Form {
    /// A key a line.
    Lines,
    /// One key.
    One,
    /// Keys one behind the other, each behind its length (4 bytes, little-endian).
    Packed,
    /// Ready hashes of 8 bytes each, little-endian.
    Hashes,
}

fn form(name: &str) -> Result<Form> {
    match name {
        "lines" => Ok(Form::Lines),
        "one" => Ok(Form::One),
        "packed" => Ok(Form::Packed),
        "hashes" => Ok(Form::Hashes),
        _ => Err(Fault::invalid("keys are lines, one, packed or hashes")),
    }
}

fn many(limits: &Limits) -> Fault {
    Fault::new(Code::Limit, format!("a request may hold {} keys; send them in several", limits.batch_keys))
}

/// Appends the hash of a text, unless it is too long.
fn hash(entry: &Entry, limits: &Limits, key: &[u8], hashes: &mut Vec<u64>) -> Result<()> {
    if key.len() > limits.key_bytes {
        let text = format!("a key of {} bytes is longer than {}, the most allowed", key.len(), limits.key_bytes);
        return Err(Fault::new(Code::Limit, text));
    }
    entry.text.push(key, hashes);
    Ok(())
}

/// The hash of one key.
fn of_one(entry: &Entry, limits: &Limits, key: &[u8]) -> Result<Vec<u64>> {
    let mut hashes = Vec::with_capacity(entry.text.width());
    hash(entry, limits, key, &mut hashes)?;
    Ok(hashes)
}

/// Zeros, one a key whose hashes these are.
fn each<T: Clone + Default>(entry: &Entry, hashes: &[u64]) -> Vec<T> {
    vec![T::default(); hashes.len() / entry.text.width()]
}

/// The hash of each line. The last may lack its end, and an end may be `\r\n`.
fn of_lines(entry: &Entry, limits: &Limits, text: &[u8]) -> Result<Vec<u64>> {
    let most = limits.batch_keys * entry.text.width();
    let mut hashes = Vec::with_capacity((text.len() / 16).min(most));
    let mut start = 0;
    while start < text.len() {
        let end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |at| start + at);
        let line = &text[start..end];
        hash(entry, limits, line.strip_suffix(b"\r").unwrap_or(line), &mut hashes)?;
        start = end + 1;
    }
    if hashes.len() > most { Err(many(limits)) } else { Ok(hashes) }
}

/// The hash of each key of a string.
fn of_packed(entry: &Entry, limits: &Limits, mut packed: &[u8]) -> Result<Vec<u64>> {
    let wrong = || Fault::invalid("packed keys are each 4 bytes of length, little-endian, and so many bytes");
    let most = limits.batch_keys * entry.text.width();
    let mut hashes = Vec::new();
    while !packed.is_empty() {
        let (length, rest) = packed.split_first_chunk::<4>().ok_or_else(wrong)?;
        let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(wrong)?;
        hash(entry, limits, key, &mut hashes)?;
        if hashes.len() > most {
            return Err(many(limits));
        }
        packed = rest;
    }
    Ok(hashes)
}

fn hashes(store: &Store, entry: &Entry, form: Form, body: &[u8]) -> Result<Vec<u64>> {
    let limits = &store.options.limits;
    match form {
        Form::One => of_one(entry, limits, body),
        Form::Lines => of_lines(entry, limits, body),
        Form::Packed => of_packed(entry, limits, body),
        Form::Hashes => {
            entry.check_hashes()?;
            let (words, rest) = body.as_chunks::<8>();
            if !rest.is_empty() {
                return Err(Fault::invalid(format!("hashes have 8 bytes each, got {} bytes", body.len())));
            }
            if words.len() > limits.batch_keys {
                Err(many(limits))
            } else {
                Ok(words.iter().map(|w| u64::from_le_bytes(*w)).collect())
            }
        }
    }
}

/// Eight answers a byte, the first in its lowest bit.
fn packed(answers: &[u8]) -> Vec<u8> {
    let byte = |eight: &[u8]| eight.iter().enumerate().fold(0, |byte, (at, answer)| byte | ((answer & 1) << at));
    answers.chunks(8).map(byte).collect()
}

/// Answers as bytes of Python, how many keys there were, and how many of them had a yes.
type Answers<'py> = (Bound<'py, PyBytes>, usize, u64);

fn told(py: Python<'_>, given: Vec<u8>, pack: bool) -> Answers<'_> {
    let yes = given.iter().map(|&b| u64::from(b)).sum();
    let keys = given.len();
    let bytes = if pack { packed(&given) } else { given };
    (PyBytes::new(py, &bytes), keys, yes)
}

#[pymethods]
impl Service {
    /// True or false for one text; None while the filter is being changed, for the caller not to wait.
    fn check_one(&self, py: Python<'_>, name: &str, key: &[u8]) -> PyResult<Option<bool>> {
        self.ask(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            let hash = of_one(&entry, &store.options.limits, key)?;
            let mut found = [0];
            Ok(store.contains_now(&entry, &hash, &mut found).then_some(found[0] == 1))
        })
    }

    /// Adds keys: for each whether it was certainly new.
    #[pyo3(signature = (name, form, body, *, pack=true, versions=None))]
    fn add<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        form: &str,
        body: &[u8],
        pack: bool,
        versions: Versions,
    ) -> PyResult<Answers<'py>> {
        let new = self.change(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            let hashes = hashes(store, &entry, self::form(form)?, body)?;
            let mut new = each(&entry, &hashes);
            let lsn = store.add(entry.at(versions.as_deref()), &hashes, &mut new)?;
            Ok((new, lsn))
        })?;
        Ok(told(py, new, pack))
    }

    /// Looks for keys: for each whether it is probably there. Without `wait`, None while the filter is being changed.
    #[pyo3(signature = (name, form, body, *, pack=true, wait=true))]
    fn check<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        form: &str,
        body: &[u8],
        pack: bool,
        wait: bool,
    ) -> PyResult<Option<Answers<'py>>> {
        let found = self.ask(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            let hashes = hashes(store, &entry, self::form(form)?, body)?;
            let mut found = each(&entry, &hashes);
            if wait {
                store.contains(&entry, &hashes, &mut found);
            } else if !store.contains_now(&entry, &hashes, &mut found) {
                return Ok(None);
            }
            Ok(Some(found))
        })?;
        Ok(found.map(|found| told(py, found, pack)))
    }

    /// Removes keys: for each whether it was not certainly absent.
    #[pyo3(signature = (name, form, body, *, pack=true, versions=None))]
    fn remove<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        form: &str,
        body: &[u8],
        pack: bool,
        versions: Versions,
    ) -> PyResult<Answers<'py>> {
        let removed = self.change(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            let hashes = hashes(store, &entry, self::form(form)?, body)?;
            let mut removed = each(&entry, &hashes);
            let lsn = store.remove(entry.at(versions.as_deref()), &hashes, &mut removed)?;
            Ok((removed, lsn))
        })?;
        Ok(told(py, removed, pack))
    }

    /// Occurrences of each key.
    fn count(&self, py: Python<'_>, name: &str, form: &str, body: &[u8]) -> PyResult<Vec<u64>> {
        self.ask(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            let hashes = hashes(store, &entry, self::form(form)?, body)?;
            let mut counts = each(&entry, &hashes);
            entry.look().count(&hashes, &mut counts)?;
            Ok(counts)
        })
    }

    /// Adds keys with a label or value each.
    #[pyo3(signature = (name, form, body, values, *, versions=None))]
    fn add_pairs(
        &self,
        py: Python<'_>,
        name: &str,
        form: &str,
        body: &[u8],
        values: Vec<u64>,
        versions: Versions,
    ) -> PyResult<usize> {
        self.change(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            let hashes = hashes(store, &entry, self::form(form)?, body)?;
            if hashes.len() != values.len() {
                let text = format!("there are {} keys and {} values; give one for each", hashes.len(), values.len());
                return Err(Fault::invalid(text));
            }
            store.add_pairs(entry.at(versions.as_deref()), &hashes, &values).map(|lsn| (hashes.len(), lsn))
        })
    }

    /// The label or value of each key.
    fn values(&self, py: Python<'_>, name: &str, form: &str, body: &[u8]) -> PyResult<Vec<u64>> {
        self.ask(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            let hashes = hashes(store, &entry, self::form(form)?, body)?;
            let mut values = each(&entry, &hashes);
            entry.look().values(&hashes, &mut values)?;
            Ok(values)
        })
    }

    /// The cells of one text.
    fn positions(&self, py: Python<'_>, name: &str, key: &[u8]) -> PyResult<Vec<u64>> {
        self.ask(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            let hash = of_one(&entry, &store.options.limits, key)?;
            entry.look().positions(hash[0])
        })
    }

    /// Forgets every key.
    #[pyo3(signature = (name, *, versions=None))]
    fn clear(&self, py: Python<'_>, name: &str, versions: Versions) -> PyResult<()> {
        self.change(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            store.clear(entry.at(versions.as_deref())).map(|lsn| ((), lsn))
        })
    }

    /// Lets time pass for a filter with a window, until `now` in seconds.
    #[pyo3(signature = (name, now, *, versions=None))]
    fn advance(&self, py: Python<'_>, name: &str, now: f64, versions: Versions) -> PyResult<()> {
        self.change(py, |store| {
            let entry = store.filter(name.as_bytes())?;
            store.advance(entry.at(versions.as_deref()), now).map(|lsn| ((), lsn))
        })
    }
}
