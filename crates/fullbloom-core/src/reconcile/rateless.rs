//! [`Encoder`] and [`Decoder`]: an endless stream of coded symbols, of which a peer needs 1.35 to 1.45 a difference, more for
//! fewer than 150.
//!
//! Yang, Gilad and Alizadeh, "Practical rateless set reconciliation", SIGCOMM 2024. The stream is 24 bytes
//! (`\x89BRS`, version 1 as four bytes, a number for the hash, the number of keys) and the symbols: 8 bytes of key, 4 of
//! check, and the count less what is expected, `2 n / (i + 2)`, as a zigzag varint, mostly one or two bytes. All numbers
//! are little-endian.
//!
//! The symbols of a set are made up to a horizon that doubles: all keys step up to it, so that no heap says whose turn it is.

use std::collections::HashSet;

use super::cell::{Cell, check};
use super::peel::DecodedKeys;
use super::walk::{NEVER, Walk};
use crate::cells::allocation::reserve;
use crate::error::{Error, Result};
use crate::hash::splitmix::mix;
use crate::key::KeyHasher;

const MAGIC: [u8; 8] = *b"\x89BRS\x01\0\0\0";
const HEAD: usize = 24;
/// Key and check.
const FIXED: usize = 12;
/// Bytes of the longest count.
const VARINT: usize = 10;
/// The first horizon.
const NEAR: usize = 64;
/// Most symbols of a stream; sending the keys would be shorter.
pub const MOST: u64 = 1 << 31;

/// The hash that both sides must share, as 8 bytes.
fn hash_number(hasher: &KeyHasher) -> u64 {
    mix(hasher.seed()) ^ hasher.secret_fingerprint()
}

/// The count that a symbol of `keys` keys has in the mean.
fn expect_count(keys: u64, symbol: u64) -> i64 {
    ((u128::from(keys) * 2) / (u128::from(symbol) + 2)) as i64
}

/// The symbols of keys, each `times`, up to a horizon.
struct Symbols {
    walks: Vec<Walk>,
    times: i64,
    cells: Vec<Cell>,
}

impl Symbols {
    /// The symbols of these keys, each once.
    fn of(mut hashes: Vec<u64>, times: i64) -> Result<Self> {
        hashes.sort_unstable();
        hashes.dedup();
        let mut walks = Vec::new();
        reserve(&mut walks, hashes.len())?;
        walks.extend(hashes.into_iter().map(Walk::of));
        Ok(Symbols { walks, times, cells: Vec::new() })
    }

    fn keys(&self) -> u64 {
        self.walks.len() as u64
    }

    fn has(&self, hash: u64) -> bool {
        self.walks.binary_search_by_key(&hash, |walk| walk.hash).is_ok()
    }

    /// Computes at least the first `symbols`; true if the horizon moved.
    fn reach(&mut self, symbols: usize) -> Result<bool> {
        if symbols <= self.cells.len() {
            return Ok(false);
        }
        let horizon = symbols.max(2 * self.cells.len()).max(NEAR).min(NEVER as usize);
        let more = horizon - self.cells.len();
        reserve(&mut self.cells, more)?;
        self.cells.resize(horizon, Cell::default());
        let (cells, times) = (&mut self.cells, self.times);
        for walk in &mut self.walks {
            let (hash, check) = (walk.hash, check(walk.hash));
            walk.until(horizon as u32, |at| cells[at].put(hash, check, times));
        }
        Ok(true)
    }
}

/// Sends: the symbols of a set.
pub struct Encoder {
    symbols: Symbols,
    hash: u64,
    sent: usize,
}

impl Encoder {
    /// Of the set of these hashes, which `hasher` gave.
    pub fn new(hashes: Vec<u64>, hasher: &KeyHasher) -> Result<Self> {
        Ok(Encoder { symbols: Symbols::of(hashes, 1)?, hash: hash_number(hasher), sent: 0 })
    }

    /// Distinct keys.
    pub fn keys(&self) -> u64 {
        self.symbols.keys()
    }

    /// Symbols sent.
    pub fn num_sent(&self) -> u64 {
        self.sent as u64
    }

    /// Its size in bytes.
    pub fn nbytes(&self) -> usize {
        self.symbols.walks.len() * size_of::<Walk>() + self.symbols.cells.len() * size_of::<Cell>()
    }

    /// Appends the next `symbols` to `out`.
    pub fn send(&mut self, symbols: usize, out: &mut Vec<u8>) -> Result<()> {
        let end = self.sent.saturating_add(symbols);
        if end as u64 > MOST {
            return Err(Error::Capacity(format!(
                "a stream has at most {MOST} symbols, got a request for {end}; send the keys"
            )));
        }
        reserve(out, HEAD.saturating_add(symbols.saturating_mul(FIXED + 3)))?;
        if self.sent == 0 {
            out.extend([MAGIC, self.hash.to_le_bytes(), self.keys().to_le_bytes()].as_flattened());
        }
        self.symbols.reach(end)?;
        for i in self.sent..end {
            let Cell { count, key, check } = self.symbols.cells[i];
            out.extend(key.to_le_bytes());
            out.extend(check.to_le_bytes());
            let off = count - expect_count(self.keys(), i as u64);
            let mut rest = ((off << 1) ^ (off >> 63)) as u64;
            while rest >= 0x80 {
                out.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            out.push(rest as u8);
        }
        self.sent = end;
        Ok(())
    }
}

/// Receives symbols, and decodes how the sender's set differs from its own.
pub struct Decoder {
    /// The sender's symbols less those of the own keys and of the decoded keys.
    symbols: Symbols,
    hash: u64,
    limit: u64,
    received: usize,
    /// Number of the sender's keys, once its head has arrived.
    peer: Option<u64>,
    /// The beginning of a head or a symbol that is not whole.
    rest: Vec<u8>,
    out: Vec<(Walk, i64)>,
    known: HashSet<u64>,
    done: bool,
}

impl Decoder {
    /// With the own keys; more than `limit` symbols are refused.
    pub fn new(hashes: Vec<u64>, hasher: &KeyHasher, limit: u64) -> Result<Self> {
        Ok(Decoder {
            symbols: Symbols::of(hashes, -1)?,
            hash: hash_number(hasher),
            limit: limit.min(MOST),
            received: 0,
            peer: None,
            rest: Vec::new(),
            out: Vec::new(),
            known: HashSet::new(),
            done: false,
        })
    }

    /// Distinct own keys.
    pub fn keys(&self) -> u64 {
        self.symbols.keys()
    }

    /// The number of keys that the sender states, once its head has arrived.
    pub fn peer_keys(&self) -> Option<u64> {
        self.peer
    }

    /// Number of symbols received.
    pub fn num_received(&self) -> u64 {
        self.received as u64
    }

    /// True if all differences are decoded.
    pub fn is_complete(&self) -> bool {
        self.done
    }

    /// Its approximate size in bytes.
    pub fn nbytes(&self) -> usize {
        let walks = self.symbols.walks.len() + 3 * self.out.len();
        walks * size_of::<Walk>() + self.symbols.cells.len() * size_of::<Cell>()
    }

    /// The keys decoded so far.
    pub fn decoded(&self) -> DecodedKeys {
        let of = |sign: i64| {
            let mut keys: Vec<u64> = self.out.iter().filter(|out| out.1 == sign).map(|out| out.0.hash).collect();
            keys.sort_unstable();
            keys
        };
        DecodedKeys { mine: of(-1), theirs: of(1), complete: self.done }
    }

    /// Reads bytes of the stream, in pieces of any length; true if no more are needed. After the end all bytes are
    /// ignored.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<bool> {
        while !self.done && !bytes.is_empty() {
            if self.rest.is_empty() && self.peer.is_some() && bytes.len() >= FIXED + VARINT {
                let len = self.symbol(bytes)?.unwrap_or(0);
                bytes = &bytes[len..];
                continue;
            }
            // Byte by byte only within a symbol that is cut, and at the end of a piece.
            self.rest.push(bytes[0]);
            bytes = &bytes[1..];
            let rest = std::mem::take(&mut self.rest);
            let taken = if self.peer.is_some() { self.symbol(&rest)?.is_some() } else { self.head(&rest)? };
            if !taken {
                self.rest = rest;
            }
        }
        Ok(self.done)
    }

    /// Reads the head, if it is whole.
    fn head(&mut self, bytes: &[u8]) -> Result<bool> {
        let known = bytes.len().min(MAGIC.len());
        if bytes[..known] != MAGIC[..known] {
            return Err(Error::format(
                "the stream holds no coded symbols of this version; is the peer another program?",
            ));
        }
        let (_, numbers) = bytes.split_at(known);
        let [hash, keys] = numbers.as_chunks().0 else { return Ok(false) };
        if u64::from_le_bytes(*hash) != self.hash {
            return Err(Error::Incompatible(
                "the symbols were made with another seed or secret; give both sides the same".into(),
            ));
        }
        self.peer = Some(u64::from_le_bytes(*keys));
        Ok(true)
    }

    /// Reads the symbol at the front of `bytes`, if it is whole; returns its length.
    fn symbol(&mut self, bytes: &[u8]) -> Result<Option<usize>> {
        let Some((fixed, count)) = bytes.split_at_checked(FIXED) else { return Ok(None) };
        let Some(last) = count.iter().take(VARINT).position(|byte| *byte < 0x80) else {
            if count.len() >= VARINT {
                return Err(Error::format("the stream of symbols is damaged: a count is not terminated"));
            }
            return Ok(None);
        };
        let zigzag = count[..=last].iter().rev().fold(0u64, |all, byte| all << 7 | u64::from(byte & 0x7f));
        let off = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        let (Some(key), Some(check)) = (fixed.first_chunk(), fixed.last_chunk()) else { return Ok(None) };
        let count = expect_count(self.peer.unwrap_or(0), self.received as u64).wrapping_add(off);
        self.take(Cell { count, key: u64::from_le_bytes(*key), check: u32::from_le_bytes(*check) })?;
        Ok(Some(FIXED + last + 1))
    }

    fn take(&mut self, symbol: Cell) -> Result<()> {
        if self.received as u64 >= self.limit {
            return Err(Error::Capacity(format!(
                "{} symbols are not enough to decode the difference; raise max_symbols, or send the keys themselves",
                self.limit
            )));
        }
        let at = self.received;
        if self.symbols.reach(at + 1)? {
            let cells = &mut self.symbols.cells;
            let horizon = cells.len() as u32;
            for (walk, times) in &mut self.out {
                let (hash, check) = (walk.hash, check(walk.hash));
                walk.until(horizon, |at| cells[at].put(hash, check, -*times));
            }
        }
        self.symbols.cells[at].join(symbol, 1);
        self.received += 1;
        self.peel(at)?;
        self.done =
            self.symbols.cells[0].is_empty() && self.symbols.cells[..self.received].iter().all(|cell| cell.is_empty());
        Ok(())
    }

    /// Decodes keys, beginning with symbol `at`.
    fn peel(&mut self, at: usize) -> Result<()> {
        if !self.symbols.cells[at].is_pure() {
            return Ok(());
        }
        let (mut ready, mut path) = (vec![at], Vec::new());
        while let Some(at) = ready.pop() {
            let cell = self.symbols.cells[at];
            // An own key can only be missing there, a foreign one only here; no key is decoded twice.
            let Cell { count: times, key, .. } = cell;
            if !cell.is_pure() || self.symbols.has(key) != (times < 0) || self.known.contains(&key) {
                continue;
            }
            let mut walk = Walk::of(key);
            path.clear();
            walk.until(self.symbols.cells.len() as u32, |at| path.push(at));
            // Each key empties a symbol for good, unless symbols are nonsense.
            if path.binary_search(&at).is_err() || self.out.len() >= self.received {
                continue;
            }
            reserve(&mut self.out, 1)?;
            self.out.push((walk, times));
            self.known.insert(key);
            for &at in &path {
                self.symbols.cells[at].put(key, cell.check, -times);
                if at < self.received && self.symbols.cells[at].is_pure() {
                    ready.push(at);
                }
            }
        }
        Ok(())
    }
}
