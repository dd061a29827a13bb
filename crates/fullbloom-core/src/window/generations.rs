//! [`Generations`]: g planes of lines used in rotation; the oldest is cleared to become the newest.
//!
//! A key is looked up in all planes and written to the active one. To remember n keys, a plane takes n_gen = ceil(n /
//! (g - 1)) keys and is sized for the rate 1 - (1 - p)^(1/g), so that g full planes together have rate p, and g - 1
//! full ones always follow the active one. See [`crate::scheme::planes`] for the cells.
//!
//! A window of `w` seconds has planes of w / (g - 1) seconds instead: a key lives through at least g - 1 whole planes
//! after its own. Keys may then arrive in bursts, so every plane is sized for all n. Time passes only by
//! [`Generations::advance`].

use std::marker::PhantomData;
use std::ops::Range;

use crate::cells::Memory;
use crate::container::{Container, Header, Section, kind, tag};
use crate::error::{Error, Result};
use crate::key::KeyHasher;
use crate::scheme::Scheme;
use crate::scheme::planes::{Planes, Rule};
use crate::sizing::{Law, any_among, blocked, format_rate};
use crate::structure::memories::memory_methods;
use crate::structure::traits::write_methods;
use crate::structure::{Addable, CellCounts, CellStats, Declared, Filter, Sections};
use crate::window::plan::{MAX_GENERATIONS, Plan, too_large};
use crate::window::steps::Steps;

/// The difference between one variant of generations and another.
pub trait Kind: Send + Sync + Sized + 'static {
    /// Number in files.
    const VARIANT: u16;
    /// Least and largest number of generations.
    const RANGE: [usize; 2];
}

/// A [`structure!`](crate::structure::declaration) with the fields of all windows, and the reader of their files.
macro_rules! window {
    (
        $(#[doc = $summary:tt])* class $Class:ident;
        parameters $parameters:tt
        $(#[doc = $rest:tt])*
    ) => {
        $crate::structure::declaration::structure! {
            $(#[doc = $summary])* class $Class;
            parameters $parameters
            $(#[doc = $rest])*
            fields {
                /// Keys of the window.
                capacity: u64 = |f| f.plan.capacity, CAPACITY;
                /// Bound on the rate of false positives.
                fpr: f64 = |f| f.plan.fpr, FPR;
                /// Number of generations.
                pub generations: usize = |f| f.plan.generations, PLANES;
                /// Keys of a generation.
                pub keys_per_generation: u64 = |f| f.plan.share();
                /// True if a lookup refreshes a known key.
                pub refresh: bool = |f| f.plan.refresh, RULE;
                /// Seconds for which keys are remembered, or None for a window counted in keys.
                pub window: Option<f64> = |f| f.plan.window, WINDOW;
                /// Latest time given to advance(), or None.
                pub now: Option<f64> = |f| f.clock.map(|(now, _)| now);
                /// Lines of 64 bytes in a generation.
                lines: u64 = |f| f.lines, LINES;
                /// Number of bits, of all generations.
                pub num_bits: u64 = |f| f.memory.len_bytes() as u64 * 8;
                /// k, bits of a key in a generation.
                pub num_hashes: u32 = |f| f.planes.num_hashes(), NUM_HASHES;
                /// The generation that takes new keys.
                active: usize = |f| f.active, ACTIVE;
            }
        }

        impl $crate::structure::Loadable for $Class {
            fn load(header: &$crate::container::Header, hasher: $crate::key::KeyHasher, memory: $crate::structure::Sections<'_>) -> Result<Self> {
                let Stored { capacity, fpr, generations, refresh, window, lines, num_hashes, active } =
                    Stored::read(header)?;
                let plan = Plan { capacity, fpr, generations, refresh, window };
                Self::restore(header, hasher, memory, plan, lines, num_hashes, active)
            }
        }
    };
}
pub(super) use window;

/// A window over the latest keys of a stream.
pub struct Generations<V> {
    pub(super) plan: Plan,
    /// Keys of a plane.
    share: u64,
    pub(super) planes: Planes,
    pub(super) lines: u64,
    pub(super) memory: Memory,
    hasher: KeyHasher,
    /// Keys written to each plane.
    written: [u64; MAX_GENERATIONS],
    pub(super) active: usize,
    /// Latest time, and the time at which the active plane began; `None` before the first `advance`.
    pub(super) clock: Option<(f64, f64)>,
    warned: bool,
    /// Generations that expired since it was created or loaded.
    expired: u64,
    kind: PhantomData<V>,
}

impl<V: Kind> Generations<V> {
    /// An empty window.
    pub fn new(plan: Plan, hasher: KeyHasher) -> Result<Self> {
        plan.check(V::RANGE)?;
        let (lines, per_column) = plan.size()?;
        let planes = Planes::new(plan.generations, per_column).ok_or_else(|| too_large(&plan))?;
        let memory = Memory::zeroed(planes.words(lines).ok_or_else(|| too_large(&plan))?)?;
        Ok(Self::from_parts(plan, planes, lines, memory, hasher))
    }

    fn from_parts(plan: Plan, planes: Planes, lines: u64, memory: Memory, hasher: KeyHasher) -> Self {
        let (written, kind) = ([0; MAX_GENERATIONS], PhantomData);
        Generations {
            plan,
            share: plan.share(),
            planes,
            lines,
            memory,
            hasher,
            written,
            active: 0,
            clock: None,
            warned: false,
            expired: 0,
            kind,
        }
    }

    /// Bytes of cells of a window of this plan.
    pub(super) fn bytes(plan: Plan) -> Result<u64> {
        plan.check(V::RANGE)?;
        Ok(plan.size()?.0.saturating_mul(64 * plan.generations as u64))
    }

    /// Keys written to each generation, oldest first.
    pub fn generation_counts(&self) -> Vec<u64> {
        let g = self.plan.generations;
        (1..=g).map(|age| self.written[(self.active + age) % g]).collect()
    }

    /// Keys that the active plane still accepts before the planes rotate.
    fn room(&self) -> u64 {
        match self.plan.window {
            Some(_) => u64::MAX,
            None => self.share.saturating_sub(self.written[self.active]),
        }
    }

    /// The oldest plane is cleared and becomes the active one.
    fn turn(&mut self) -> Result<()> {
        let next = (self.active + 1) % self.plan.generations;
        self.planes.clear(self.memory.writable()?, next);
        self.written[next] = 0;
        self.active = next;
        self.expired += 1;
        Ok(())
    }

    /// Lets time pass until `now`; returns how many generations expired.
    ///
    /// Keys added before the first call count as added at that call.
    pub fn advance(&mut self, now: f64) -> Result<u64> {
        let Some(window) = self.plan.window else {
            return Err(Error::parameter(
                "the filter counts keys, not time; build it with window= (in seconds) to advance it",
            ));
        };
        if !now.is_finite() {
            return Err(Error::Parameter(format!("now must be a finite number of seconds, got {}", format_rate(now))));
        }
        let (latest, began) = self.clock.unwrap_or((now, now));
        if now < latest {
            return Err(Error::Parameter(format!("now must not go back: it was {latest}, got {now}")));
        }
        if self.memory.is_read_only() {
            return Err(Error::read_only());
        }
        let g = self.plan.generations as u32;
        let steps = Steps { began, window, parts: g - 1 };
        let passed = (1..=g).take_while(|&n| steps.has_passed(n, now)).count() as u32;
        for _ in 0..passed {
            self.turn()?;
        }
        self.clock = Some((now, if passed == g { now } else { steps.end(passed).min(now) }));
        Ok(u64::from(passed))
    }

    /// Lets the oldest generation expire now, whatever it holds, and begins a new one.
    pub fn advance_by_hand(&mut self) -> Result<()> {
        self.turn()?;
        // The new plane begins at the latest known time.
        self.clock = self.clock.map(|(now, _)| (now, now));
        Ok(())
    }

    /// Adds in order; reports for each key whether it was new.
    #[inline(always)]
    fn write(&mut self, hashes: &[u64], mut tell: impl FnMut(usize, bool)) -> Result<()> {
        let (mut start, mut known) = (0, false);
        loop {
            let rule = Rule { active: self.active, capacity: self.room(), refresh: self.plan.refresh };
            let words = self.memory.writable()?;
            let (done, written) = self
                .planes
                .write(words, rule, &hashes[start..], |i, fresh| tell(start + i, fresh && !(known && i == 0)));
            self.written[self.active] = self.written[self.active].saturating_add(written);
            start += done;
            let Some(&next) = hashes.get(start) else { return Ok(()) };
            // The plane that is cleared for this key may be the one that knew it.
            known = self.planes.find_one(self.memory.words(), next) != 0;
            self.turn()?;
        }
    }
}

impl<V: Kind> Filter for Generations<V>
where
    Self: Declared,
{
    memory_methods! {
        @ memory;
        |a, b| a.plan == b.plan
            && (a.planes, a.lines, a.active, a.written, a.clock) == (b.planes, b.lines, b.active, b.written, b.clock)
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.planes.find_one(self.memory.words(), hash) != 0
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [u8]) {
        assert!(hashes.len() == found.len());
        self.planes.find(self.memory.words(), hashes, |i, held| found[i] = u8::from(held != 0));
    }

    fn capacity(&self) -> u64 {
        self.plan.capacity
    }

    fn target_fpr(&self) -> f64 {
        self.plan.fpr
    }

    /// Keys written to the present generations; a refreshed key counts in each.
    fn num_added(&self) -> u64 {
        self.written.iter().fold(0, |sum, &written| sum.saturating_add(written))
    }

    /// 1 - prod(1 - rate of a plane with its number of keys).
    fn fpr(&self) -> f64 {
        let law = blocked::law(self.lines, self.planes.num_hashes() / 4);
        let ones = |plane| self.planes.ones(self.memory.words(), plane) as f64;
        any_among((0..self.plan.generations).map(|plane| law.fpr_of_fill(ones(plane) / (self.lines as f64 * 512.0))))
    }

    fn fill(&self) -> f64 {
        crate::cells::bits::count_ones(self.memory.words()) as f64 / (self.memory.len_bytes() as f64 * 8.0)
    }

    fn count_steps(&self) -> Option<Vec<usize>> {
        Some(vec![self.planes.slot_words()])
    }

    fn count_words(&self, _: usize, words: Range<usize>, counts: &mut CellCounts) {
        self.planes.each_ones(self.memory.words(), words, |plane, ones| counts.add(plane, ones));
    }

    fn stats_of(&self, counts: &CellCounts) -> CellStats {
        let law = blocked::law(self.lines, self.planes.num_hashes() / 4);
        let planes = (0..self.plan.generations).map(|plane| counts.get(plane));
        let fill = planes.clone().sum::<u64>() as f64 / (self.memory.len_bytes() as f64 * 8.0);
        let fpr = any_among(planes.map(|ones| law.fpr_of_fill(ones as f64 / (self.lines as f64 * 512.0))));
        CellStats { fill, fpr, ..CellStats::default() }
    }

    fn num_expired(&self) -> u64 {
        self.expired
    }

    /// As long as no generation expires.
    fn writes(&self, hashes: &[u64], word: &mut dyn FnMut(usize, usize)) -> bool {
        self.planes.writes(self.memory.words(), hashes, word);
        true
    }

    fn container(&self) -> Container<'_> {
        let mut header = Header::new(V::VARIANT, Scheme::Columns as u16, &self.hasher);
        self.describe(&mut header);
        if let Some((now, began)) = self.clock {
            header.set_f64(tag::CLOCK, 0, now);
            header.set_f64(tag::CLOCK, 1, began);
        }
        for plane in 0..self.plan.generations {
            header.set(tag::COUNT, plane as u16, self.written[plane]);
        }
        let section = Section::of(kind::PLANES, &self.memory);
        Container { header, sections: vec![section] }
    }
}

impl<V: Kind> Addable for Generations<V>
where
    Self: Declared,
{
    #[inline(always)]
    fn add_hash(&mut self, hash: u64) -> Result<bool> {
        let mut new = false;
        self.write(&[hash], |_, fresh| new = fresh)?;
        Ok(new)
    }

    fn add_hashes(&mut self, hashes: &[u64], new: Option<&mut [u8]>) -> Result<()> {
        match new {
            None => self.write(hashes, |_, _| {}),
            Some(new) => self.write(hashes, |i, fresh| new[i] = u8::from(fresh)),
        }
    }

    write_methods!(memory);

    #[inline(always)]
    fn is_roomy(&self) -> bool {
        // A full plane rotates the planes of a window of keys; in a window of time it may cause a warning.
        let fits = match self.plan.window {
            None => self.written[self.active] < self.share,
            Some(_) => self.warned || self.written[self.active] < self.plan.capacity,
        };
        fits && !self.is_read_only()
    }

    fn newly_overfull(&mut self) -> bool {
        let full = self.plan.window.is_some() && self.written[self.active] > self.plan.capacity;
        let newly = full && !self.warned;
        self.warned |= newly;
        newly
    }

    fn clear(&mut self) -> Result<()> {
        self.memory.writable()?.fill(0);
        (self.written, self.active, self.warned) = ([0; MAX_GENERATIONS], 0, false);
        // Time does not start over: the clock stays, and the active plane begins now.
        self.clock = self.clock.map(|(now, _)| (now, now));
        Ok(())
    }

    fn pass_time(&mut self, now: f64) -> Option<Result<u64>> {
        self.plan.window.map(|_| self.advance(now))
    }
}

impl<V: Kind> Generations<V>
where
    Self: Declared,
{
    /// Restores the fields that [`window!`] read from a file, checked.
    pub(super) fn restore(
        header: &Header,
        hasher: KeyHasher,
        memory: Sections<'_>,
        plan: Plan,
        lines: u64,
        num_hashes: u32,
        active: usize,
    ) -> Result<Self> {
        plan.check(V::RANGE).map_err(Error::as_format)?;
        let damaged = |what: &str| Error::format(format!("the file holds an impossible {what}; it is damaged"));
        let planes = Planes::new(plan.generations, num_hashes / 4).filter(|_| num_hashes.is_multiple_of(4));
        let planes = planes.ok_or_else(|| damaged("number of hashes"))?;
        let words = planes.words(lines).filter(|&words| words > 0).ok_or_else(|| damaged("number of lines"))?;
        if active >= plan.generations {
            return Err(damaged("active generation"));
        }
        let clock = match (header.get_f64(tag::CLOCK, 0), header.get_f64(tag::CLOCK, 1)) {
            (Ok(now), Ok(began)) if now.is_finite() && began <= now && began.is_finite() => Some((now, began)),
            (Err(_), Err(_)) => None,
            _ => return Err(damaged("clock")),
        };
        if clock.is_some() && plan.window.is_none() {
            return Err(damaged("clock"));
        }
        let beside = plan.generations + if clock.is_some() { 2 } else { 0 };
        Self::check_header(header, beside, Scheme::Columns as u16)?;
        let mut written = [0; MAX_GENERATIONS];
        for (plane, written) in written.iter_mut().enumerate().take(plan.generations) {
            *written = header.get(tag::COUNT, plane as u16)?;
        }
        let mut filter = Self::from_parts(plan, planes, lines, memory(kind::PLANES, 0, words)?, hasher);
        (filter.written, filter.active, filter.clock) = (written, active, clock);
        filter.warned = plan.window.is_some() && written.iter().any(|&written| written > plan.capacity);
        Ok(filter)
    }
}
