//! `SET` and `GET`: notes, small texts beside the filters.

use super::arguments::{is, parse_integer};
use crate::kind::Note;
use crate::resp::error::{CommandError, CommandResult, WRONG_TYPE};
use crate::resp::parser::Args;
use crate::resp::session::Session;
use crate::store::{self, Entry, NoteExpiry};

#[derive(Default)]
struct Options {
    present: Option<bool>,
    get: bool,
    until: Option<NoteExpiry>,
}

impl Options {
    fn read(words: Args<'_>) -> CommandResult<Self> {
        let (mut options, mut at) = (Options::default(), 0);
        let syntax = || CommandError::new("ERR syntax error");
        while at < words.len() {
            let word = words.at(at);
            at += 1;
            let present = [("NX", false), ("XX", true)].iter().find(|(name, _)| is(word, name)).map(|(_, yes)| *yes);
            if present.is_some() && options.present.is_none_or(|known| Some(known) == present) {
                options.present = present;
            } else if is(word, "GET") {
                options.get = true;
            } else if is(word, "KEEPTTL") && options.until.is_none_or(|until| until == NoteExpiry::Keep) {
                options.until = Some(NoteExpiry::Keep);
            } else if options.until.is_none() && at < words.len() && TIMES.iter().any(|(name, ..)| is(word, name)) {
                options.until = Some(NoteExpiry::At(parse_expiry(word, words.at(at))?));
                at += 1;
            } else {
                return Err(syntax());
            }
        }
        Ok(options)
    }
}

/// The expiry options: name, milliseconds per unit, and whether the time counts from now.
const TIMES: [(&str, i64, bool); 4] = [("EX", 1000, true), ("PX", 1, true), ("EXAT", 1000, false), ("PXAT", 1, false)];

/// When a note expires, in milliseconds since 1970.
fn parse_expiry(option: &[u8], word: &[u8]) -> CommandResult<u64> {
    let number = parse_integer(word)?;
    let (_, unit, relative) = *TIMES.iter().find(|(name, ..)| is(option, name)).unwrap_or(&TIMES[0]);
    let from = if relative { store::now() as i64 } else { 0 };
    let due = number.checked_mul(unit).and_then(|span| span.checked_add(from)).filter(|_| number > 0);
    due.map(|due| due as u64).ok_or_else(|| CommandError::new("ERR invalid expire time in 'set' command"))
}

pub(super) fn set(session: &mut Session, args: Args<'_>) -> CommandResult {
    let options = Options::read(args.from(3))?;
    // Drops and logs an expired note before another takes its name.
    session.find(args.at(1))?;
    let until = options.until.unwrap_or(NoteExpiry::Never);
    let noted = session.server.store.set_note(args.at(1), args.at(2), options.present, until)?;
    let is_filter = noted.before.as_ref().is_some_and(|before| !before.is_note());
    if is_filter && (options.get || options.present != Some(false)) {
        return Err(CommandError::new(WRONG_TYPE));
    }
    if let Some(lsn) = noted.lsn {
        session.record(lsn);
        session.release();
    }
    match noted.lsn {
        _ if options.get => write_value(session, noted.before.as_deref()),
        Some(_) => session.reply.ok(),
        None => session.reply.null(),
    }
    Ok(())
}

pub(super) fn get(session: &mut Session, args: Args<'_>) -> CommandResult {
    let found = session.find(args.at(1))?;
    match &found {
        Some(entry) if !entry.is_note() => return Err(CommandError::new(WRONG_TYPE)),
        Some(note) => session.record_state(note),
        None => session.record_names(),
    }
    write_value(session, found.as_deref());
    Ok(())
}

fn write_value(session: &mut Session, note: Option<&Entry>) {
    match note {
        None => session.reply.null(),
        Some(entry) => session.reply.bulk(Note::text_of(entry.read().as_ref()).unwrap_or_default()),
    }
}
