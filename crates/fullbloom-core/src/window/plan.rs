//! [`Plan`]: the parameters of generations, and their size.

use crate::error::{Error, Result};
use crate::sizing::{blocked, check_sized, each_of, format_rate};

/// More generations cost a line per lookup each and save less and less space.
pub const MAX_GENERATIONS: usize = 16;

/// The parameters of generations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// n, the number of keys remembered (in a window of time: keys that arrive within it).
    pub capacity: u64,
    /// p, rate of the whole.
    pub fpr: f64,
    /// g.
    pub generations: usize,
    /// True: a known key is written again unless the active plane holds it.
    pub refresh: bool,
    /// Seconds for which keys are remembered; `None` if keys are counted.
    pub window: Option<f64>,
}

impl Plan {
    pub(super) fn check(&self, range: [usize; 2]) -> Result<()> {
        check_sized(self.capacity, self.fpr)?;
        if !(range[0]..=range[1]).contains(&self.generations) {
            return Err(Error::Parameter(format!(
                "generations must be between {} and {}, got {}",
                range[0], range[1], self.generations
            )));
        }
        if let Some(window) = self.window
            && !(window > 0.0 && window.is_finite())
        {
            return Err(Error::Parameter(format!(
                "window must be a finite number of seconds above 0, got {}",
                format_rate(window)
            )));
        }
        Ok(())
    }

    /// Keys of a plane.
    pub(super) fn share(&self) -> u64 {
        match self.window {
            Some(_) => self.capacity,
            None => self.capacity.div_ceil(self.generations as u64 - 1),
        }
    }

    /// Rate of one plane.
    fn plane_fpr(&self) -> f64 {
        each_of(self.fpr, self.generations as f64)
    }

    /// Lines of a plane, positions per column.
    pub(super) fn size(&self) -> Result<(u64, u32)> {
        // An error about a plane names the caller's numbers, not the plane's.
        blocked::smallest_lines(self.share(), self.plane_fpr()).map_err(|error| match error {
            Error::Memory(_) => too_large(self),
            _ => Error::Parameter(format!(
                "a capacity of {} at fpr {} in {} generations cannot be reached (keys are 64-bit hashes); raise the fpr",
                self.capacity,
                format_rate(self.fpr),
                self.generations
            )),
        })
    }
}

pub(super) fn too_large(plan: &Plan) -> Error {
    Error::Memory(format!("a capacity of {} needs more memory than can be had; lower it", plan.capacity))
}
