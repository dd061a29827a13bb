//! Names: list, drop, rename, expire.

use std::sync::Arc;

use super::arguments::{is, parse_integer};
use crate::auth::pattern::{PATTERN, Pattern};
use crate::fault::Code;
use crate::kind::Flavour;
use crate::resp::error::{CommandError, CommandResult};
use crate::resp::parser::Args;
use crate::resp::session::Session;
use crate::store::{self, Conflict, Entry, RenameOptions};

/// Larger filters are freed on a separate thread: a gigabyte takes the kernel a tenth of a second.
const LARGE: u64 = 16 << 20;

/// Drops a filter; returns whether it existed.
fn drop_one(session: &mut Session, name: &[u8]) -> CommandResult<bool> {
    let Some(entry) = session.find(name)? else { return Ok(false) };
    let Some(lsn) = session.server.store.drop_filter(name)? else { return Ok(false) };
    session.record(lsn);
    session.release();
    free(entry);
    Ok(true)
}

fn free(entry: Arc<Entry>) {
    if entry.nbytes() >= LARGE {
        let _ = std::thread::Builder::new().spawn(move || drop(entry));
    }
}

pub(super) fn del(session: &mut Session, args: Args<'_>) -> CommandResult {
    let mut dropped = 0;
    for name in args.from(1).iter() {
        dropped += i64::from(drop_one(session, name)?);
    }
    session.record_names();
    session.reply.integer(dropped);
    Ok(())
}

pub(super) fn exists(session: &mut Session, args: Args<'_>) -> CommandResult {
    let mut found = 0;
    for name in args.from(1).iter() {
        found += i64::from(session.find(name)?.is_some());
    }
    session.record_names();
    session.reply.integer(found);
    Ok(())
}

/// The type of a filter, as RedisBloom names it.
fn type_name(entry: &Entry) -> &'static str {
    match entry.settings.flavour {
        Flavour::Bloom => "MBbloom--",
        Flavour::Cuckoo => "MBbloomCF",
        Flavour::Any => "fullbloom",
        Flavour::Note => "string",
    }
}

pub(super) fn type_of(session: &mut Session, args: Args<'_>) -> CommandResult {
    let sort = session.find(args.at(1))?.map_or("none", |entry| type_name(&entry));
    session.record_names();
    session.reply.simple(sort);
    Ok(())
}

/// The filters that the client may see.
fn visible_entries(session: &Session) -> Vec<Arc<Entry>> {
    let mut entries = session.server.store.entries();
    entries.retain(|entry| session.grant.as_ref().is_some_and(|grant| grant.covers(entry.name().as_bytes())));
    entries
}

/// The names that the client may see. Each is read once: a filter may be renamed to a name that it may not see.
fn visible_names(session: &Session, entries: &[Arc<Entry>]) -> Vec<String> {
    let mut names: Vec<String> = entries.iter().map(|entry| entry.name()).collect();
    names.retain(|name| session.grant.as_ref().is_some_and(|grant| grant.covers(name.as_bytes())));
    names
}

pub(super) fn pattern(bytes: &[u8]) -> CommandResult<Pattern> {
    let long = || CommandError::new(format!("ERR a pattern has at most {PATTERN} bytes, not {}", bytes.len()));
    Pattern::new(bytes).ok_or_else(long)
}

pub(super) fn scan(session: &mut Session, args: Args<'_>) -> CommandResult {
    let cursor = std::str::from_utf8(args.at(1)).ok().and_then(|text| text.parse::<u64>().ok());
    let cursor = cursor.ok_or_else(|| CommandError::new("ERR invalid cursor"))?;
    let (mut form, mut count, mut sort): (Option<Pattern>, usize, Option<&[u8]>) = (None, 10, None);
    let syntax = || CommandError::new("ERR syntax error");
    for at in (2..args.len()).step_by(2) {
        let value = if at + 1 < args.len() { args.at(at + 1) } else { return Err(syntax()) };
        if is(args.at(at), "MATCH") {
            form = Some(pattern(value)?);
        } else if is(args.at(at), "COUNT") {
            count = usize::try_from(parse_integer(value)?).ok().filter(|&count| count > 0).ok_or_else(syntax)?;
        } else if is(args.at(at), "TYPE") {
            sort = Some(value);
        } else {
            return Err(syntax());
        }
    }
    let (mut entries, next) = session.server.store.page(cursor, count);
    entries.retain(|entry| sort.is_none_or(|sort| is(sort, type_name(entry))));
    let mut names = visible_names(session, &entries);
    names.retain(|name| form.as_ref().is_none_or(|form| form.matches(name.as_bytes())));
    session.record_names();
    session.reply.array(2);
    session.reply.text(&next.to_string());
    session.reply.array(names.len());
    names.iter().for_each(|name| session.reply.text(name));
    Ok(())
}

pub(super) fn keys(session: &mut Session, args: Args<'_>) -> CommandResult {
    if !session.server.options.keys {
        return Err(CommandError::new("ERR KEYS is switched off: use SCAN, or start the service with keys allowed"));
    }
    let form = pattern(args.at(1))?;
    let mut names = visible_names(session, &session.server.store.entries());
    names.retain(|name| form.matches(name.as_bytes()));
    session.record_names();
    session.reply.array(names.len());
    names.iter().for_each(|name| session.reply.text(name));
    Ok(())
}

pub(super) fn size(session: &mut Session, _: Args<'_>) -> CommandResult {
    session.reply.count(session.server.store.len() as u64);
    session.record_names();
    Ok(())
}

/// The expiry that a command sets, in milliseconds since 1970.
fn parse_expiry(command: &[u8], word: &[u8]) -> CommandResult<i64> {
    let name = String::from_utf8_lossy(command).to_ascii_lowercase();
    let number = parse_integer(word)?;
    let milliseconds = if name.starts_with('p') { Some(number) } else { number.checked_mul(1000) };
    let from = if name.ends_with("at") { 0 } else { store::now() as i64 };
    let due = milliseconds.and_then(|number| number.checked_add(from));
    due.ok_or_else(|| CommandError::new(format!("ERR invalid expire time in '{name}' command")))
}

pub(super) fn expire(session: &mut Session, args: Args<'_>) -> CommandResult {
    let due = parse_expiry(args.at(0), args.at(2))?;
    let known = ["NX", "XX", "GT", "LT"];
    let mut given = [false; 4];
    for word in args.from(3).iter() {
        let place = known.iter().position(|option| is(word, option));
        let place =
            place.ok_or_else(|| CommandError::new(format!("ERR Unsupported option {}", word.escape_ascii())))?;
        given[place] = true;
    }
    let [absent, present, later, earlier] = given;
    if absent && (present || later || earlier) {
        return Err(CommandError::new("ERR NX and XX, GT or LT options at the same time are not compatible"));
    }
    if later && earlier {
        return Err(CommandError::new("ERR GT and LT options at the same time are not compatible"));
    }
    let Some(entry) = session.find(args.at(1))? else {
        session.reply.integer(0);
        return Ok(());
    };
    let decide = |now: Option<u64>| {
        let now = now.map(|at| at as i64);
        let refused = (absent && now.is_some())
            || (present && now.is_none())
            || (later && now.is_none_or(|at| due <= at))
            || (earlier && now.is_some_and(|at| due >= at));
        (!refused).then(|| Some(due.max(1) as u64))
    };
    let store = session.server.store.clone();
    let done = store.update_expiry(&entry, decide)?;
    if let Some(lsn) = done {
        session.record(lsn);
        if due <= store::now() as i64 {
            // The expiry is already in the log; this record frees the memory.
            store.drop_entry(&entry)?.into_iter().for_each(|lsn| session.record(lsn));
            session.release();
            free(entry);
        }
    }
    session.reply.integer(done.is_some().into());
    Ok(())
}

pub(super) fn ttl(session: &mut Session, args: Args<'_>) -> CommandResult {
    let name = args.at(0).to_ascii_lowercase();
    let answer = match session.find(args.at(1))? {
        None => -2,
        Some(entry) => match entry.expires() {
            None => -1,
            Some(at) => {
                let at = if name.ends_with(b"expiretime") { at } else { at.saturating_sub(store::now()) };
                (if name.starts_with(b"p") { at } else { at.saturating_add(500) / 1000 }) as i64
            }
        },
    };
    session.record_names();
    session.reply.integer(answer);
    Ok(())
}

pub(super) fn persist(session: &mut Session, args: Args<'_>) -> CommandResult {
    let mut lsn = None;
    if let Some(entry) = session.find(args.at(1))? {
        lsn = session.server.store.update_expiry(&entry, |now| now.map(|_| None))?;
    }
    lsn.into_iter().for_each(|lsn| session.record(lsn));
    session.reply.integer(lsn.is_some().into());
    Ok(())
}

/// Renames a filter; returns false if the name is taken and must not be replaced.
fn rename_to(session: &mut Session, args: Args<'_>, conflict: Conflict<'_>) -> CommandResult<bool> {
    let wanted = RenameOptions { to: args.at(2), conflict, versions: None, expires: None };
    match session.server.store.rename_with(args.at(1), &wanted) {
        Ok(lsn) => session.record(lsn),
        Err(fault) if fault.code == Code::Missing => return Err(CommandError::new("ERR no such key")),
        Err(fault) if fault.code == Code::Exists => return Ok(false),
        Err(fault) => return Err(fault.into()),
    }
    Ok(true)
}

pub(super) fn rename(session: &mut Session, args: Args<'_>) -> CommandResult {
    rename_to(session, args, Conflict::Replace)?;
    session.ok()
}

pub(super) fn rename_absent(session: &mut Session, args: Args<'_>) -> CommandResult {
    let renamed = rename_to(session, args, Conflict::Refuse)?;
    session.reply.integer(renamed.into());
    Ok(())
}

pub(super) fn flush(session: &mut Session, args: Args<'_>) -> CommandResult {
    if !session.server.options.flush {
        return Err(CommandError::new(
            "ERR FLUSHDB is switched off: DEL filters, or start the service with flush allowed",
        ));
    }
    if args.len() > 2 || (args.len() == 2 && !is(args.at(1), "SYNC") && !is(args.at(1), "ASYNC")) {
        return Err(CommandError::new("ERR syntax error"));
    }
    for entry in visible_entries(session) {
        if let Some(lsn) = session.server.store.drop_entry(&entry)? {
            session.record(lsn);
        }
    }
    session.release();
    session.ok()
}
