//! [`ScalableBloomFilter`]: the growing filter whose stages are Bloom filters.

use super::filter::BloomFilter;
use super::shape::{Layout, Shape};
use super::stored;
use crate::cells::{LINE_WORDS, Memory};
use crate::container::{Header, Section, tag};
use crate::error::{Error, Result};
use crate::filter::Fact;
use crate::growing::{self, Scalable, Stage};
use crate::key::KeyHasher;
use crate::registry::SCALABLE;

/// A Bloom filter without a fixed capacity.
pub type ScalableBloomFilter = Scalable<BloomFilter>;

/// What its stages are made from; the layout of all, or `None` to choose anew for each one's rate.
pub type Plan = growing::Plan<Option<Layout>>;

fn shape(layout: Option<Layout>, capacity: u64, fpr: f64) -> Result<Shape> {
    match layout {
        Some(layout) => Shape::for_capacity(layout, None, capacity, fpr),
        None => Shape::auto(capacity, fpr),
    }
}

impl Stage for BloomFilter {
    type Choice = Option<Layout>;
    const VARIANT: u16 = SCALABLE;
    const PARAMS: usize = stored::PARAMS;
    const MARK: u16 = tag::NUM_BITS;
    const CHOICE_PARAMS: usize = 1;

    fn fresh(layout: Option<Layout>, capacity: u64, fpr: f64, hasher: KeyHasher) -> Result<Self> {
        BloomFilter::new(shape(layout, capacity, fpr)?, capacity, fpr, hasher, false)
    }

    fn nbytes_of(layout: Option<Layout>, capacity: u64, fpr: f64) -> Result<u64> {
        Ok(shape(layout, capacity, fpr)?.words().next_multiple_of(LINE_WORDS as u64) * 8)
    }

    fn describe(&self, header: &mut Header, index: u16) {
        stored::describe(self, header, index);
    }

    fn sections(&self, index: u32) -> Vec<Section<'_>> {
        vec![stored::section(self, index)]
    }

    fn restore(
        header: &Header,
        index: u16,
        hasher: KeyHasher,
        memory: &mut dyn FnMut(u32, u32, u64) -> Result<Memory>,
    ) -> Result<Self> {
        stored::restore(header, index, hasher, memory)
    }

    fn describe_choice(layout: Option<Layout>, header: &mut Header, index: u16) {
        header.set(tag::LAYOUT, index, layout.map_or(0, |layout| layout as u64));
    }

    fn restore_choice(header: &Header, index: u16) -> Result<Option<Layout>> {
        match header.get(tag::LAYOUT, index)? {
            0 => Ok(None),
            id => Layout::from_id(id).map(Some).ok_or_else(|| Error::format("the file names an unknown layout")),
        }
    }

    fn choice_facts(layout: Option<Layout>) -> Vec<(&'static str, Fact)> {
        vec![("layout", Fact::Text(layout.map_or("auto", Layout::name).into()))]
    }

    fn estimate_facts(stages: &[Self]) -> Vec<(&'static str, Fact)> {
        let (approx, sd) = growing::approx_count(stages);
        vec![("approx_count", Fact::Real(approx)), ("approx_count_sd", Fact::Real(sd))]
    }

    fn set_cells(&self) -> (u64, u64) {
        (self.ones(), self.shape.num_bits)
    }

    fn is_read_only(&self) -> bool {
        BloomFilter::is_read_only(self)
    }
}
