//! [`Places`]: the places for connections of a port, and which connection is closed for a new one when all are taken.
//!
//! A connection is a stranger until a whole command of it was authorized. Afterwards it waits whenever the service
//! waits for its client: for the next command, the rest of one, or until it reads its replies. When all places are
//! taken, the stranger that has sent nothing for the longest time is closed; without strangers, or if all of them have
//! just come, whoever has sent nothing for the longest time. Clients with a token, and commands in progress, are never
//! closed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

/// How long a connection that gives up its place may take to close, and how many are asked to.
const CLOSING: Duration = Duration::from_millis(50);
const TRIES: usize = 3;
/// How long a new connection may take to send its first command before it may lose its place.
const GRACE: Duration = Duration::from_millis(200);

/// The states of a connection.
mod state {
    pub(super) const STRANGER: u8 = 0;
    pub(super) const WORKING: u8 = 1;
    pub(super) const WAITING: u8 = 2;
    pub(super) const EVICTED: u8 = 3;
}

/// The place of one connection.
#[derive(Debug)]
pub(super) struct Place {
    id: u64,
    state: AtomicU8,
    has_token: AtomicBool,
    /// When it last sent something, in microseconds since the port was opened; a stranger's changes under the lock of
    /// the strangers.
    last_active: AtomicU64,
    /// Notified when the connection must close.
    evicted: Notify,
}

/// Strangers, by the time at which they last sent something, and their numbers.
type Strangers = BTreeMap<(u64, u64), Arc<Place>>;

/// The places of a port.
#[derive(Debug)]
pub(super) struct Places {
    most: usize,
    since: Instant,
    taken: AtomicUsize,
    next: AtomicU64,
    evicted: AtomicU64,
    strangers: Mutex<Strangers>,
    all: Mutex<BTreeMap<u64, Arc<Place>>>,
    /// Notified when a connection was closed.
    left: Notify,
}

/// Holds a place until it is dropped.
pub(super) struct PlaceGuard {
    places: Arc<Places>,
    pub(super) place: Arc<Place>,
}

impl Drop for PlaceGuard {
    fn drop(&mut self) {
        self.places.leave(&self.place);
    }
}

impl Place {
    fn change(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn last_active(&self) -> u64 {
        self.last_active.load(Ordering::Relaxed)
    }

    /// Its key among the strangers.
    fn key(&self) -> (u64, u64) {
        (self.last_active(), self.id)
    }

    fn is_in(&self, state: u8) -> bool {
        self.state.load(Ordering::Acquire) == state
    }

    /// Sets whether the client has authenticated with a token, which keeps its connection open.
    pub(super) fn set_token(&self, has_token: bool) {
        self.has_token.store(has_token, Ordering::Release);
    }

    /// Records that the service no longer waits for its client; false if the connection must close.
    pub(super) fn work(&self) -> bool {
        self.change(state::WAITING, state::WORKING) || !self.is_in(state::EVICTED)
    }

    /// Waits until the connection must close.
    pub(super) async fn wait_for_eviction(&self) {
        self.evicted.notified().await;
    }

    /// Closes the connection if it is in this state.
    fn evict(&self, from: u8) -> bool {
        let done = self.change(from, state::EVICTED);
        if done {
            self.evicted.notify_one();
        }
        done
    }
}

impl Places {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Places {
            most,
            since: Instant::now(),
            taken: AtomicUsize::new(0),
            next: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            strangers: Mutex::default(),
            all: Mutex::default(),
            left: Notify::new(),
        })
    }

    /// The number of connections that made room for others.
    pub(super) fn num_evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// A place for a new connection, for which another one may be closed; `None` if none may be. One task at a time.
    pub(super) async fn enter(self: &Arc<Self>) -> Option<PlaceGuard> {
        for _ in 0..TRIES {
            let left = self.left.notified();
            tokio::pin!(left);
            left.as_mut().enable();
            if self.taken.load(Ordering::Acquire) < self.most {
                return Some(self.take());
            }
            if !self.evict_one(self.now()) {
                return None;
            }
            let _ = timeout(CLOSING, left).await;
        }
        (self.taken.load(Ordering::Acquire) < self.most).then(|| self.take())
    }

    /// A place for a connection, even if all are taken.
    pub(super) fn take(self: &Arc<Self>) -> PlaceGuard {
        self.taken.fetch_add(1, Ordering::AcqRel);
        let place = Arc::new(Place {
            id: self.next.fetch_add(1, Ordering::Relaxed),
            state: AtomicU8::new(state::STRANGER),
            has_token: AtomicBool::new(false),
            last_active: AtomicU64::new(self.now()),
            evicted: Notify::new(),
        });
        self.all.lock().insert(place.id, place.clone());
        self.strangers.lock().insert(place.key(), place.clone());
        PlaceGuard { places: self.clone(), place }
    }

    fn leave(&self, place: &Place) {
        self.all.lock().remove(&place.id);
        self.strangers.lock().remove(&place.key());
        self.taken.fetch_sub(1, Ordering::AcqRel);
        self.left.notify_waiters();
    }

    /// Closes a connection at this time; false if none may be closed.
    fn evict_one(&self, now: u64) -> bool {
        // Whoever is chosen may send a command in the meantime, and is a client at work then.
        while let Some((place, from)) = self.find_longest(now) {
            if place.evict(from) {
                self.strangers.lock().remove(&place.key());
                self.evicted.fetch_add(1, Ordering::Relaxed);
                return true;
            }
        }
        false
    }

    /// The connection that must give up its place at this time, and its state.
    fn find_longest(&self, now: u64) -> Option<(Arc<Place>, u8)> {
        let strangers = self.strangers.lock();
        let stranger = strangers.values().find(|place| place.is_in(state::STRANGER)).cloned();
        drop(strangers);
        let grace = GRACE.as_micros() as u64;
        if let Some(stranger) = &stranger
            && now.saturating_sub(stranger.last_active()) >= grace
        {
            return Some((stranger.clone(), state::STRANGER));
        }
        let all = self.all.lock();
        let may_close = |place: &&Arc<Place>| place.is_in(state::WAITING) && !place.has_token.load(Ordering::Acquire);
        let client = all.values().filter(may_close).min_by_key(|place| place.last_active()).cloned();
        drop(all);
        match (stranger, client) {
            (Some(stranger), Some(client)) if stranger.last_active() <= client.last_active() => {
                Some((stranger, state::STRANGER))
            }
            (_, Some(client)) => Some((client, state::WAITING)),
            (stranger, None) => stranger.map(|place| (place, state::STRANGER)),
        }
    }

    fn now(&self) -> u64 {
        self.since.elapsed().as_micros() as u64
    }

    /// Records that something arrived from a connection.
    pub(super) fn note_activity(&self, place: &Arc<Place>) {
        if place.is_in(state::STRANGER) {
            let mut strangers = self.strangers.lock();
            if strangers.remove(&place.key()).is_some() {
                place.last_active.store(self.now(), Ordering::Relaxed);
                strangers.insert(place.key(), place.clone());
            }
        }
    }

    /// Records that a whole command of a stranger is authorized; false if the connection must close instead.
    pub(super) fn admit(&self, place: &Place) -> bool {
        let admitted = place.change(state::STRANGER, state::WORKING);
        if admitted {
            self.strangers.lock().remove(&place.key());
        }
        admitted || place.is_in(state::WORKING)
    }

    /// Records that the service waits for a client from now on.
    pub(super) fn wait_for(&self, place: &Place) {
        if place.is_in(state::WORKING) {
            place.last_active.store(self.now(), Ordering::Relaxed);
            place.change(state::WORKING, state::WAITING);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn enter(places: &Arc<Places>) -> Option<PlaceGuard> {
        timeout(Duration::from_secs(120), places.enter()).await.unwrap_or_default()
    }

    fn is_evicted(guard: &PlaceGuard) -> bool {
        guard.place.is_in(state::EVICTED)
    }

    fn client(places: &Arc<Places>, has_token: bool) -> PlaceGuard {
        let guard = places.take();
        guard.place.set_token(has_token);
        assert!(places.admit(&guard.place));
        places.wait_for(&guard.place);
        guard
    }

    #[tokio::test]
    async fn the_stranger_that_is_silent_longest_makes_room() {
        let places = Places::new(3);
        let client = client(&places, false);
        let (first, second) = (places.take(), places.take());
        std::thread::sleep(GRACE);
        places.note_activity(&first.place);
        let waiting = tokio::spawn({
            let places = places.clone();
            async move { enter(&places).await }
        });
        second.place.wait_for_eviction().await;
        assert!(is_evicted(&second) && !is_evicted(&first) && !is_evicted(&client));
        // An evicted connection executes no command.
        assert!(!places.admit(&second.place));
        drop(second);
        assert!(waiting.await.is_ok_and(|guard| guard.is_some()));
        assert_eq!(places.num_evicted(), 1);
    }

    #[tokio::test]
    async fn without_strangers_the_longest_idle_client_without_a_token_makes_room() {
        let places = Places::new(4);
        let with_token = client(&places, true);
        let working = client(&places, false);
        assert!(working.place.work());
        let longest = client(&places, false);
        std::thread::sleep(Duration::from_millis(2));
        let shortest = client(&places, false);
        assert!(places.evict_one(places.now()));
        assert!(is_evicted(&longest) && !longest.place.work());
        drop(longest);
        let _another = client(&places, true);
        assert!(places.evict_one(places.now()));
        assert!(is_evicted(&shortest));
        assert!(!is_evicted(&with_token) && !is_evicted(&working));
    }

    #[tokio::test]
    async fn a_new_connection_has_time_for_its_first_command() {
        let places = Places::new(2);
        let client = client(&places, false);
        std::thread::sleep(Duration::from_millis(2));
        let new = places.take();
        // Its time begins with it, and this test may be held up for longer.
        let now = new.place.last_active() + GRACE.as_micros() as u64 - 1;
        assert!(places.evict_one(now));
        assert!(is_evicted(&client) && !is_evicted(&new));
        assert!(places.evict_one(now));
        assert!(is_evicted(&new));
    }

    #[tokio::test]
    async fn clients_with_tokens_and_commands_in_progress_keep_their_places() {
        let places = Places::new(2);
        let with_token = client(&places, true);
        let working = client(&places, false);
        assert!(working.place.work());
        assert!(enter(&places).await.is_none());
        drop(with_token);
        assert!(enter(&places).await.is_some());
    }
}
