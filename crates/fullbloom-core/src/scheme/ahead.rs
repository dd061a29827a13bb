//! Prefetching: loops over hashes, in order, that prefetch the memory of a key some keys before they use it.

use super::pattern::{InstructionSet, Portable, Vector};
use crate::isa::Isa;

/// How far ahead hashes and positions in a bucket are fetched. Those that another core wrote are in that core's cache,
/// and the hardware prefetcher is too late: a key took up to 6.4 ns to add, one from the same core 2.9; with
/// prefetching they take the same. 256 and 512 measure like 128, 1024 is too far.
pub(crate) const BUCKET_AHEAD: usize = 128;

/// Calls `step` for each of `hashes` in order, with its number, up to the first error; `fetch` is called for the
/// one `distance` later before. Both see `state`, which only `step` changes.
#[inline(always)]
pub fn ahead<S: ?Sized, E>(
    distance: usize,
    state: &mut S,
    hashes: &[u64],
    fetch: impl Fn(&S, usize, u64),
    mut step: impl FnMut(&mut S, usize, u64) -> Result<(), E>,
) -> Result<(), E> {
    for (i, &hash) in hashes.iter().take(distance).enumerate() {
        fetch(state, i, hash);
    }
    for (i, &hash) in hashes.iter().enumerate() {
        if let Some(&next) = hashes.get(i + distance) {
            fetch(state, i + distance, next);
        }
        step(state, i, hash)?;
    }
    Ok(())
}

/// Writes `yes` as 1 or 0 at index `i` of the answers, if the caller wants them.
#[inline(always)]
pub fn mark(answers: &mut Option<&mut [u8]>, i: usize, yes: bool) {
    if let Some(answers) = answers {
        answers[i] = u8::from(yes);
    }
}

/// Writes one answer for each of `hashes` into `out`; the slices are equally long.
#[inline(always)]
pub fn answer_ahead<T>(distance: usize, hashes: &[u64], out: &mut [T], fetch: impl Fn(u64), answer: impl Fn(u64) -> T) {
    hashes.iter().take(distance).for_each(|&hash| fetch(hash));
    for (i, (&hash, out)) in hashes.iter().zip(out).enumerate() {
        if let Some(&next) = hashes.get(i + distance) {
            fetch(next);
        }
        *out = answer(hash);
    }
}

/// Changes `state` for each of `hashes`, up to the first error; writes 1 into `mask`, if given, for each change
/// that is true, else 0.
#[inline(always)]
pub fn change_ahead<S: ?Sized, E>(
    distance: usize,
    state: &mut S,
    hashes: &[u64],
    mut mask: Option<&mut [u8]>,
    fetch: impl Fn(&S, u64),
    mut change: impl FnMut(&mut S, u64) -> Result<bool, E>,
) -> Result<(), E> {
    ahead(
        distance,
        state,
        hashes,
        |state, _, hash| fetch(state, hash),
        |state, i, hash| {
            let changed = change(state, hash)?;
            mark(&mut mask, i, changed);
            Ok(())
        },
    )
}

/// Work on one key after the other, as a trait: closures would not inherit the instruction set (130 ns per key instead of
/// 6).
pub trait Visit {
    /// Keys between fetching and visiting.
    const AHEAD: usize;

    /// Prefetches the memory of a key.
    fn fetch(&self, hash: u64);

    /// Works on key number `i`; false ends the loop.
    fn visit<I: InstructionSet>(&mut self, set: I, i: usize, hash: u64) -> bool;
}

/// [`Visit::AHEAD`] and [`Visit::fetch`].
macro_rules! fetched {
    ($distance:expr; $this:ident, $hash:ident => $fetch:expr) => {
        const AHEAD: usize = $distance;

        #[inline(always)]
        fn fetch(&self, $hash: u64) {
            let $this = self;
            $fetch
        }
    };
}
pub(crate) use fetched;

/// Visits `hashes`, compiled for the instruction set in use; returns how many visits did not end the loop.
#[inline(always)]
pub fn each<V: Visit>(hashes: &[u64], visit: V) -> (usize, V) {
    if Isa::is_vector() {
        // SAFETY: the vector set was detected.
        unsafe { each_vector(hashes, visit) }
    } else {
        each_on(Portable, hashes, visit)
    }
}

/// # Safety
/// AVX2 must be present on x86-64.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
unsafe fn each_vector<V: Visit>(hashes: &[u64], visit: V) -> (usize, V) {
    // SAFETY: the caller's promise; `each_on` is inlined here.
    each_on(unsafe { Vector::new() }, hashes, visit)
}

#[inline(always)]
fn each_on<I: InstructionSet, V: Visit>(set: I, hashes: &[u64], mut visit: V) -> (usize, V) {
    let ahead = V::AHEAD.min(hashes.len());
    for &hash in &hashes[..ahead] {
        visit.fetch(hash);
    }
    for (i, (&hash, &next)) in hashes.iter().zip(&hashes[ahead..]).enumerate() {
        visit.fetch(next);
        if !visit.visit(set, i, hash) {
            return (i, visit);
        }
    }
    for (i, &hash) in hashes.iter().enumerate().skip(hashes.len() - ahead) {
        if !visit.visit(set, i, hash) {
            return (i, visit);
        }
    }
    (hashes.len(), visit)
}
