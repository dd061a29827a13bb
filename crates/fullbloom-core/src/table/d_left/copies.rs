//! Copies of a fingerprint, counted in its cells.
//!
//! A cell counts to 3. Copies beyond that occupy further cells of the same fingerprint, whose digits 1 to 3, least
//! significant first in the order of sub-tables and cells, write the count in base 3 without a zero (3, 11, 12, 13, 21,
//! ...). A cell is added only if all digits become 1, and removed only if all were 1, so its place does not matter.
//! Counts are thus exact, a million copies need 13 cells, and removing is always possible: nothing saturates.

use super::DLeftCountingFilter;
use super::table::TOP;
use crate::error::Result;

/// The digits of a count, least significant first.
fn digits(mut count: u64) -> Vec<u64> {
    let mut digits = Vec::new();
    while count > 0 {
        let digit = (count - 1) % TOP + 1;
        digits.push(digit);
        count = (count - digit) / TOP;
    }
    digits
}

impl DLeftCountingFilter {
    /// Cells of a fingerprint, least significant digit first.
    fn cells_of(&self, fingerprint: u64) -> Vec<u64> {
        let mut cells = Vec::new();
        self.table.each_cell(self.memory.words(), fingerprint, |cell| {
            cells.push(cell);
            true
        });
        cells
    }

    fn first_cell(&self, fingerprint: u64) -> Option<u64> {
        let mut first = None;
        self.table.each_cell(self.memory.words(), fingerprint, |cell| {
            first = Some(cell);
            false
        });
        first
    }

    /// One more copy of a fingerprint that is present.
    fn increment(&mut self, fingerprint: u64) -> Result<()> {
        let table = self.table;
        if let Some(cell) = self.first_cell(fingerprint) {
            let words = self.memory.writable()?;
            let digit = table.digit(words, cell);
            if digit < TOP {
                table.set_digit(words, cell, digit + 1);
                return Ok(());
            }
        }
        let cells = self.cells_of(fingerprint);
        let words = self.memory.writable()?;
        let carried = cells.iter().take_while(|&&cell| table.digit(words, cell) == TOP).count();
        if carried == cells.len() {
            let (room, _) = table.survey(words, fingerprint);
            if !table.place(words, room, fingerprint) {
                return Err(self.full());
            }
        }
        let words = self.memory.writable()?;
        cells.iter().take(carried).for_each(|&cell| table.set_digit(words, cell, 1));
        if let Some(&cell) = cells.get(carried) {
            let digit = table.digit(words, cell);
            table.set_digit(words, cell, digit + 1);
        }
        Ok(())
    }

    pub(super) fn add_fingerprint(&mut self, fingerprint: u64) -> Result<bool> {
        let table = self.table;
        let words = self.memory.writable()?;
        let (room, found) = table.survey(words, fingerprint);
        if found {
            return self.increment(fingerprint).map(|()| false);
        }
        if !table.place(words, room, fingerprint) {
            return Err(self.full());
        }
        self.load.count(true);
        Ok(true)
    }

    pub(super) fn remove_fingerprint(&mut self, fingerprint: u64) -> Result<bool> {
        let table = self.table;
        let first = self.first_cell(fingerprint);
        let words = self.memory.writable()?;
        let Some(first) = first else { return Ok(false) };
        let digit = table.digit(words, first);
        if digit > 1 {
            table.set_digit(words, first, digit - 1);
            return Ok(true);
        }
        let cells = self.cells_of(fingerprint);
        let words = self.memory.writable()?;
        let borrowed = cells.iter().take_while(|&&cell| table.digit(words, cell) == 1).count();
        cells.iter().take(borrowed).for_each(|&cell| table.set_digit(words, cell, TOP));
        match (cells.get(borrowed), cells.last()) {
            (Some(&cell), _) => {
                let digit = table.digit(words, cell);
                table.set_digit(words, cell, digit - 1);
            }
            (None, Some(&last)) => table.set_digit(words, last, 0),
            (None, None) => {}
        }
        if cells.len() == 1 {
            self.load.added = self.load.added.saturating_sub(1);
        }
        Ok(true)
    }

    pub(super) fn count_fingerprint(&self, fingerprint: u64) -> u64 {
        let words = self.memory.words();
        let (mut count, mut weight) = (0u64, 1u64);
        self.table.each_cell(words, fingerprint, |cell| {
            count = count.saturating_add(self.table.digit(words, cell).saturating_mul(weight));
            weight = weight.saturating_mul(3);
            true
        });
        count
    }

    /// Sets the count of a fingerprint that has fewer copies now; if its cells find no space, to the count that the
    /// cells can represent.
    pub(super) fn raise_to(&mut self, fingerprint: u64, count: u64) -> Result<()> {
        let digits = digits(count);
        let table = self.table;
        let have = self.cells_of(fingerprint).len();
        for _ in have..digits.len() {
            let words = self.memory.writable()?;
            let (room, _) = table.survey(words, fingerprint);
            if !table.place(words, room, fingerprint) {
                let cells = self.cells_of(fingerprint);
                let words = self.memory.writable()?;
                cells.iter().for_each(|&cell| table.set_digit(words, cell, TOP));
                self.load.count(have == 0 && !cells.is_empty());
                return Err(self.full());
            }
        }
        let cells = self.cells_of(fingerprint);
        let words = self.memory.writable()?;
        cells.iter().zip(digits).for_each(|(&cell, digit)| table.set_digit(words, cell, digit));
        self.load.count(have == 0 && count > 0);
        Ok(())
    }

    /// Sets the count of a fingerprint that has more copies now.
    pub(super) fn lower_to(&mut self, fingerprint: u64, count: u64) -> Result<()> {
        let (table, cells) = (self.table, self.cells_of(fingerprint));
        let words = self.memory.writable()?;
        let digits = digits(count).into_iter().chain(std::iter::repeat(0));
        cells.iter().zip(digits).for_each(|(&cell, digit)| table.set_digit(words, cell, digit));
        self.load.uncount(count == 0 && !cells.is_empty());
        Ok(())
    }

    /// Adds all fingerprints of `other`; after an error some are in.
    pub(super) fn take_in(&mut self, other: &Self) -> Result<()> {
        let words = other.memory.words();
        for cell in 0..other.shape.num_cells() {
            if other.table.digit(words, cell) == 0 {
                continue;
            }
            let fingerprint = other.table.fingerprint_at(words, cell);
            // Each fingerprint once, at its first cell.
            if other.first_cell(fingerprint) == Some(cell) {
                let more = other.count_fingerprint(fingerprint);
                let count = self.count_fingerprint(fingerprint).saturating_add(more);
                self.raise_to(fingerprint, count)?;
            }
        }
        Ok(())
    }
}
