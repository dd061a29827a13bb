//! The cuckoo filter of `RedisBloom` as a [`Kind`].

use std::any::Any;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use fullbloom_core::container::Container;
use fullbloom_core::foreign::redisbloom::cuckoo::{Cuckoo, Shape, hash};
use fullbloom_core::growth::Growth;
use fullbloom_core::key::KeyHasher;
use fullbloom_core::registry::Variant;
use fullbloom_core::structure::parts::Parts;
use fullbloom_core::structure::{CellCounts, CellStats, Value};

use super::dump_format::DumpFormat;
use super::options::number;
use super::rows::ROWS;
use crate::fault::Result;
use crate::kind::keying::Keying;
use crate::kind::sections::bytes_of;
use crate::kind::spec::Spec;
use crate::kind::traits::Kind;

/// The bytes that RedisBloom counts in addition to the cells.
const OVERHEAD: u64 = 40;
const TABLE_OVERHEAD: u64 = 16;

fn parse_options(spec: &Spec) -> Result<Shape> {
    spec.check_names(&spec.kind, &["capacity", "bucket_size", "iterations", "expansion"])?;
    let capacity = number(spec, "capacity", None, u64::MAX)?;
    let narrow = |name, default, most| number(spec, name, Some(default), most).map(|number| number as u16);
    let [bucket_size, iterations] = [narrow("bucket_size", 2, 255)?, narrow("iterations", 20, 65_535)?];
    Ok(Shape::new(capacity, bucket_size, iterations, narrow("expansion", 1, 32_768)?)?)
}

pub(super) fn create(spec: &Spec) -> Result<Cuckoo> {
    Ok(Cuckoo::construct(parse_options(spec)?)?)
}

pub(super) fn nbytes(spec: &Spec) -> Result<u64> {
    Ok(parse_options(spec)?.cell_bytes()?)
}

impl DumpFormat for Cuckoo {
    foreign_dump!();
    fn debug_lines(&self) -> Vec<String> {
        let shape = self.shape();
        let (size, buckets, iterations, expansion) =
            (shape.bucket_size, shape.buckets, shape.iterations, shape.expansion);
        let (items, deletes, tables) = (self.items(), self.deletes(), self.tables().len());
        vec![format!(
            "bktsize:{size} buckets:{buckets} items:{items} deletes:{deletes} filters:{tables} \
             max_iterations:{iterations} expansion:{expansion}"
        )]
    }
    fn tables(&self) -> u64 {
        Cuckoo::tables(self).len() as u64
    }
    fn compact(&mut self) -> Result<()> {
        Ok(Cuckoo::compact(self, true)?)
    }
}

impl Kind for Cuckoo {
    foreign_kind!();
    fn variant(&self) -> &'static Variant {
        &ROWS[1]
    }
    fn keying(&self) -> Keying {
        Keying::Foreign(1, |key, words| words.push(hash(key)))
    }
    fn capacity(&self) -> u64 {
        Cuckoo::nbytes(self)
    }
    fn info_with(&self, cells: CellStats) -> Vec<(&'static str, Value)> {
        let (shape, tables) = (self.shape(), self.tables().len() as u64);
        vec![
            ("capacity", Value::Number(Kind::capacity(self))),
            ("target_fpr", Value::Real(self.target())),
            ("num_added", Value::Number(self.items())),
            ("fpr", Value::Real(cells.fpr)),
            ("fill", Value::Real(cells.fill)),
            ("stages", Value::Number(tables)),
            ("num_buckets", Value::Number(shape.buckets)),
            ("bucket_size", Value::Number(shape.bucket_size.into())),
            ("expansion", Value::Number(shape.expansion.into())),
            ("deletes", Value::Number(self.deletes())),
            ("nbytes", Value::Number(Cuckoo::nbytes(self))),
            ("counted_bytes", Value::Number(OVERHEAD + TABLE_OVERHEAD * tables + Cuckoo::nbytes(self))),
        ]
    }
    fn count_steps(&self) -> Option<Vec<usize>> {
        Some(vec![1; Cuckoo::tables(self).len()])
    }
    fn count_words(&self, section: usize, words: Range<usize>, counts: &mut CellCounts) {
        if let Some(table) = self.container().sections.get(section) {
            let slots = bytes_of(table.bytes, words);
            counts.add(0, slots.iter().filter(|&&slot| slot != 0).count() as u64);
        }
    }
    fn stats_of(&self, counts: &CellCounts) -> CellStats {
        let (fill, fpr) = self.fill_and_fpr_of(counts.get(0));
        CellStats { fill, fpr, ..CellStats::default() }
    }
    fn takes_parts(&self) -> bool {
        true
    }
    fn with_parts(&self, mut parts: Parts) -> Result<Box<dyn Kind>> {
        let cells = (0..Cuckoo::tables(self).len() as u32).map(|table| parts.take_foreign(table));
        Ok(Box::new(self.with_cells(cells.collect::<fullbloom_core::Result<_>>()?)?))
    }
    fn contains(&self, words: &[u64], found: &mut [u8]) {
        for (key, found) in words.iter().zip(found) {
            *found = u8::from(Cuckoo::contains(self, *key));
        }
    }
    fn add(&mut self, words: &[u64], mut new: Option<&mut [u8]>) -> Result<()> {
        for (at, &key) in words.iter().enumerate() {
            Cuckoo::add(self, key)?;
            if let Some(new) = &mut new {
                new[at] = 1;
            }
        }
        Ok(())
    }
    fn remove(&mut self, words: &[u64], mut removed: Option<&mut [u8]>) -> Result<()> {
        for (at, &key) in words.iter().enumerate() {
            let was_there = Cuckoo::remove(self, key)?;
            if let Some(removed) = &mut removed {
                removed[at] = u8::from(was_there);
            }
        }
        Ok(())
    }
    fn count(&self, words: &[u64], counts: &mut [u64]) -> Result<()> {
        words.iter().zip(counts).for_each(|(&key, count)| *count = Cuckoo::count(self, key));
        Ok(())
    }
}
