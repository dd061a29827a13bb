//! The log: changes are on disk before they are acknowledged.
//!
//! Each block records how far the log had been synced when the block was written, and `synced` records it for the whole
//! log. Recovery can therefore distinguish the unreadable end of a log after a crash from damage to synced data, which it
//! reports. Each segment names its predecessor, and the manifest names the oldest segment.
//!
//! * [`record`]: one change; `pending`: those that wait to be written;
//! * [`segment`]: a file of blocks of records, and its reader;
//! * `start`: where a log continues, and its new segment;
//! * [`synced`]: what is known to be on disk;
//! * [`writer`]: the thread that writes blocks, and syncs them for all waiting clients (group commit).
//!
//! What each mode promises:
//!
//! | mode | an acknowledged change survives |
//! |---|---|
//! | `always` | a crash of the process or the machine: it is synced before its reply |
//! | `everysec` | a process crash, except the last 10 ms; a machine crash, except the last second |
//! | `off` | a checkpoint: changes since the last one are lost |

mod pending;
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
    /// Before the reply.
    Always,
    /// After a second at most.
    EverySecond,
    /// At the next checkpoint.
    Off,
}

impl Durability {
    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Durability::Always => "always",
            Durability::EverySecond => "everysec",
            Durability::Off => "off",
        }
    }

    /// Parses [`Durability::name`].
    pub fn parse(name: &str) -> Option<Self> {
        [Durability::Always, Durability::EverySecond, Durability::Off].into_iter().find(|mode| mode.name() == name)
    }
}
