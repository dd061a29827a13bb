//! [`Transfers`]: filters on their way in pieces, over whatever connections the pieces come and go.
//!
//! The number of a piece tells, from its 45th bit on, which dump it is of: two clients that dump one filter at once have
//! pieces of one state each. Numbers are below 2^52, as clients in JavaScript count no further.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::error::{CommandError, CommandResult};
use crate::budget::{Budget, Held};
use crate::fault::Fault;
use crate::kind::Settings;
use crate::store::Snapshot;

/// Dumps at a time, so that their numbers have 8 bits.
const DUMPS: i64 = 255;
/// Bits of the number of a piece that tell its place.
const PLACE: u32 = 44;
/// How long a filter may be on its way without a piece asked for, or sent.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Largest piece.
const PIECE: u64 = 16 << 20;

/// A filter that goes out: its file as it was when its head was asked for.
struct Outgoing {
    id: u64,
    file: Arc<Snapshot>,
    used: Instant,
}

/// A filter that comes in.
pub(super) struct Incoming {
    pub(super) settings: Settings,
    pub(super) bytes: Vec<u8>,
    total: usize,
    used: Instant,
    /// What the bytes take, by what has come in and not by what was stated.
    held: Held,
    /// Clients that sent pieces: with the last of them it is dropped.
    clients: HashSet<u64>,
}

#[derive(Default)]
struct All {
    last: i64,
    out: BTreeMap<i64, Outgoing>,
    incoming: HashMap<Vec<u8>, Incoming>,
}

impl All {
    fn sweep(&mut self) {
        let late = |used: &Instant| used.elapsed() > TIMEOUT;
        self.out.retain(|_, dump| !late(&dump.used));
        self.incoming.retain(|_, filter| !late(&filter.used));
    }
}

impl Incoming {
    /// Room for a piece more, taken from the budget: a quarter beyond, and never more than the filter has.
    fn make_room(&mut self, piece: usize) -> Result<(), Fault> {
        let wanted = self.bytes.len() + piece;
        if wanted > self.bytes.capacity() {
            let all = wanted.saturating_add(wanted / 4).min(self.total);
            self.held.set(all as u64)?;
            self.bytes.reserve_exact(all - self.bytes.len());
        }
        Ok(())
    }
}

/// See the head of this file.
#[derive(Default)]
pub struct Transfers {
    all: Mutex<All>,
    /// How many come in.
    incoming: AtomicUsize,
}

/// The place that the number of a piece tells, from 1 on.
fn offset_of(number: i64) -> i64 {
    number & ((1 << PLACE) - 1)
}

impl Transfers {
    /// Lets go of what nobody has asked for, or sent more of, for a minute.
    pub(super) fn sweep(&self) {
        let mut all = self.all.lock();
        all.sweep();
        self.incoming.store(all.incoming.len(), Ordering::Release);
    }

    /// Begins a dump of filter `id`: the number of its head.
    pub(super) fn begin(&self, id: u64, file: Arc<Snapshot>) -> CommandResult<i64> {
        self.sweep();
        let mut all = self.all.lock();
        let next = (1..=DUMPS).map(|step| (all.last + step - 1) % DUMPS + 1).find(|dump| !all.out.contains_key(dump));
        let dump =
            next.ok_or_else(|| CommandError::new(format!("ERR {DUMPS} dumps are on their way, the most at a time")))?;
        all.last = dump;
        all.out.insert(dump, Outgoing { id, file, used: Instant::now() });
        Ok(dump << PLACE | 1)
    }

    /// The piece of filter `id` that is asked for by a number: the number of the next one, or 0, and where it lies.
    pub(super) fn chunk(&self, id: u64, number: i64) -> Option<(i64, Arc<Snapshot>, Range<u64>)> {
        let mut all = self.all.lock();
        let dump = number >> PLACE;
        let outgoing = all.out.get_mut(&dump).filter(|outgoing| outgoing.id == id)?;
        outgoing.used = Instant::now();
        let (file, from) = (outgoing.file.clone(), u64::try_from(offset_of(number) - 1).ok()?);
        let range = from.min(file.nbytes())..file.nbytes().min(from.saturating_add(PIECE));
        if range.is_empty() {
            all.out.remove(&dump);
            return Some((0, file, range));
        }
        Some((number + (range.end - range.start) as i64, file, range))
    }

    /// Waits for a filter of this name from a client, in place of another one that was waited for.
    pub(super) fn begin_incoming(
        &self,
        name: &[u8],
        settings: Settings,
        total: u64,
        client: u64,
        budget: &Arc<Budget>,
    ) {
        self.sweep();
        let (bytes, used, held) = (Vec::new(), Instant::now(), budget.empty());
        let filter = Incoming { settings, bytes, total: total as usize, used, held, clients: HashSet::from([client]) };
        let mut all = self.all.lock();
        all.incoming.insert(name.to_vec(), filter);
        self.incoming.store(all.incoming.len(), Ordering::Release);
    }

    /// Takes in a piece from a client: the filter, once it is whole.
    pub(super) fn receive(
        &self,
        name: &[u8],
        number: i64,
        piece: &[u8],
        client: u64,
    ) -> CommandResult<Option<Incoming>> {
        let mut all = self.all.lock();
        let filter = all.incoming.get_mut(name).ok_or_else(Fault::missing)?;
        let start = u64::try_from(number).ok().and_then(|_| offset_of(number).checked_sub(1 + piece.len() as i64));
        if start != Some(filter.bytes.len() as i64) {
            return Err(CommandError::new("ERR invalid offset - no link found"));
        }
        if filter.bytes.len() + piece.len() > filter.total {
            return Err(CommandError::new("ERR invalid chunk - Too big for current filter"));
        }
        filter.make_room(piece.len())?;
        filter.bytes.extend_from_slice(piece);
        filter.used = Instant::now();
        filter.clients.insert(client);
        let whole = filter.bytes.len() == filter.total;
        let filter = if whole { all.incoming.remove(name) } else { None };
        self.incoming.store(all.incoming.len(), Ordering::Release);
        Ok(filter)
    }

    /// A client is gone: so is what only it has sent pieces of.
    pub(super) fn forget(&self, client: u64) {
        if self.incoming.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut all = self.all.lock();
        all.incoming.retain(|_, filter| !filter.clients.remove(&client) || !filter.clients.is_empty());
        self.incoming.store(all.incoming.len(), Ordering::Release);
    }

    /// True of the number of a head.
    pub(super) fn is_head(number: i64) -> bool {
        number > 0 && offset_of(number) == 1
    }
}
