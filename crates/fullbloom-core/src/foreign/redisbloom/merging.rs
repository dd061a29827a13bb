//! Two filters in one, and filters without keys.

use super::bloom::{Chain, Layer};
use super::cuckoo::Cuckoo;
use crate::error::{Error, Result};
use crate::sizing::Law;
use crate::sizing::classic::Classic;

/// What a layer of two filters must have in common.
fn shape_of(layer: &Layer) -> [(&'static str, String); 3] {
    [
        ("capacity", layer.entries.to_string()),
        ("fpr", format!("{:e}", layer.error)),
        ("num_hashes", layer.hashes.to_string()),
    ]
}

impl Chain {
    /// Refuses a filter whose layers are not those of this one, as far as both have them; names what differs.
    fn check_alike(&self, other: &Self) -> Result<()> {
        let own = |chain: &Self| chain.expansion().map_or("none".into(), |expansion| expansion.to_string());
        let mut differences = Vec::new();
        if own(self) != own(other) {
            differences.push(format!("expansion ({} and {})", own(self), own(other)));
        }
        for (i, (mine, theirs)) in self.layers.iter().zip(&other.layers).enumerate() {
            for ((name, mine), (_, theirs)) in shape_of(mine).into_iter().zip(shape_of(theirs)) {
                if mine != theirs && differences.len() < 4 {
                    differences.push(format!("{name} of layer {} ({mine} and {theirs})", i + 1));
                }
            }
        }
        if differences.is_empty() {
            return Ok(());
        }
        Err(Error::Incompatible(format!("the filters differ in {}", differences.join(", "))))
    }

    /// Adds all keys of `other`, whose layers must be those of this filter, as far as both have them: each is united with
    /// its counterpart, bit by bit. The number of keys is estimated from the bits. On an error nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_alike(other)?;
        let further: Vec<_> =
            other.layers.iter().skip(self.layers.len()).map(Layer::try_clone).collect::<Result<_>>()?;
        let more = further.iter().map(|layer| layer.cells.len() as u64).sum::<u64>();
        let (bytes, most) = (self.nbytes().saturating_add(more), self.bound.most);
        if bytes > most || !self.bound.take(more) {
            return Err(Error::Memory(format!("the union has {bytes} bytes, it may have {most}")));
        }
        for layer in &mut self.layers {
            layer.cells.all()?;
        }
        for (layer, theirs) in self.layers.iter_mut().zip(&other.layers) {
            layer.unite(theirs)?;
        }
        self.layers.extend(further);
        self.items = self.layers.iter().fold(0, |sum, layer| sum.saturating_add(layer.items));
        Ok(())
    }

    /// Removes all keys, and all layers but the first.
    pub fn clear(&mut self) {
        self.layers.truncate(1);
        self.items = 0;
        for layer in &mut self.layers {
            layer.cells.clear();
            layer.items = 0;
        }
    }
}

impl Layer {
    fn unite(&mut self, other: &Self) -> Result<()> {
        for (cell, theirs) in self.cells.all()?.iter_mut().zip(other.cells.arrived()) {
            *cell |= theirs;
        }
        let law = Classic { num_bits: self.bits, num_hashes: self.hashes };
        let estimate = law.items(self.ones() as f64 / self.bits as f64).round();
        // Saturates where all bits are set.
        self.items = (estimate as u64).clamp(self.items.max(other.items), self.items.saturating_add(other.items));
        Ok(())
    }
}

impl Cuckoo {
    /// Removes all keys, and all tables but the first.
    pub fn clear(&mut self) {
        self.tables.truncate(1);
        self.tables.iter_mut().for_each(|table| table.clear());
        self.nbytes = self.tables.iter().map(|table| table.len() as u64).sum();
        (self.items, self.deletes) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::bloom::hash;
    use super::super::cuckoo::{Shape, hash as cuckoo_hash};
    use super::*;

    fn build(keys: std::ops::Range<u32>) -> Result<Chain> {
        let mut chain = Chain::construct(100, 0.01, 2, true)?;
        keys.into_iter().try_for_each(|number| chain.add(hash(&number.to_le_bytes())).map(drop))?;
        Ok(chain)
    }

    #[test]
    fn a_union_finds_the_keys_of_both() -> Result<()> {
        let (long, short) = (build(0..1000)?, build(500..1080)?);
        assert!(long.layers().len() > short.layers().len());
        for (mut one, other) in [(build(0..1000)?, &short), (build(500..1080)?, &long)] {
            one.merge(other)?;
            assert!((0..1080u32).all(|number| one.contains(hash(&number.to_le_bytes()))));
            assert_eq!(one.layers().len(), long.layers().len());
            let sum: u64 = one.layers().iter().map(|layer| layer.items).sum();
            assert_eq!(sum, one.items());
            assert!((1000..=1580).contains(&one.items()), "{}", one.items());
            // The dump of a union is one that loads.
            assert!(Chain::from_header(&one.header(), u64::MAX).is_ok());
            one.clear();
            assert_eq!((one.header(), one.fill()), (build(0..0)?.header(), 0.0));
        }
        let other = Chain::construct(100, 0.01, 4, true)?;
        let why = build(0..10)?.merge(&other).map_err(|error| error.to_string());
        assert!(why.is_err_and(|why| why.contains("expansion (2 and 4)")));
        let why = build(0..10)?.merge(&Chain::construct(200, 0.01, 2, true)?).map_err(|error| error.to_string());
        assert!(why.is_err_and(|why| why.contains("capacity of layer 1 (100 and 200)")));
        Ok(())
    }

    #[test]
    fn tables_are_cleared() -> Result<()> {
        let mut tables = Cuckoo::construct(Shape::new(64, 2, 20, 2)?)?;
        let empty = tables.header();
        (0..1000u32).try_for_each(|number| tables.add(cuckoo_hash(&number.to_le_bytes())))?;
        tables.clear();
        assert_eq!((tables.header(), tables.used(), tables.nbytes()), (empty, 0, 64));
        Ok(())
    }
}
