//! From layout and scheme to loops: the one place where they are matched.

use super::shape::{Layout, Shape};
use crate::parallel;
use crate::scheme::columns::Columns;
use crate::scheme::double::Double;
use crate::scheme::enhanced::EnhancedDouble;
use crate::scheme::lines::OneLine;
use crate::scheme::mcg::Mcg;
use crate::scheme::odd_step::OddStep;
use crate::scheme::parquet::Parquet;
use crate::scheme::quadratic::Quadratic;
use crate::scheme::seeded::Seeded;
use crate::scheme::sliced::Sliced;
use crate::scheme::triple::Triple;
use crate::scheme::two_lines::TwoLines;
use crate::scheme::{ProbeKernel, Scheme, lines};
use crate::structure::HashSource;
use crate::structure::batch::CHUNK;

/// The loops of one shape.
#[derive(Clone, Copy, Debug)]
pub enum Kernel {
    /// `columns` with k = 4.
    Columns1,
    /// `columns` with k = 8.
    Columns2,
    /// `columns` with k = 12.
    Columns3,
    /// `parquet`.
    Parquet,
    /// `mcg`.
    Mcg(ProbeKernel),
    /// `double`.
    Double(ProbeKernel),
    /// `enhanced-double`.
    Enhanced(ProbeKernel),
    /// `seeded`.
    Seeded(ProbeKernel),
    /// `sliced`.
    Sliced(ProbeKernel),
    /// `triple`.
    Triple(ProbeKernel),
    /// `quadratic`.
    Quadratic(ProbeKernel),
    /// `odd-step`.
    OddStep(ProbeKernel),
    /// `two-lines` with k = 8.
    Two1,
    /// `two-lines` with k = 16.
    Two2,
    /// `two-lines` with k = 24.
    Two3,
}

#[rustfmt::skip] // one arm a line
/// Runs `$lines` with the line scheme as type `$L`, `$probes` with the sequence as `$P`, or `$two` with two lines as `$T`.
macro_rules! dispatch {
    ($kernel:expr, $L:ident => $lines:expr, $P:ident, $probe:ident => $probes:expr, $T:ident => $two:expr) => {
        match $kernel {
            Kernel::Columns1 => { type $L = Columns<1>; $lines }
            Kernel::Columns2 => { type $L = Columns<2>; $lines }
            Kernel::Columns3 => { type $L = Columns<3>; $lines }
            Kernel::Parquet => { type $L = Parquet; $lines }
            Kernel::Mcg($probe) => { type $P = Mcg; $probes }
            Kernel::Double($probe) => { type $P = Double; $probes }
            Kernel::Enhanced($probe) => { type $P = EnhancedDouble; $probes }
            Kernel::Seeded($probe) => { type $P = Seeded; $probes }
            Kernel::Sliced($probe) => { type $P = Sliced; $probes }
            Kernel::Triple($probe) => { type $P = Triple; $probes }
            Kernel::Quadratic($probe) => { type $P = Quadratic; $probes }
            Kernel::OddStep($probe) => { type $P = OddStep; $probes }
            Kernel::Two1 => { type $T = TwoLines<1>; $two }
            Kernel::Two2 => { type $T = TwoLines<2>; $two }
            Kernel::Two3 => { type $T = TwoLines<3>; $two }
        }
    };
}

impl Kernel {
    /// The loops of `shape`, which has been checked.
    pub fn new(shape: &Shape) -> Self {
        let k = shape.num_hashes;
        let probe = match shape.layout {
            Layout::Partitioned => {
                let slice = shape.num_bits / u64::from(k);
                ProbeKernel { range: slice, stride: slice, num_hashes: k }
            }
            _ => ProbeKernel { range: shape.num_bits, stride: 0, num_hashes: k },
        };
        match (shape.scheme, k) {
            (Scheme::Columns, 4) => Kernel::Columns1,
            (Scheme::Columns, 8) => Kernel::Columns2,
            (Scheme::Columns, _) => Kernel::Columns3,
            (Scheme::Parquet, _) => Kernel::Parquet,
            (Scheme::Mcg, _) => Kernel::Mcg(probe),
            (Scheme::Double, _) => Kernel::Double(probe),
            (Scheme::EnhancedDouble, _) => Kernel::Enhanced(probe),
            (Scheme::Seeded, _) => Kernel::Seeded(probe),
            (Scheme::Sliced, _) => Kernel::Sliced(probe),
            (Scheme::Triple, _) => Kernel::Triple(probe),
            (Scheme::Quadratic, _) => Kernel::Quadratic(probe),
            (Scheme::OddStep, _) => Kernel::OddStep(probe),
            (Scheme::TwoLines, 8) => Kernel::Two1,
            (Scheme::TwoLines, 16) => Kernel::Two2,
            (Scheme::TwoLines, _) => Kernel::Two3,
        }
    }

    /// Single looks, for the schemes of the line kind.
    pub fn one_line(&self, words: usize) -> Option<OneLine> {
        match self {
            Kernel::Columns1 => Some(OneLine::of::<Columns<1>>(words)),
            Kernel::Columns2 => Some(OneLine::of::<Columns<2>>(words)),
            Kernel::Columns3 => Some(OneLine::of::<Columns<3>>(words)),
            Kernel::Parquet => Some(OneLine::of::<Parquet>(words)),
            _ => None,
        }
    }

    /// Checks one hash.
    #[inline(always)]
    pub fn contains(&self, words: &[u64], hash: u64) -> bool {
        dispatch!(self, L => lines::contains_one::<L>(words, hash),
                  P, probe => probe.contains_one::<P>(words, hash),
                  T => T::contains_one(words, hash))
    }

    /// The bits of one hash among `words`.
    pub fn positions(&self, words: usize, hash: u64) -> Vec<u64> {
        dispatch!(self, L => lines::positions::<L>(words, hash), P, probe => probe.positions::<P>(hash),
                  T => T::positions(words, hash))
    }

    /// Adds one hash; true when it was new.
    #[inline(always)]
    pub fn add(&self, words: &mut [u64], hash: u64) -> bool {
        dispatch!(self, L => lines::add_one::<L>(words, hash),
                  P, probe => probe.add_one::<P>(words, hash),
                  T => T::add_one(words, hash))
    }

    /// The bits of one hash in its line among `words`; nothing where a key has no line, or two.
    #[inline]
    pub fn pattern(&self, words: usize, hash: u64) -> Option<lines::Pattern> {
        dispatch!(self, L => Some(lines::pattern::<L>(words, hash)), P, probe => { let _: (Option<P>, _) = (None, probe); None },
                  T => { let _: Option<T> = None; None })
    }

    /// Checks many.
    pub fn contains_all(&self, words: &[u64], hashes: &[u64], found: &mut [u8]) {
        dispatch!(self, L => lines::contains::<L>(words, hashes, found),
                  P, probe => probe.contains_all::<P>(words, hashes, found),
                  T => T::contains(words, hashes, found))
    }

    /// Adds many, in order; returns how many were new and writes 1 for them into `new`, 0 for the others.
    pub fn add_all(&self, words: &mut [u64], hashes: &[u64], new: Option<&mut [u8]>) -> u64 {
        match new {
            None => {
                let tell = |_: usize, _: bool| {};
                dispatch!(self, L => lines::add::<L>(words, hashes, tell),
                          P, probe => probe.add_all::<P>(words, hashes, tell),
                          T => T::add(words, hashes, tell))
            }
            Some(new) => {
                let tell = |i: usize, fresh: bool| new[i] = u8::from(fresh);
                dispatch!(self, L => lines::add::<L>(words, hashes, tell),
                          P, probe => probe.add_all::<P>(words, hashes, tell),
                          T => T::add(words, hashes, tell))
            }
        }
    }

    /// [`Kernel::add_all`] of a source.
    fn add_in_turn(&self, words: &mut [u64], source: &dyn HashSource, mut new: Option<&mut [u8]>) -> u64 {
        let (mut hashes, mut count) = ([0; CHUNK], 0);
        for start in (0..source.len()).step_by(CHUNK) {
            let hashes = &mut hashes[..CHUNK.min(source.len() - start)];
            source.fill(start, hashes);
            let new = new.as_deref_mut().map(|new| &mut new[start..start + hashes.len()]);
            count += self.add_all(words, hashes, new);
        }
        count
    }

    /// Adds all keys of `source` on several threads; same bits and same answers as one thread gives.
    /// Writes 1 for each new key and 0 for the others into `new`, returns how many were new. Two lines of a key have two
    /// owners, and it is new by what either says: they are added on one thread.
    pub fn add_threads(
        &self,
        words: &mut [u64],
        source: &dyn HashSource,
        threads: usize,
        new: Option<&mut [u8]>,
    ) -> u64 {
        dispatch!(self, L => parallel::lines::add::<L>(words, source, threads, new),
                  P, probe => parallel::probes::add::<P>(probe, words, source, threads, new),
                  T => { let _: Option<T> = None; self.add_in_turn(words, source, new) })
    }
}
