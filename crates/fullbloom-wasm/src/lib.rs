//! The core in browsers and Node: bindings only. Every formula, hash and format is the core's.
//!
//! | file | holds |
//! |---|---|
//! | `core` | what is used of the core, in one place |
//! | `kind` | any structure behind one trait, from the registry |
//! | `keys` | keys in the module's memory, and their hashes |
//! | `arguments` | parameters of constructors |
//! | `fault` | errors on their way out |
//!
//! The package `fullbloom` in `web/fullbloom` is what people import: it writes keys into the memory of a [`Batch`],
//! makes one call for thousands of them, and reads the answers.

#![forbid(unsafe_code)]

mod arguments;
mod core;
mod fault;
mod keys;
mod kind;

use std::fmt::Write;

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::{Arguments, hasher, secret_of};
use crate::core::{KeyHasher, OpenOptions, VARIANTS, Value, Variant, Verify};
use crate::fault::{Fault, Result};
use crate::keys::hash_number;
pub use crate::keys::{Batch, Form};
use crate::kind::{Keys, Kind, Order};

/// What JavaScript gets: a value, or what it throws.
type Thrown<T> = std::result::Result<T, JsValue>;

/// What a filter does with the keys of a batch.
#[wasm_bindgen]
#[derive(Clone, Copy)]
pub enum Operation {
    /// One answer a key.
    Has = 0,
    /// Adds: whether each was new.
    Add = 1,
    /// Removes: whether each may have been there.
    Remove = 2,
    /// Occurrences of each.
    Count = 3,
    /// The value of each.
    Get = 4,
    /// Adds each with the value beside it: whether each was new.
    Put = 5,
}

/// Any filter.
#[wasm_bindgen]
pub struct Handle(Box<dyn Kind>);

#[wasm_bindgen]
impl Handle {
    /// The filter in the bytes of a whole file, which are the first of a batch.
    pub fn open(batch: &Batch, len: usize, secret: &[u8], max_bytes: JsValue) -> Thrown<Handle> {
        let max_bytes =
            if max_bytes.is_undefined() { u64::MAX } else { arguments::parse_whole("max_bytes", &max_bytes, 1)? };
        let wanted = OpenOptions { verify: Verify::Full, secret: secret_of(secret)?, max_bytes };
        Ok(Handle(kind::open(batch.first(len), &wanted)?))
    }

    /// A new filter of a kind of the registry, of the keys that came where it is built of these.
    pub fn create(
        kind: &str,
        names: Vec<String>,
        values: Vec<JsValue>,
        seed: JsValue,
        secret: &[u8],
        keys: &KeySet,
        others: &KeySet,
    ) -> Thrown<Handle> {
        let arguments = &Arguments::new(names, values);
        let order = Order { arguments, hasher: hasher(&seed, secret)?, keys: &keys.keys, others: &others.keys };
        Ok(Handle(kind::create(kind, &order)?))
    }

    /// Its row among those of [`kinds`], counted from 0.
    pub fn row(&self) -> usize {
        rows().position(|row| row.id == self.0.variant().id).unwrap_or(0)
    }

    /// Whether a text may be there, whose UTF-8 is at the beginning of the batch.
    pub fn has_text(&self, batch: &Batch, len: usize) -> bool {
        self.0.contains_one(self.0.hasher().text(batch.first(len)))
    }

    /// Whether a number may be there.
    pub fn has_number(&self, number: f64) -> bool {
        self.0.contains_one(hash_number(self.0.hasher(), number).0)
    }

    /// Does something with the keys of a batch. Of keys one of which is refused, those before it are added or removed.
    pub fn run(&mut self, operation: Operation, batch: &mut Batch, keys: usize, form: Form) -> Thrown<()> {
        let refused = batch.hash(self.0.hasher(), keys, form).err();
        if refused.is_none() || matches!(operation, Operation::Add | Operation::Remove) {
            self.work(operation, batch)?;
        }
        Ok(refused.map_or(Ok(()), Err)?)
    }

    /// The cells of the one key of a batch.
    pub fn positions(&self, batch: &mut Batch, form: Form) -> Thrown<Vec<f64>> {
        batch.hash(self.0.hasher(), 1, form)?;
        let hash = batch.hashes.first().copied().unwrap_or_default();
        Ok(self.0.positions(hash)?.into_iter().map(|position| position as f64).collect())
    }

    /// Names and values by turns.
    pub fn info(&self) -> Vec<JsValue> {
        let shown = |(name, value): (&'static str, Value)| {
            let value = match value {
                Value::Number(number) => JsValue::from(number),
                Value::Real(number) => JsValue::from_f64(number),
                Value::Text(text) => JsValue::from_str(&text),
                Value::Flag(flag) => JsValue::from_bool(flag),
                Value::Nothing => JsValue::NULL,
            };
            [JsValue::from_str(name), value]
        };
        self.0.info().into_iter().flat_map(shown).collect()
    }

    /// As a file, which Python opens.
    pub fn to_bytes(&self) -> Thrown<Vec<u8>> {
        Ok(to_bytes(&*self.0)?)
    }

    /// An independent copy.
    pub fn copy(&self) -> Thrown<Handle> {
        Ok(Handle(self.0.copy()?))
    }

    /// Takes in another of its class.
    pub fn merge(&mut self, other: &Handle) -> Thrown<()> {
        Ok(self.0.merge(&*other.0)?)
    }

    /// Forgets every key.
    pub fn clear(&mut self) -> Thrown<()> {
        Ok(self.0.clear()?)
    }

    /// Lets time pass until `now`, in seconds: how many generations expired.
    pub fn advance(&mut self, now: f64) -> Thrown<f64> {
        Ok(self.0.advance(now)? as f64)
    }
}

impl Handle {
    /// Does something with the keys of a batch that have been hashed.
    fn work(&mut self, operation: Operation, batch: &mut Batch) -> Result<()> {
        let filter = &mut *self.0;
        batch.room_for_answers()?;
        if matches!(operation, Operation::Count | Operation::Put | Operation::Get) {
            batch.room_for_words()?;
        }
        let (hashes, answers) = (&batch.hashes, &mut batch.answers[..batch.hashes.len()]);
        let words = batch.words.get_mut(..hashes.len()).unwrap_or_default();
        let before = filter.num_added();
        let done = match operation {
            Operation::Has => {
                filter.contains(hashes, answers);
                Ok(())
            }
            Operation::Add => filter.add(hashes, answers),
            Operation::Remove => filter.remove(hashes, answers),
            Operation::Count => filter.count(hashes, words),
            Operation::Put => filter.put(hashes, words, answers),
            Operation::Get => filter.values(hashes, words),
        };
        let adds = matches!(operation, Operation::Add | Operation::Put) && !hashes.is_empty();
        if adds && (done.is_ok() || filter.num_added() != before) {
            filter.record(batch.domains);
        }
        done
    }
}

/// A whole file.
fn to_bytes(filter: &dyn Kind) -> Result<Vec<u8>> {
    let container = filter.container();
    let (head, mut bytes) = (container.head()?, Vec::new());
    bytes.try_reserve_exact(container.nbytes()).map_err(|_| Fault::memory(container.nbytes()))?;
    container.write_with(&head, &mut bytes).map_err(|error| Fault::new("FullbloomError", error.to_string()))?;
    Ok(bytes)
}

/// Keys that come in batches, for a filter that is built of all of them at once.
#[wasm_bindgen]
pub struct KeySet {
    hasher: KeyHasher,
    keys: Keys,
}

#[wasm_bindgen]
impl KeySet {
    /// None yet, to be hashed with this seed and secret.
    #[wasm_bindgen(constructor)]
    pub fn new(seed: JsValue, secret: &[u8]) -> Thrown<KeySet> {
        Ok(KeySet { hasher: hasher(&seed, secret)?, keys: Keys::default() })
    }

    /// Takes the keys of a batch, and the values beside them if they have any.
    pub fn push(&mut self, batch: &mut Batch, keys: usize, form: Form, valued: bool) -> Thrown<()> {
        batch.hash(&self.hasher, keys, form)?;
        let more = Fault::memory(8 * keys);
        if self.keys.hashes.try_reserve(keys).is_err() || self.keys.values.try_reserve(keys).is_err() {
            return Err(more.into());
        }
        self.keys.hashes.extend_from_slice(&batch.hashes);
        if valued {
            self.keys.values.extend_from_slice(batch.words.get(..keys).unwrap_or_default());
        }
        self.keys.domains = self.keys.domains.with(batch.domains);
        Ok(())
    }

    /// Hashes the keys of a batch, which are not taken; [`Batch::hashes`] has them.
    pub fn hash(&self, batch: &mut Batch, keys: usize, form: Form) -> Thrown<()> {
        Ok(batch.hash(&self.hasher, keys, form)?)
    }
}

/// The rows of the registry that this build has.
fn rows() -> impl Iterator<Item = &'static Variant> {
    VARIANTS.iter().filter(|row| kind::is_wanted(row.name))
}

/// The registry as JSON: one row per kind, with the parameters of its constructor.
#[wasm_bindgen]
pub fn kinds() -> String {
    let mut json = String::from("[");
    for (i, row) in rows().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        // Names are ASCII, whose debug form is JSON.
        let _ = write!(
            json,
            "{comma}{{\"name\":{:?},\"class\":{:?},\"adds\":{:?},\"capabilities\":{:?},\"layouts\":{:?},\
             \"false_negatives\":{:?},\"parameters\":[",
            row.name,
            row.class,
            row.adds,
            row.capabilities,
            row.layouts,
            row.false_negatives.name()
        );
        for (i, parameter) in kind::parameters_of(row.id).iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let default = parameter.default.map_or_else(|| "null".into(), |text| format!("{text:?}"));
            let _ = write!(
                json,
                "{comma}{{\"name\":{:?},\"type\":{:?},\"default\":{default}}}",
                parameter.name, parameter.python
            );
        }
        json.push_str("]}");
    }
    json.push(']');
    json
}
