//! [`Kernel`]: from the scheme of a shape to the loops that touch bits. One match for all rows of
//! [`schemes!`](crate::scheme::schemes).

use std::marker::PhantomData;

use super::layout::Layout;
use super::shape::Shape;
use crate::parallel;
use crate::scheme::lines::{self, OneLine, Pattern};
use crate::scheme::pattern::LineScheme;
use crate::scheme::probes::Sequence;
use crate::scheme::two_lines::TwoLines;
use crate::scheme::*; // the rows name their types by module
use crate::structure::HashSource;
use crate::structure::batch::CHUNK;

/// The loops of one kernel.
trait Loops: Copy {
    /// The loops of a shape with these probes.
    fn new(probes: ProbeKernel) -> Self;

    /// Single lookups, if all bits of a key lie in one line.
    fn one_line(self, _words: usize) -> Option<OneLine> {
        None
    }

    /// The bits of one hash in its line among `words`, if all bits of a key lie in one line.
    fn pattern(self, _words: usize, _hash: u64) -> Option<Pattern> {
        None
    }

    /// The bits of one hash among `words`.
    fn positions(self, words: usize, hash: u64) -> Vec<u64>;

    /// Checks one hash.
    fn contains(self, words: &[u64], hash: u64) -> bool;

    /// Adds one hash; true if it was new.
    fn add(self, words: &mut [u64], hash: u64) -> bool;

    /// Checks many.
    fn contains_all(self, words: &[u64], hashes: &[u64], found: &mut [u8]);

    /// Adds many in order, and reports for each whether it was new; returns how many were.
    fn add_each(self, words: &mut [u64], hashes: &[u64], report: impl FnMut(usize, bool)) -> u64;

    /// [`Loops::add_each`], with the reports as 1 or 0 in `new`.
    fn add_all(self, words: &mut [u64], hashes: &[u64], new: Option<&mut [u8]>) -> u64 {
        match new {
            None => self.add_each(words, hashes, |_, _| {}),
            Some(new) => self.add_each(words, hashes, |i, fresh| new[i] = u8::from(fresh)),
        }
    }

    /// [`Loops::add_all`] of a source, on several threads if the loops can.
    fn add_threads(self, words: &mut [u64], source: &dyn HashSource, threads: usize, new: Option<&mut [u8]>) -> u64;
}

/// One line per key.
#[derive(Clone, Copy, Debug)]
pub struct Line<S>(PhantomData<S>);

impl<S: LineScheme + Copy> Loops for Line<S> {
    fn new(_: ProbeKernel) -> Self {
        Line(PhantomData)
    }

    fn one_line(self, words: usize) -> Option<OneLine> {
        Some(OneLine::of::<S>(words))
    }

    #[inline(always)]
    fn pattern(self, words: usize, hash: u64) -> Option<Pattern> {
        Some(lines::pattern::<S>(words, hash))
    }

    fn positions(self, words: usize, hash: u64) -> Vec<u64> {
        lines::positions::<S>(words, hash)
    }

    #[inline(always)]
    fn contains(self, words: &[u64], hash: u64) -> bool {
        lines::contains_one::<S>(words, hash)
    }

    #[inline(always)]
    fn add(self, words: &mut [u64], hash: u64) -> bool {
        lines::add_one::<S>(words, hash)
    }

    fn contains_all(self, words: &[u64], hashes: &[u64], found: &mut [u8]) {
        lines::contains::<S>(words, hashes, found);
    }

    fn add_each(self, words: &mut [u64], hashes: &[u64], report: impl FnMut(usize, bool)) -> u64 {
        lines::add::<S>(words, hashes, report)
    }

    fn add_threads(self, words: &mut [u64], source: &dyn HashSource, threads: usize, new: Option<&mut [u8]>) -> u64 {
        parallel::lines::add::<S>(words, source, threads, new)
    }
}

/// k positions per key.
#[derive(Clone, Copy, Debug)]
pub struct Probes<S>(ProbeKernel, PhantomData<S>);

impl<S: Sequence> Loops for Probes<S> {
    fn new(probes: ProbeKernel) -> Self {
        Probes(probes, PhantomData)
    }

    fn positions(self, _: usize, hash: u64) -> Vec<u64> {
        self.0.positions::<S>(hash)
    }

    #[inline(always)]
    fn contains(self, words: &[u64], hash: u64) -> bool {
        self.0.contains_one::<S>(words, hash)
    }

    #[inline(always)]
    fn add(self, words: &mut [u64], hash: u64) -> bool {
        self.0.add_one::<S>(words, hash)
    }

    fn contains_all(self, words: &[u64], hashes: &[u64], found: &mut [u8]) {
        self.0.contains_all::<S>(words, hashes, found);
    }

    fn add_each(self, words: &mut [u64], hashes: &[u64], report: impl FnMut(usize, bool)) -> u64 {
        self.0.add_all::<S>(words, hashes, report)
    }

    fn add_threads(self, words: &mut [u64], source: &dyn HashSource, threads: usize, new: Option<&mut [u8]>) -> u64 {
        parallel::probes::add::<S>(&self.0, words, source, threads, new)
    }
}

impl<const T: usize> Loops for TwoLines<T> {
    fn new(_: ProbeKernel) -> Self {
        TwoLines
    }

    fn positions(self, words: usize, hash: u64) -> Vec<u64> {
        Self::positions(words, hash)
    }

    #[inline(always)]
    fn contains(self, words: &[u64], hash: u64) -> bool {
        Self::contains_one(words, hash)
    }

    #[inline(always)]
    fn add(self, words: &mut [u64], hash: u64) -> bool {
        Self::add_one(words, hash)
    }

    fn contains_all(self, words: &[u64], hashes: &[u64], found: &mut [u8]) {
        Self::contains(words, hashes, found);
    }

    fn add_each(self, words: &mut [u64], hashes: &[u64], report: impl FnMut(usize, bool)) -> u64 {
        Self::add(words, hashes, report)
    }

    /// On one thread: the two lines of a key would have two owners, and the key is new if it is so in either line.
    fn add_threads(self, words: &mut [u64], source: &dyn HashSource, _: usize, mut new: Option<&mut [u8]>) -> u64 {
        let (mut hashes, mut count) = ([0; CHUNK], 0);
        for start in (0..source.len()).step_by(CHUNK) {
            let hashes = &mut hashes[..CHUNK.min(source.len() - start)];
            source.fill(start, hashes);
            let new = new.as_deref_mut().map(|new| &mut new[start..start + hashes.len()]);
            count += self.add_all(words, hashes, new);
        }
        count
    }
}

macro_rules! kernels {
    ({} $(
        $(#[$doc:meta])* $Scheme:ident = $number:literal, $name:literal, $layouts:tt,
        { $($k:tt: $Kernel:ident = $Loops:ty),* } $(, derived: $by:ident)?;
    )*) => {
        /// The loops of one shape.
        #[derive(Clone, Copy, Debug)]
        pub enum Kernel {
            $($(#[doc = concat!("`", $name, "`, num_hashes ", stringify!($k), ".")] $Kernel($Loops),)*)*
        }

        impl Kernel {
            fn of(scheme: Scheme, probes: ProbeKernel) -> Self {
                match (scheme, probes.num_hashes) {
                    $($((Scheme::$Scheme, $k) => Kernel::$Kernel(Loops::new(probes)),)*)*
                }
            }
        }

        /// Runs `$work` with the loops of `$kernel` as `$loops`.
        macro_rules! dispatch {
            ($kernel:expr, $loops:ident => $work:expr) => {
                match $kernel { $($(Kernel::$Kernel($loops) => $work,)*)* }
            };
        }
    };
}
schemes!(kernels! {});

impl Kernel {
    /// The loops of `shape`, which has been checked.
    pub fn new(shape: &Shape) -> Self {
        let (range, stride) = match shape.layout {
            Layout::Partitioned => [shape.num_bits / u64::from(shape.num_hashes); 2].into(),
            _ => (shape.num_bits, 0),
        };
        Kernel::of(shape.scheme, ProbeKernel { range, stride, num_hashes: shape.num_hashes })
    }

    /// Single lookups, if all bits of a key lie in one line.
    pub fn one_line(&self, words: usize) -> Option<OneLine> {
        dispatch!(self, loops => loops.one_line(words))
    }

    /// Checks one hash.
    #[inline(always)]
    pub fn contains(&self, words: &[u64], hash: u64) -> bool {
        dispatch!(self, loops => loops.contains(words, hash))
    }

    /// The bits of one hash among `words`.
    pub fn positions(&self, words: usize, hash: u64) -> Vec<u64> {
        dispatch!(self, loops => Loops::positions(*loops, words, hash))
    }

    /// Adds one hash; true if it was new.
    #[inline(always)]
    pub fn add(&self, words: &mut [u64], hash: u64) -> bool {
        dispatch!(self, loops => loops.add(words, hash))
    }

    /// The bits of one hash in its line among `words`; `None` if a key has no line, or two.
    #[inline]
    pub fn pattern(&self, words: usize, hash: u64) -> Option<Pattern> {
        dispatch!(self, loops => loops.pattern(words, hash))
    }

    /// Checks many.
    pub fn contains_all(&self, words: &[u64], hashes: &[u64], found: &mut [u8]) {
        dispatch!(self, loops => loops.contains_all(words, hashes, found));
    }

    /// Adds many, in order; returns how many were new and writes 1 for them into `new`, 0 for the others.
    pub fn add_all(&self, words: &mut [u64], hashes: &[u64], new: Option<&mut [u8]>) -> u64 {
        dispatch!(self, loops => loops.add_all(words, hashes, new))
    }

    /// Adds all keys of `source` on several threads, with the bits and answers of one thread. Writes 1 for each new key
    /// and 0 for the others into `new`, returns how many were new.
    pub fn add_threads(
        &self,
        words: &mut [u64],
        source: &dyn HashSource,
        threads: usize,
        new: Option<&mut [u8]>,
    ) -> u64 {
        dispatch!(self, loops => loops.add_threads(words, source, threads, new))
    }
}
