//! [`body()`], [`lines`]: hash the keys in JSON texts while reading them. They keep no value, check every limit on the
//! way, and recurse no deeper than a key may nest.

use fullbloom_core::key::{Domain, KeyDomains, KeyHasher, PART_HEADER, end_part, float_bits, number::NumberBytes};

use crate::fault::{Code, Fault, Result};
use crate::kind::Keying;
use crate::limits::Limits;

mod reader;
#[cfg(test)]
mod tests;

use reader::{Number, Place, Reader, two_complement};

/// How deep arrays may nest in a key: as deep as tuples.
const DEEPEST_KEY: usize = 64;
/// How keys become words.
pub enum Hashing {
    /// The key rule.
    Own(KeyHasher),
    /// The key rule, for a key and for its owner: each key is an array of both.
    Pairs(KeyHasher),
    /// Another program's rule, which only accepts texts.
    Foreign(Keying),
}

/// The contents of a request body.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// The words of all keys.
    pub words: Vec<u64>,
    /// The domains of all keys.
    pub domains: KeyDomains,
    /// True for one key in `"key"`.
    pub single: bool,
    /// The label or value of each key, if the body has `"values"`.
    pub values: Option<Vec<u64>>,
}

/// Limits on keys.
#[derive(Clone, Copy)]
pub struct Caps {
    /// The most keys of one request.
    pub keys: usize,
    /// The most bytes of one key.
    pub key_bytes: usize,
}

impl From<&Limits> for Caps {
    fn from(limits: &Limits) -> Self {
        Caps { keys: limits.batch_keys, key_bytes: limits.key_bytes }
    }
}

impl Caps {
    /// Refuses a key with too many bytes.
    pub fn check_key(&self, nbytes: usize) -> Result<()> {
        if nbytes <= self.key_bytes {
            return Ok(());
        }
        let text = format!("a key of {nbytes} bytes is longer than {}, the most allowed", self.key_bytes);
        Err(Fault::new(Code::Limit, text))
    }

    /// The refusal of too many keys.
    pub fn too_many(&self) -> Fault {
        Fault::new(Code::Limit, format!("a request may hold {} keys; send them in several", self.keys))
    }
}

/// Hashes the keys of `{"key": ...}` or `{"keys": [...], "values": [...]}`. Ignores other members. If a name occurs
/// twice, the last one counts, and `"key"` takes precedence over `"keys"`.
pub fn body(text: &[u8], hashing: &Hashing, caps: Caps) -> Result<Body> {
    let mut reader = Reader::new(text)?;
    let (mut one, mut many, mut values) = (None, None, None);
    if reader.peek() != Some(b'{') {
        reader.skip(0)?;
        reader.end()?;
        return Err(Fault::invalid("the body is an object with \"key\" or \"keys\""));
    }
    reader.at += 1;
    reader.read_members(|reader, name| {
        match name {
            b"key" => {
                let mut words = Vec::new();
                let domain = reader.key(hashing, caps, &mut words)?;
                one = Some((words, KeyDomains::of(domain)));
            }
            b"keys" if reader.peek() == Some(b'[') => many = Some(reader.keys(hashing, caps)?),
            b"values" if reader.peek() == Some(b'n') => reader.skip(0)?,
            b"values" => values = Some(reader.values(caps)?),
            _ => reader.skip(0)?,
        }
        Ok(())
    })?;
    reader.end()?;
    match (one, many) {
        (Some((words, domains)), _) => Ok(Body { words, domains, single: true, values: None }),
        (None, Some((words, domains))) => Ok(Body { words, domains, single: false, values }),
        (None, None) => Err(Fault::invalid("the body is an object with \"key\", or with \"keys\", an array")),
    }
}

/// Hashes the keys of a text with one JSON value per line; skips empty lines.
pub fn lines(text: &[u8], hashing: &Hashing, caps: Caps) -> Result<Body> {
    let mut body = Body::default();
    let mut count = 0;
    for line in text.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        count += 1;
        if count > caps.keys {
            return Err(caps.too_many());
        }
        let mut reader = Reader::new(line)?;
        let domain = reader.key(hashing, caps, &mut body.words)?;
        body.domains = body.domains.with(KeyDomains::of(domain));
        reader.end()?;
    }
    Ok(body)
}

fn invalid_key() -> Fault {
    Fault::invalid("a key is a string, a number, true, false or an array of these")
}

impl Reader<'_> {
    fn keys(&mut self, hashing: &Hashing, caps: Caps) -> Result<(Vec<u64>, KeyDomains)> {
        self.expect(b'[')?;
        let (mut words, mut domains, mut count) = (Vec::new(), KeyDomains::NONE, 0);
        self.read_items(b']', |reader| {
            count += 1;
            if count > caps.keys {
                return Err(caps.too_many());
            }
            domains = domains.with(KeyDomains::of(reader.key(hashing, caps, &mut words)?));
            Ok(())
        })?;
        Ok((words, domains))
    }

    fn values(&mut self, caps: Caps) -> Result<Vec<u64>> {
        let refused = || Fault::invalid("\"values\" is an array of whole numbers of 64 bits");
        if self.peek() != Some(b'[') {
            return Err(refused());
        }
        self.at += 1;
        let mut values = Vec::new();
        self.read_items(b']', |reader| {
            if values.len() == caps.keys {
                return Err(caps.too_many());
            }
            let Some(b'-' | b'0'..=b'9') = reader.peek() else { return Err(refused()) };
            let Number::Small(value) = reader.number()? else { return Err(refused()) };
            values.push(u64::try_from(value).map_err(|_| refused())?);
            Ok(())
        })?;
        Ok(values)
    }

    /// Hashes the owner and the key of the next pair; returns the domain of the key.
    fn pair(&mut self, hasher: KeyHasher, caps: Caps, words: &mut Vec<u64>) -> Result<Domain> {
        let wrong = || Fault::invalid("a key of a bank is a pair: an array of an owner and a key");
        if self.peek() != Some(b'[') {
            return Err(wrong());
        }
        self.at += 1;
        let (own, mut parts, mut domain) = (Hashing::Own(hasher), 0, Domain::Text);
        self.read_items(b']', |reader| {
            parts += 1;
            if parts > 2 {
                return Err(wrong());
            }
            domain = reader.key(&own, caps, words)?;
            Ok(())
        })?;
        if parts == 2 { Ok(domain) } else { Err(wrong()) }
    }

    /// Hashes the next key; appends its words and returns its domain.
    fn key(&mut self, hashing: &Hashing, caps: Caps, words: &mut Vec<u64>) -> Result<Domain> {
        if let Hashing::Pairs(hasher) = hashing {
            return self.pair(*hasher, caps, words);
        }
        let first = self.peek();
        if first == Some(b'"') {
            let place = self.string()?;
            let key = match place {
                Place::Text(start, end) => &self.text[start..end],
                Place::Unescaped => &self.unescaped,
            };
            caps.check_key(key.len())?;
            match hashing {
                Hashing::Own(hasher) | Hashing::Pairs(hasher) => words.push(hasher.text(key)),
                Hashing::Foreign(keying) => keying.push(key, words),
            }
            return Ok(Domain::Text);
        }
        let Hashing::Own(hasher) = hashing else {
            return Err(Fault::invalid("keys of this filter are texts: it has the hash of another program"));
        };
        let (word, domain) = match first {
            Some(b'[') => {
                self.parts.clear();
                self.tuple(caps, 1)?;
                (hasher.bytes(Domain::Tuple, &self.parts), Domain::Tuple)
            }
            Some(b'{' | b'n') => return Err(invalid_key()),
            Some(b't' | b'f') => (hasher.hash_signed(i64::from(self.truth()?)), Domain::Integer),
            _ => match self.number()? {
                Number::Small(value) => {
                    let word = match i64::try_from(value) {
                        Ok(value) => hasher.hash_signed(value),
                        Err(_) => hasher.bytes(Domain::Integer, NumberBytes::of(value).as_slice()),
                    };
                    (word, Domain::Integer)
                }
                Number::Large(negative, digits) => {
                    (hasher.bytes(Domain::Integer, &two_complement(negative, digits)), Domain::Integer)
                }
                Number::Float(value) => (hasher.float(value), Domain::Float),
            },
        };
        words.push(word);
        Ok(domain)
    }

    /// Encodes the parts of the next array.
    fn tuple(&mut self, caps: Caps, depth: usize) -> Result<()> {
        if depth > DEEPEST_KEY {
            return Err(Fault::invalid(format!("a tuple key may nest {DEEPEST_KEY} levels, got more")));
        }
        self.expect(b'[')?;
        self.read_items(b']', |reader| {
            let start = reader.parts.len();
            reader.parts.extend_from_slice(&[0; PART_HEADER]);
            let domain = reader.part(caps, depth)?;
            end_part(&mut reader.parts, start, domain);
            caps.check_key(reader.parts.len())
        })
    }

    fn part(&mut self, caps: Caps, depth: usize) -> Result<Domain> {
        match self.peek() {
            Some(b'"') => {
                match self.string()? {
                    Place::Text(start, end) => self.parts.extend_from_slice(&self.text[start..end]),
                    Place::Unescaped => self.parts.extend_from_slice(&self.unescaped),
                }
                Ok(Domain::Text)
            }
            Some(b'[') => self.tuple(caps, depth + 1).map(|()| Domain::Tuple),
            Some(b'{' | b'n') => Err(invalid_key()),
            Some(b't' | b'f') => {
                let truth = self.truth()?;
                self.parts.extend_from_slice(&i64::from(truth).to_le_bytes());
                Ok(Domain::Integer)
            }
            _ => Ok(match self.number()? {
                Number::Small(value) => {
                    self.parts.extend_from_slice(NumberBytes::of(value).as_slice());
                    Domain::Integer
                }
                Number::Large(negative, digits) => {
                    self.parts.extend_from_slice(&two_complement(negative, digits));
                    Domain::Integer
                }
                Number::Float(value) => {
                    self.parts.extend_from_slice(&float_bits(value).to_le_bytes());
                    Domain::Float
                }
            }),
        }
    }
}
