//! The log: what was acknowledged, on disk before it is said to be.
//!
//! * [`record`]: one change;
//! * [`segment`]: a file of blocks of records, and its reader;
//! * `start`: where a log goes on, and the segment that it begins;
//! * [`synced`]: how much is known to be on disk;
//! * [`writer`]: the thread that writes blocks, and syncs them for everybody who waits (group commit).
//!
//! Promise of each mode, for the process and for the machine:
//!
//! | mode | an acknowledged change survives |
//! |---|---|
//! | `always` | the end of the process and of the machine: it was synced before its reply |
//! | `everysec` | the end of the process but for the last 10 ms, of the machine but for the last second |
//! | `off` | a checkpoint: changes since the last one are lost |

pub mod record;
pub mod segment;
mod start;
pub mod synced;
pub mod writer;

pub use record::{Record, StoredRecord};
pub use start::Start;
pub use writer::Log;

/// When an acknowledged change is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Before its reply.
    Always,
    /// A second later at most.
    EverySecond,
    /// At the next checkpoint.
    Off,
}

impl Durability {
    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Durability::Always => "always",
            Durability::EverySecond => "everysec",
            Durability::Off => "off",
        }
    }

    /// Reads [`Durability::name`].
    pub fn parse(name: &str) -> Option<Self> {
        [Durability::Always, Durability::EverySecond, Durability::Off].into_iter().find(|mode| mode.name() == name)
    }
}
