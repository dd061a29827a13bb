//! [`Transaction`]: commands that `MULTI` has put off until `EXEC`.

use super::halt::{Done, Halt};
use super::parse::{Args, Caps, Found, Parser};
use super::reply::Reply;

/// Commands that were put off, a `C` each, with their words.
pub(super) struct Transaction<C> {
    commands: Vec<C>,
    /// Their words, as they came in.
    bytes: Vec<u8>,
    /// True once one was refused.
    spoiled: bool,
}

impl<C> Transaction<C> {
    pub(super) fn new() -> Self {
        Transaction { commands: Vec::new(), bytes: Vec::new(), spoiled: false }
    }

    /// Notes that a command was refused: none is done, then.
    pub(super) fn spoil(&mut self) {
        self.spoiled = true;
    }

    /// True once a command was refused.
    pub(super) fn is_spoiled(&self) -> bool {
        self.spoiled
    }

    /// How many commands were put off.
    pub(super) fn len(&self) -> usize {
        self.commands.len()
    }

    /// Puts a command off.
    pub(super) fn queue(&mut self, command: C, args: Args<'_>, reply: &mut Reply) -> Done {
        const MOST: usize = 64 << 20;
        let bytes: usize = args.iter().map(|arg| arg.len() + 32).sum();
        if self.bytes.len() + bytes > MOST {
            self.spoiled = true;
            return Err(Halt::text(format!("ERR a transaction has at most {MOST} bytes")));
        }
        let mut words = Reply { out: std::mem::take(&mut self.bytes), three: false };
        words.array(args.len());
        args.iter().for_each(|arg| words.bulk(arg));
        self.bytes = words.out;
        self.commands.push(command);
        reply.simple("QUEUED");
        Ok(())
    }

    /// Does something with each command.
    pub(super) fn each(&self, caps: &Caps, mut work: impl FnMut(&C, Args<'_>)) {
        let (mut parser, mut spans, mut at) = (Parser::default(), Vec::new(), 0);
        for command in &self.commands {
            let Ok(Found::Array(length)) = parser.next(&self.bytes[at..], &mut spans, caps) else { return };
            work(command, Args::new(&self.bytes[at..], &spans));
            at += length;
        }
    }
}
