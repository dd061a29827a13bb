//! [`Facts`]: the parameters of a map besides its cells.

use crate::cells::packed::PackedCells;
use crate::error::{Error, Result};
use crate::static_filters::fingerprints::Precision;
use crate::static_filters::shards::{self, Shape};
use crate::structure::records::SortedRecords;

/// Bits that say which of three or four cells is a key's own.
pub(super) const OWN_BITS: u32 = 2;

/// Default bits of a check, if no rate is given.
const CHECK_BITS: u64 = 8;

/// Bits of a value before the largest value is known.
pub(super) const VALUE_BITS: u64 = 8;

/// The fields besides cells and table.
#[derive(Clone, Copy)]
pub(super) struct Facts {
    pub(super) value_bits: u32,
    pub(super) check_bits: u32,
    pub(super) mutable: bool,
    pub(super) arity: u32,
    /// Shards are 2^bits.
    pub(super) bits: u32,
    pub(super) keys: u64,
    pub(super) cells: u64,
    pub(super) target_fpr: f64,
}

impl Facts {
    /// From the caller's arguments, for values of up to `largest`.
    pub(super) fn new(
        fpr: Option<f64>,
        check_bits: Option<u64>,
        value_bits: Option<u64>,
        mutable: bool,
        arity: u64,
        largest: u64,
    ) -> Result<Self> {
        let check_bits = check_bits.or(if fpr.is_none() { Some(CHECK_BITS) } else { None });
        let precision = Precision::parse_bits("check_bits", fpr, check_bits)?;
        if !matches!(arity, 3 | 4) {
            return Err(Error::Parameter(format!("arity must be 3 or 4, got {arity}")));
        }
        let needed = (64 - largest.leading_zeros()).max(1);
        let value_bits = match value_bits {
            None => needed,
            Some(bits) if !(1..=64).contains(&bits) => {
                return Err(Error::Parameter(format!("value_bits must be between 1 and 64, got {bits}")));
            }
            Some(bits) if bits < needed.into() => {
                let remedy = format!("raise it to {needed} or more");
                return Err(Error::Parameter(format!(
                    "value_bits={bits} is too few for the value {largest}; {remedy}"
                )));
            }
            Some(bits) => bits as u32,
        };
        let check_bits = precision.width;
        if !mutable && value_bits + check_bits > 64 {
            return Err(Error::Parameter(format!(
                "value_bits={value_bits} and check_bits={check_bits} must be at most 64 together; pass mutable=True, whose values lie in a table of their own, or fewer check_bits"
            )));
        }
        Ok(Facts {
            value_bits,
            check_bits,
            mutable,
            arity: arity as u32,
            bits: 0,
            keys: 0,
            cells: 0,
            target_fpr: precision.fpr,
        })
    }

    /// Bits of a cell below the check.
    pub(super) fn below(self) -> u32 {
        if self.mutable { OWN_BITS } else { self.value_bits }
    }

    /// The cells; their widths are checked.
    pub(super) fn create_cells(self) -> Result<PackedCells> {
        PackedCells::new(self.below() + self.check_bits).ok_or_else(|| Error::parameter("cells must have 1 to 64 bits"))
    }

    /// The values; their width is checked.
    pub(super) fn values(self) -> Result<PackedCells> {
        PackedCells::new(self.value_bits).ok_or_else(|| Error::parameter("values must have 1 to 64 bits"))
    }

    /// Words of values for `words` words of cells: each cell has a slot, or there is one empty line.
    pub(super) fn value_words(self, words: u64) -> Result<u64> {
        let slots = u128::from(words) * 64 / u128::from(self.below() + self.check_bits);
        let slots = if self.mutable { u64::try_from(slots).unwrap_or(u64::MAX) } else { 0 };
        Ok(self.values()?.words(slots).unwrap_or(u64::MAX >> 8).max(1))
    }

    /// Bytes of cells, table and values for `keys` keys.
    pub(super) fn nbytes<const K: usize, S: Shape<K>>(self, keys: u64) -> Result<u64> {
        let cells = shards::cell_bytes::<K, S>(keys, self.create_cells()?);
        let table = (8 * shards::ROW as u64) << shards::bits_for(keys);
        let values = self.value_words(cells / 8)?.saturating_mul(8).next_multiple_of(64);
        Ok(cells.saturating_add(table.next_multiple_of(64)).saturating_add(values))
    }

    /// Refuses to exceed the memory limit, if values add to the cells.
    pub(super) fn check_granted<const K: usize, S: Shape<K>>(self, pairs: &SortedRecords<2>) -> Result<()> {
        let needed = self.nbytes::<K, S>(pairs.len())?;
        match pairs.memory_limit() {
            Some(granted) if granted < needed => Err(Error::Memory(format!(
                "{} keys with their values need {needed} bytes of memory, got memory={granted}; raise it",
                pairs.len()
            ))),
            _ => Ok(()),
        }
    }

    /// Completes the facts of a file by its table: words of cells and of values, and the facts.
    pub(super) fn load<const K: usize, S: Shape<K>>(mut self, table: &[u64]) -> Result<(u64, u64, Self)> {
        let (words, cells) =
            shards::check_table::<K, S>(table, self.bits, self.create_cells().map_err(Error::as_format)?)?;
        if self.keys > cells {
            return Err(Error::Format(format!("the file has {} keys in {cells} cells; it is damaged", self.keys)));
        }
        self.cells = cells;
        Ok((words, self.value_words(words - 1)?, self))
    }
}
