//! [`Transfers`]: filters that are sent or received in chunks, over any connections.
//!
//! The number of a chunk identifies its dump from the 45th bit on: if two clients dump one filter at the same time,
//! each gets chunks of one state. Numbers stay below 2^52, because clients in JavaScript cannot count further.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::error::{CommandError, CommandResult};
use crate::budget::{Budget, Reservation};
use crate::fault::Fault;
use crate::kind::Settings;
use crate::store::{Snapshot, check_name};

/// The most dumps at a time, so that their numbers have 8 bits.
const DUMPS: i64 = 255;
/// The most filters that are received at a time.
const LOADS: usize = 255;
/// The bytes charged for a filter of which only the head has arrived: a name of 128 bytes, up to eight notes of 16
/// bytes, a client and the rest of [`Incoming`].
const EMPTY: u64 = 1 << 10;
/// The bits of a chunk's number that hold its offset.
const PLACE: u32 = 44;
/// A transfer without a chunk for this long is dropped.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The largest chunk, in bytes.
const PIECE: u64 = 16 << 20;

/// A filter that is sent: its file at the time when the head was requested.
struct Outgoing {
    id: u64,
    file: Arc<Snapshot>,
    used: Instant,
}

pub(super) struct Incoming {
    pub(super) settings: Settings,
    pub(super) bytes: Vec<u8>,
    total: usize,
    used: Instant,
    /// The memory charged for the head and the bytes received, not for the length stated; at the end also for the
    /// filter, until it is counted with all others.
    held: Reservation,
    /// The clients that sent chunks. When the last of them disconnects, the transfer is dropped.
    clients: HashSet<u64>,
}

#[derive(Default)]
struct TransferState {
    last: i64,
    out: BTreeMap<i64, Outgoing>,
    incoming: HashMap<Vec<u8>, Incoming>,
}

impl TransferState {
    fn sweep(&mut self) {
        let late = |used: &Instant| used.elapsed() > TIMEOUT;
        self.out.retain(|_, dump| !late(&dump.used));
        self.incoming.retain(|_, filter| !late(&filter.used));
    }
}

impl Incoming {
    /// Reserves space for another chunk, charged to the budget: a quarter more than needed, and never more than the
    /// filter has.
    fn make_room(&mut self, piece: usize) -> Result<(), Fault> {
        let wanted = self.bytes.len() + piece;
        if wanted > self.bytes.capacity() {
            let all = wanted.saturating_add(wanted / 4).min(self.total);
            self.held.set(EMPTY + all as u64)?;
            self.bytes.reserve_exact(all - self.bytes.len());
        }
        Ok(())
    }
}

#[derive(Default)]
pub struct Transfers {
    all: Mutex<TransferState>,
    /// The number of filters being received.
    incoming: AtomicUsize,
}

/// The offset in the number of a chunk, from 1 on.
fn offset_of(number: i64) -> i64 {
    number & ((1 << PLACE) - 1)
}

impl Transfers {
    /// Drops transfers without a chunk for a minute.
    pub(super) fn sweep(&self) {
        let mut all = self.all.lock();
        all.sweep();
        self.incoming.store(all.incoming.len(), Ordering::Release);
    }

    /// Begins a dump of filter `id`; returns the number of its head.
    pub(super) fn begin(&self, id: u64, file: Arc<Snapshot>) -> CommandResult<i64> {
        self.sweep();
        let mut all = self.all.lock();
        let next = (1..=DUMPS).map(|step| (all.last + step - 1) % DUMPS + 1).find(|dump| !all.out.contains_key(dump));
        let dump = next.ok_or_else(|| CommandError::new(format!("ERR {DUMPS} dumps are in progress, the maximum")))?;
        all.last = dump;
        all.out.insert(dump, Outgoing { id, file, used: Instant::now() });
        Ok(dump << PLACE | 1)
    }

    /// The chunk of filter `id` with this number: the number of the next one, or 0, and its range in the file.
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

    /// Begins to receive a filter from a client, in place of any transfer under the same name. A fault changes nothing.
    pub(super) fn begin_incoming(
        &self,
        name: &[u8],
        settings: Settings,
        total: u64,
        client: u64,
        budget: &Arc<Budget>,
    ) -> CommandResult {
        check_name(name)?;
        let held = budget.take(EMPTY)?;
        // Outside the lock, because the old transfer may have much memory to free.
        let _before = {
            let mut all = self.all.lock();
            all.sweep();
            if all.incoming.len() >= LOADS && !all.incoming.contains_key(name) {
                return Err(CommandError::new(format!("ERR {LOADS} loads are in progress, the maximum")));
            }
            let (bytes, used, clients) = (Vec::new(), Instant::now(), HashSet::from([client]));
            let filter = Incoming { settings, bytes, total: total as usize, used, held, clients };
            let before = all.incoming.insert(name.to_vec(), filter);
            self.incoming.store(all.incoming.len(), Ordering::Release);
            before
        };
        Ok(())
    }

    /// Receives a chunk from a client; returns the filter once it is complete. A fault changes nothing.
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
        let whole = filter.bytes.len() + piece.len() == filter.total;
        if whole {
            // For the filter that is made of the bytes. Now, because a fault must leave the transfer in place.
            filter.held.grow(filter.total as u64)?;
        }
        filter.bytes.extend_from_slice(piece);
        filter.used = Instant::now();
        filter.clients.insert(client);
        let filter = if whole { all.incoming.remove(name) } else { None };
        self.incoming.store(all.incoming.len(), Ordering::Release);
        Ok(filter)
    }

    /// Removes a client, and the transfers to which only it contributed.
    pub(super) fn forget(&self, client: u64) {
        if self.incoming.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut all = self.all.lock();
        all.incoming.retain(|_, filter| !filter.clients.remove(&client) || !filter.clients.is_empty());
        self.incoming.store(all.incoming.len(), Ordering::Release);
    }

    /// True if this is the number of a head.
    pub(super) fn is_head(number: i64) -> bool {
        number > 0 && offset_of(number) == 1
    }
}

#[cfg(test)]
impl Transfers {
    /// Makes all dumps look abandoned.
    pub(super) fn abandon(&self) {
        let long_ago = Instant::now().checked_sub(TIMEOUT + Duration::from_secs(1));
        let mut all = self.all.lock();
        all.out.values_mut().for_each(|dump| dump.used = long_ago.unwrap_or(dump.used));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Spec;

    fn begin(transfers: &Transfers, name: &[u8], client: u64, budget: &Arc<Budget>) -> Result<(), String> {
        refusal(transfers.begin_incoming(name, Settings::of(Spec::default()), 1 << 20, client, budget))
    }

    fn refusal<T>(done: CommandResult<T>) -> Result<T, String> {
        done.map_err(|error| match error {
            CommandError::Refused(text) => text.into_owned(),
            _ => unreachable!("a transfer waits for nothing"),
        })
    }

    #[test]
    fn a_load_under_an_invalid_name_is_refused_and_nothing_is_held() {
        let (transfers, budget) = (Transfers::default(), Budget::new(1 << 30));
        for name in [&b""[..], b"a b", &[b'x'; 129], &vec![b'x'; 8 << 20]] {
            assert!(begin(&transfers, name, 1, &budget).is_err_and(|text| text.contains("a name is 1 to 128")));
        }
        assert_eq!((transfers.all.lock().incoming.len(), budget.peak()), (0, 0));
    }

    #[test]
    fn loads_in_progress_are_limited_and_their_end_makes_room() -> Result<(), String> {
        let (transfers, budget) = (Transfers::default(), Budget::new(1 << 30));
        for number in 0..LOADS {
            begin(&transfers, format!("n{number}").as_bytes(), 1 + number as u64 % 2, &budget)?;
        }
        let full = |text: String| text == "ERR 255 loads are in progress, the maximum";
        assert!(begin(&transfers, b"more", 3, &budget).is_err_and(full));
        // Another start of a load takes the place of the first.
        begin(&transfers, b"n7", 1, &budget)?;
        assert!(begin(&transfers, b"more", 3, &budget).is_err_and(full));
        transfers.forget(2);
        begin(&transfers, b"more", 3, &budget)?;
        let before = Instant::now().checked_sub(TIMEOUT + Duration::from_secs(1));
        let Some(before) = before else { return Ok(()) };
        transfers.all.lock().incoming.values_mut().for_each(|filter| filter.used = before);
        begin(&transfers, b"new", 3, &budget)?;
        assert_eq!(transfers.all.lock().incoming.len(), 1);
        Ok(())
    }

    #[test]
    fn a_load_is_charged_from_its_head_until_its_end() -> Result<(), String> {
        let (transfers, budget) = (Transfers::default(), Budget::new(100 << 10));
        begin(&transfers, &[b'x'; 128], 1, &budget)?;
        let head = budget.used();
        assert!(head >= (128 + size_of::<Incoming>()) as u64);
        let number = |end: i64| (1 << PLACE) + 1 + end;
        let piece = [7; 1000];
        refusal(transfers.receive(&[b'x'; 128], number(1000), &piece, 1))?;
        assert!(budget.used() >= head + 1000);
        begin(&transfers, &[b'x'; 128], 1, &budget)?;
        assert_eq!(budget.used(), head);
        // Without memory, neither is a load begun nor the one in progress lost.
        let others = (100 << 10) - head;
        let held = budget.take(others).map_err(|fault| fault.text)?;
        assert!(begin(&transfers, b"y", 1, &budget).is_err_and(|text| text.starts_with("OOM")));
        drop(held);
        refusal(transfers.receive(&[b'x'; 128], number(1000), &piece, 1))?;
        transfers.forget(1);
        assert_eq!(budget.used(), 0);
        Ok(())
    }

    #[test]
    fn the_last_chunk_of_a_load_can_be_repeated_after_memory_ran_out() -> Result<(), String> {
        let (transfers, budget) = (Transfers::default(), Budget::new(8 << 10));
        let settings = Settings::of(Spec::default());
        refusal(transfers.begin_incoming(b"x", settings, 1000, 1, &budget))?;
        let other = budget.take((8 << 10) - EMPTY - 1000).map_err(|fault| fault.text)?;
        let number = (1 << PLACE) + 1 + 1000;
        let last = || refusal(transfers.receive(b"x", number, &[7; 1000], 1));
        assert!(last().is_err_and(|text| text.starts_with("OOM")));
        drop(other);
        let whole = last()?;
        assert!(whole.is_some_and(|whole| whole.bytes == [7; 1000] && budget.used() >= 2000));
        assert_eq!(budget.used(), 0);
        Ok(())
    }
}
