//! Lookups and additions of many keys: their cells are fetched while those of others are read.

use super::bloom::{Chain, Layer, Probes};
use super::cells::Cells;
use super::cuckoo::{Cuckoo, Places};
use crate::error::Result;
use crate::foreign::bits::rounds::{self, BLOCK, MOST, Rounds};
use crate::foreign::rules::Digest;
use crate::isa::prefetch;
use crate::scheme::ahead::mark;

/// Keys that are looked up one by one, because memory for positions costs more.
const FEW: usize = 16;
/// Keys that are fetched ahead of the one that is added.
const AHEAD: usize = 8;
/// Layers and tables whose cells are fetched: the newest ones, which are the largest.
const FETCHED: usize = 4;

fn fetch(cells: &Cells, at: u64) {
    prefetch(cells.arrived().as_ptr().wrapping_add(at as usize).cast());
}

impl Layer {
    /// The positions of some of `keys`, round by round.
    fn place<'a>(&self, keys: &[Digest], left: &[u8], rounds: &'a mut Rounds<u64>) -> &'a [[u64; BLOCK]] {
        let rounds = &mut rounds[..MOST.min(self.hashes as usize)];
        for (i, &key) in left.iter().enumerate() {
            let mut probes = Probes::new(keys[usize::from(key)], self);
            rounds.iter_mut().for_each(|round| round[i] = probes.next(self));
        }
        rounds
    }

    /// Looks up those of a block of `keys` that `left` numbers.
    fn look_up(&self, keys: &[Digest], left: &[u8], hits: &mut [u8], rounds: &mut Rounds<u64>) {
        let is_there = |key: &u8| self.contains(keys[usize::from(*key)]).into();
        if self.cells.arrived().len() < self.cells.len() {
            hits.iter_mut().zip(left).for_each(|(hit, key)| *hit = is_there(key));
            return;
        }
        rounds::look_up(self.cells.arrived(), self.place(keys, left, rounds), hits);
        if self.hashes as usize > MOST {
            let likely = hits.iter_mut().zip(left).filter(|(hit, _)| **hit != 0);
            likely.for_each(|(hit, key)| *hit = is_there(key));
        }
    }
}

impl Chain {
    /// Looks up many keys; both slices are equally long.
    pub fn contains_many(&self, keys: &[Digest], found: &mut [u8]) {
        if keys.len() < FEW {
            keys.iter().zip(found).for_each(|(key, found)| *found = self.contains(*key).into());
            return;
        }
        let mut rounds = [[0; BLOCK]; MOST];
        for (keys, found) in keys.chunks(BLOCK).zip(found.chunks_mut(BLOCK)) {
            self.look_up(keys, found, &mut rounds);
        }
    }

    /// Looks up a block of keys, layer by layer: those that one has are not looked up in the older ones.
    fn look_up(&self, keys: &[Digest], found: &mut [u8], rounds: &mut Rounds<u64>) {
        let (mut left, mut hits, mut count) = ([0u8; BLOCK], [0u8; BLOCK], keys.len());
        left.iter_mut().zip(0..).for_each(|(left, key)| *left = key as u8);
        found.fill(0);
        for layer in self.layers.iter().rev() {
            layer.look_up(keys, &left[..count], &mut hits[..count], rounds);
            let mut kept = 0;
            for i in 0..count {
                let key = left[i];
                found[usize::from(key)] = hits[i];
                left[kept] = key;
                kept += usize::from(hits[i] == 0);
            }
            count = kept;
            if count == 0 {
                return;
            }
        }
    }

    /// Adds many keys in order; marks those that were new if the caller wants to know.
    pub fn add_many(&mut self, keys: &[Digest], mut new: Option<&mut [u8]>) -> Result<()> {
        for (i, &key) in keys.iter().enumerate() {
            if let Some(&next) = keys.get(i + AHEAD) {
                self.fetch(next);
            }
            let added = self.add(key)?;
            mark(&mut new, i, added);
        }
        Ok(())
    }

    fn fetch(&self, key: Digest) {
        for layer in self.layers.iter().rev().take(FETCHED) {
            let mut probes = Probes::new(key, layer);
            (0..layer.hashes).for_each(|_| fetch(&layer.cells, probes.next(layer) >> 3));
        }
    }
}

impl Cuckoo {
    fn fetch(&self, [hash, _]: Digest) {
        let places = Places::of(hash);
        for table in (0..self.tables.len()).rev().take(FETCHED) {
            places.either.iter().for_each(|&place| fetch(&self.tables[table], self.bucket(table, place) as u64));
        }
    }

    /// Looks up many keys; both slices are equally long.
    pub fn contains_many(&self, keys: &[Digest], found: &mut [u8]) {
        keys.iter().take(AHEAD).for_each(|&key| self.fetch(key));
        for (i, (&[hash, _], found)) in keys.iter().zip(found).enumerate() {
            if let Some(&next) = keys.get(i + AHEAD) {
                self.fetch(next);
            }
            *found = self.contains(hash).into();
        }
    }

    /// Adds many keys in order, even those that are present; marks those that were absent if the caller wants to know.
    pub fn add_many(&mut self, keys: &[Digest], mut new: Option<&mut [u8]>) -> Result<()> {
        for (i, &[hash, _]) in keys.iter().enumerate() {
            if let Some(&next) = keys.get(i + AHEAD) {
                self.fetch(next);
            }
            if let Some(new) = &mut new {
                new[i] = u8::from(!self.contains(hash));
            }
            self.add(hash)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::bloom::hash;
    use super::super::cuckoo::Shape;
    use super::*;
    use crate::foreign::rules::redisbloom::cuckoo_hash;

    fn key(number: u32) -> Digest {
        hash(&number.to_le_bytes())
    }

    #[test]
    fn many_keys_have_the_results_of_single_ones() -> Result<()> {
        for (capacity, error, scaling) in [(20, 0.02, true), (100_000, 1e-7, true), (2000, 0.3, false)] {
            let mut one = Chain::construct(capacity, error, 2, scaling)?;
            let mut many = Chain::construct(capacity, error, 2, scaling)?;
            let keys: Vec<_> = (0..1500).map(|number| key(number % 1000)).collect();
            let mut new = vec![2; keys.len()];
            many.add_many(&keys, Some(&mut new))?;
            for (key, new) in keys.iter().zip(new) {
                assert_eq!(one.add(*key)?, new == 1);
            }
            assert_eq!(one.header(), many.header());
            for count in [0, 1, 15, 16, 17, 255, 256, 257, 3000] {
                let keys: Vec<_> = (0..count).map(|number| key(number * 3)).collect();
                let mut found = vec![2; keys.len()];
                many.contains_many(&keys, &mut found);
                assert!(keys.iter().zip(found).all(|(key, found)| one.contains(*key) == (found == 1)));
            }
            // Cells that have not arrived are zeros.
            let part = Chain::from_header(&many.header(), u64::MAX)?;
            let mut found = vec![2; keys.len()];
            part.contains_many(&keys, &mut found);
            assert!(found.iter().all(|found| *found == 0));
        }
        Ok(())
    }

    #[test]
    fn many_keys_have_the_results_of_single_ones_in_tables() -> Result<()> {
        let (mut one, mut many) =
            (Cuckoo::construct(Shape::new(64, 2, 20, 2)?)?, Cuckoo::construct(Shape::new(64, 2, 20, 2)?)?);
        let keys: Vec<_> = (0..1500u32).map(|number| [cuckoo_hash(&(number % 1000).to_le_bytes()), 0]).collect();
        let mut new = vec![2; keys.len()];
        many.add_many(&keys, Some(&mut new))?;
        for (&[hash, _], new) in keys.iter().zip(new) {
            assert_eq!(one.contains(hash), new == 0);
            one.add(hash)?;
        }
        assert_eq!(one.header(), many.header());
        let keys: Vec<_> = (0..3000u32).map(|number| [cuckoo_hash(&number.to_le_bytes()), 0]).collect();
        let mut found = vec![2; keys.len()];
        many.contains_many(&keys, &mut found);
        assert!(keys.iter().zip(found).all(|(&[hash, _], found)| one.contains(hash) == (found == 1)));
        Ok(())
    }
}
