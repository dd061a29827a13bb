//! [`Transaction`]: the commands that `MULTI` queues until `EXEC`.

use std::sync::Arc;

use super::error::{CommandError, CommandResult};
use super::parser::{Args, Caps, Parser, Progress};
use super::reply::Reply;
use crate::budget::{Budget, Reservation};
use crate::fault::Result;

/// The bytes of a transaction that are not charged to the budget.
const FREE: usize = 16 << 10;

/// Queued commands, one `C` each, with their words.
pub(super) struct Transaction<C> {
    commands: Vec<C>,
    /// Their words, as they arrived.
    bytes: Vec<u8>,
    /// The memory charged beyond the first [`FREE`] bytes.
    held: Reservation,
    /// True once a command was refused.
    aborted: bool,
}

impl<C> Transaction<C> {
    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        Transaction { commands: Vec::new(), bytes: Vec::new(), held: budget.empty(), aborted: false }
    }

    /// Records that a command was refused: then none is executed.
    pub(super) fn abort(&mut self) {
        self.aborted = true;
        (self.commands, self.bytes) = (Vec::new(), Vec::new());
        self.held.release();
    }

    /// True once a command was refused.
    pub(super) fn is_aborted(&self) -> bool {
        self.aborted
    }

    pub(super) fn len(&self) -> usize {
        self.commands.len()
    }

    pub(super) fn queue(&mut self, command: C, args: Args<'_>, reply: &mut Reply) -> CommandResult {
        const MOST: usize = 64 << 20;
        let bytes: usize = args.iter().map(|arg| arg.len() + 32).sum();
        if self.aborted {
            reply.simple("QUEUED");
            return Ok(());
        }
        if self.bytes.len() + bytes > MOST {
            self.abort();
            return Err(CommandError::new(format!("ERR a transaction has at most {MOST} bytes")));
        }
        if let Err(fault) = self.make_room(bytes + 32) {
            self.abort();
            return Err(fault.into());
        }
        let mut words = Reply { out: std::mem::take(&mut self.bytes), ..Reply::default() };
        words.array(args.len());
        args.iter().for_each(|arg| words.bulk(arg));
        self.bytes = words.out;
        self.commands.push(command);
        reply.simple("QUEUED");
        Ok(())
    }

    /// Reserves space for more bytes, charged to the budget.
    fn make_room(&mut self, more: usize) -> Result<()> {
        let wanted = self.bytes.len() + more;
        let commands = self.commands.len() + 1;
        if wanted > self.bytes.capacity() || commands > self.commands.capacity() {
            let (all, commands) = (wanted + wanted / 4, commands + commands / 4);
            let taken = all + commands * size_of::<C>();
            if taken > FREE {
                self.held.set(taken as u64)?;
            }
            self.bytes.reserve_exact(all - self.bytes.len());
            self.commands.reserve_exact(commands - self.commands.len());
        }
        Ok(())
    }

    /// Calls `work` with each command.
    pub(super) fn each(&self, caps: &Caps, mut work: impl FnMut(&C, Args<'_>)) {
        // The length was checked when they arrived: words of a line take more bytes as an array.
        let caps = &Caps { request: usize::MAX, ..*caps };
        let (mut parser, mut spans, mut at) = (Parser::default(), Vec::new(), 0);
        for command in &self.commands {
            let Ok(Progress::Array(length)) = parser.next(&self.bytes[at..], &mut spans, caps) else { return };
            work(command, Args::new(&self.bytes[at..], &spans));
            at += length;
        }
    }
}
