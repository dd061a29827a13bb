//! [`Transfers`]: filters on their way in pieces, over whatever connections the pieces come and go.
//!
//! The number of a piece tells, from its 45th bit on, which dump it is of: two clients that dump one filter at once have
//! pieces of one state each. Numbers are below 2^52, as clients in JavaScript count no further.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::halt::{Done, Halt};
use crate::fault::Fault;
use crate::kind::Settings;

/// Bytes of all filters that are on their way in pieces.
const MOST: u64 = 1 << 30;
/// Dumps at a time, so that their numbers have 8 bits.
const DUMPS: i64 = 255;
/// Bits of the number of a piece that tell its place.
const PLACE: u32 = 44;
/// How long a filter may be on its way without a piece asked for, or sent.
const PATIENCE: Duration = Duration::from_secs(60);
/// Largest piece.
const PIECE: usize = 16 << 20;

/// A filter that goes out: its file as it was when its head was asked for.
struct Outgoing {
    id: u64,
    bytes: Arc<Vec<u8>>,
    used: Instant,
    _reserved: Reserved,
}

/// A filter that comes in.
pub(super) struct Incoming {
    pub(super) settings: Settings,
    pub(super) bytes: Vec<u8>,
    total: usize,
    used: Instant,
    _reserved: Reserved,
}

#[derive(Default)]
struct All {
    last: i64,
    out: BTreeMap<i64, Outgoing>,
    coming: HashMap<Vec<u8>, Incoming>,
}

impl All {
    fn sweep(&mut self) {
        let late = |used: &Instant| used.elapsed() > PATIENCE;
        self.out.retain(|_, dump| !late(&dump.used));
        self.coming.retain(|_, filter| !late(&filter.used));
    }
}

/// See the head of this file.
#[derive(Default)]
pub struct Transfers {
    all: Mutex<All>,
    taken: Arc<AtomicU64>,
}

/// A share of [`MOST`].
struct Reserved(Arc<AtomicU64>, u64);

impl Drop for Reserved {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::AcqRel);
    }
}

/// The place that the number of a piece tells, from 1 on.
fn place(number: i64) -> i64 {
    number & ((1 << PLACE) - 1)
}

impl Transfers {
    fn reserve(&self, bytes: u64) -> Done<Reserved> {
        if self.taken.fetch_add(bytes, Ordering::AcqRel).saturating_add(bytes) > MOST {
            self.taken.fetch_sub(bytes, Ordering::AcqRel);
            let text =
                format!("ERR filters of {bytes} bytes more cannot be on their way in pieces: all may have {MOST}");
            return Err(Halt::text(text));
        }
        Ok(Reserved(self.taken.clone(), bytes))
    }

    /// Lets go of what nobody has asked for, or sent more of, for a minute.
    pub(super) fn sweep(&self) {
        self.all.lock().sweep();
    }

    /// Begins a dump of filter `id`, whose file has so many bytes and is made by `file`: the number of its head.
    pub(super) fn begin(&self, id: u64, nbytes: u64, file: impl FnOnce() -> Result<Vec<u8>, Fault>) -> Done<i64> {
        self.sweep();
        let reserved = self.reserve(nbytes)?;
        let bytes = Arc::new(file()?);
        let mut all = self.all.lock();
        let next = (1..=DUMPS).map(|step| (all.last + step - 1) % DUMPS + 1).find(|dump| !all.out.contains_key(dump));
        let dump = next.ok_or_else(|| Halt::text(format!("ERR {DUMPS} dumps are on their way, the most at a time")))?;
        all.last = dump;
        all.out.insert(dump, Outgoing { id, bytes, used: Instant::now(), _reserved: reserved });
        Ok(dump << PLACE | 1)
    }

    /// The piece of filter `id` that is asked for by a number: the number of the next one, or 0, and where it lies.
    pub(super) fn piece(&self, id: u64, number: i64) -> Option<(i64, Arc<Vec<u8>>, Range<usize>)> {
        let mut all = self.all.lock();
        let dump = number >> PLACE;
        let outgoing = all.out.get_mut(&dump).filter(|outgoing| outgoing.id == id)?;
        outgoing.used = Instant::now();
        let (bytes, from) = (outgoing.bytes.clone(), usize::try_from(place(number) - 1).ok()?);
        let range = from.min(bytes.len())..bytes.len().min(from.saturating_add(PIECE));
        if range.is_empty() {
            all.out.remove(&dump);
            return Some((0, bytes, range));
        }
        Some((number + range.len() as i64, bytes, range))
    }

    /// Waits for a filter of this name, in place of another one that was waited for.
    pub(super) fn expect(&self, name: &[u8], settings: Settings, total: u64) -> Done {
        self.sweep();
        let mut all = self.all.lock();
        all.coming.remove(name);
        let reserved = self.reserve(total)?;
        let (bytes, used) = (Vec::new(), Instant::now());
        let filter = Incoming { settings, bytes, total: total as usize, used, _reserved: reserved };
        all.coming.insert(name.to_vec(), filter);
        Ok(())
    }

    /// Takes in a piece: the filter, once it is whole.
    pub(super) fn take(&self, name: &[u8], number: i64, piece: &[u8]) -> Done<Option<Incoming>> {
        let mut all = self.all.lock();
        let filter = all.coming.get_mut(name).ok_or_else(Fault::missing)?;
        let start = u64::try_from(number).ok().and_then(|_| place(number).checked_sub(1 + piece.len() as i64));
        if start != Some(filter.bytes.len() as i64) {
            return Err(Halt::text("ERR invalid offset - no link found"));
        }
        if filter.bytes.len() + piece.len() > filter.total {
            return Err(Halt::text("ERR invalid chunk - Too big for current filter"));
        }
        filter.bytes.extend_from_slice(piece);
        filter.used = Instant::now();
        let whole = filter.bytes.len() == filter.total;
        Ok(if whole { all.coming.remove(name) } else { None })
    }

    /// True of the number of a head.
    pub(super) fn is_head(number: i64) -> bool {
        number > 0 && place(number) == 1
    }
}
