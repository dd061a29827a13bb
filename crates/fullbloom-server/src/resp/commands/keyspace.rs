//! Names: what there is, dropping, renaming, expiring.

use std::sync::Arc;

use super::super::command::{ALL, Command, NONE, ONE, command, flag};
use super::super::gate::{PATTERN, Pattern, Scope};
use super::super::halt::{Done, Halt};
use super::super::parse::Args;
use super::super::session::Session;
use super::arguments::{an_integer, is};
use crate::fault::Code;
use crate::kind::Flavour;
use crate::store::{self, Conflict, Entry, Renaming};

const WRITE: u16 = flag::WRITE | flag::FAST;
const READ: u16 = flag::FAST;
const TWO: (i32, i32, i32) = (1, 2, 1);

pub(super) const COMMANDS: &[Command<Session>] = &[
    command("del", -2, WRITE, ALL, Scope::Write, del, "Drops filters: how many there were"),
    command("unlink", -2, WRITE, ALL, Scope::Write, del, "Drops filters: how many there were"),
    command("exists", -2, READ, ALL, Scope::Read, exists, "How many of the names are those of filters"),
    command("touch", -2, READ, ALL, Scope::Read, exists, "How many of the names are those of filters"),
    command("type", 2, READ, ONE, Scope::Read, sort, "What sort of filter has a name"),
    command("scan", -2, flag::SLOW, NONE, Scope::Read, scan, "Names of filters, some at a time"),
    command("keys", 2, flag::SLOW, NONE, Scope::Read, keys, "All names of filters of a form"),
    command("dbsize", 1, READ, NONE, Scope::Read, size, "How many filters there are"),
    command("expire", -3, WRITE, ONE, Scope::Write, expire, "Drops a filter in so many seconds"),
    command("pexpire", -3, WRITE, ONE, Scope::Write, expire, "Drops a filter in so many milliseconds"),
    command("expireat", -3, WRITE, ONE, Scope::Write, expire, "Drops a filter at a time in seconds"),
    command("pexpireat", -3, WRITE, ONE, Scope::Write, expire, "Drops a filter at a time in milliseconds"),
    command("ttl", 2, READ, ONE, Scope::Read, ttl, "In how many seconds a filter is dropped"),
    command("pttl", 2, READ, ONE, Scope::Read, ttl, "In how many milliseconds a filter is dropped"),
    command("expiretime", 2, READ, ONE, Scope::Read, ttl, "At what time in seconds a filter is dropped"),
    command("pexpiretime", 2, READ, ONE, Scope::Read, ttl, "At what time in milliseconds a filter is dropped"),
    command("persist", 2, WRITE, ONE, Scope::Write, persist, "Does not drop a filter after all"),
    command("rename", 3, WRITE, TWO, Scope::Write, rename, "Gives a filter another name"),
    command("renamenx", 3, WRITE, TWO, Scope::Write, rename_absent, "Gives a filter another name, if that is free"),
    command("flushdb", -1, ADMIN, NONE, Scope::Admin, flush, "Drops every filter"),
    command("flushall", -1, ADMIN, NONE, Scope::Admin, flush, "Drops every filter"),
];

const ADMIN: u16 = flag::WRITE | flag::SLOW | flag::ADMIN;
/// Filters of so many bytes are freed on a thread of their own: a gigabyte takes the kernel a tenth of a second.
const LARGE: u64 = 16 << 20;

/// Drops a filter: true if there was one.
fn drop_one(session: &mut Session, name: &[u8]) -> Done<bool> {
    let Some(entry) = session.find(name)? else { return Ok(false) };
    let Some(lsn) = session.server.store.drop_filter(name)? else { return Ok(false) };
    session.note(lsn);
    session.rest();
    free(entry);
    Ok(true)
}

/// Lets go of an entry that was dropped.
fn free(entry: Arc<Entry>) {
    if entry.nbytes() >= LARGE {
        let _ = std::thread::Builder::new().spawn(move || drop(entry));
    }
}

fn del(session: &mut Session, args: Args<'_>) -> Done {
    let mut dropped = 0;
    for name in args.from(1).iter() {
        dropped += i64::from(drop_one(session, name)?);
    }
    session.note_names();
    session.reply.integer(dropped);
    Ok(())
}

fn exists(session: &mut Session, args: Args<'_>) -> Done {
    let mut found = 0;
    for name in args.from(1).iter() {
        found += i64::from(session.find(name)?.is_some());
    }
    session.note_names();
    session.reply.integer(found);
    Ok(())
}

/// The sort of a filter, as modules name theirs.
fn sort_of(entry: &Entry) -> &'static str {
    match entry.settings.flavour {
        Flavour::Bloom => "MBbloom--",
        Flavour::Cuckoo => "MBbloomCF",
        Flavour::Any => "fullbloom",
        Flavour::Note => "string",
    }
}

fn sort(session: &mut Session, args: Args<'_>) -> Done {
    let sort = session.find(args.at(1))?.map_or("none", |entry| sort_of(&entry));
    session.note_names();
    session.reply.simple(sort);
    Ok(())
}

/// Filters that the client may know of.
fn known(session: &Session) -> Vec<Arc<Entry>> {
    let mut entries = session.server.store.entries();
    entries.retain(|entry| session.grant.as_ref().is_some_and(|grant| grant.covers(entry.name().as_bytes())));
    entries
}

/// A pattern for names.
pub(super) fn pattern(bytes: &[u8]) -> Done<Pattern> {
    let long = || Halt::text(format!("ERR a pattern has at most {PATTERN} bytes, not {}", bytes.len()));
    Pattern::new(bytes).ok_or_else(long)
}

fn scan(session: &mut Session, args: Args<'_>) -> Done {
    let cursor = std::str::from_utf8(args.at(1)).ok().and_then(|text| text.parse::<u64>().ok());
    let cursor = cursor.ok_or_else(|| Halt::text("ERR invalid cursor"))?;
    let (mut form, mut count, mut sort): (Option<Pattern>, usize, Option<&[u8]>) = (None, 10, None);
    let syntax = || Halt::text("ERR syntax error");
    for at in (2..args.len()).step_by(2) {
        let value = if at + 1 < args.len() { args.at(at + 1) } else { return Err(syntax()) };
        if is(args.at(at), "MATCH") {
            form = Some(pattern(value)?);
        } else if is(args.at(at), "COUNT") {
            count = usize::try_from(an_integer(value)?).ok().filter(|&count| count > 0).ok_or_else(syntax)?;
        } else if is(args.at(at), "TYPE") {
            sort = Some(value);
        } else {
            return Err(syntax());
        }
    }
    let (mut entries, next) = session.server.store.page(cursor, count);
    entries.retain(|entry| {
        session.grant.as_ref().is_some_and(|grant| grant.covers(entry.name().as_bytes()))
            && sort.is_none_or(|sort| is(sort, sort_of(entry)))
    });
    let names: Vec<String> = entries.iter().map(|e| e.name()).collect();
    let fits = |name: &&String| form.as_ref().is_none_or(|form| form.matches(name.as_bytes()));
    let names: Vec<&String> = names.iter().filter(fits).collect();
    session.note_names();
    session.reply.array(2);
    session.reply.text(&next.to_string());
    session.reply.array(names.len());
    names.iter().for_each(|name| session.reply.text(name));
    Ok(())
}

fn keys(session: &mut Session, args: Args<'_>) -> Done {
    if !session.server.options.keys {
        return Err(Halt::text("ERR KEYS is switched off: use SCAN, or start the service with keys allowed"));
    }
    let form = pattern(args.at(1))?;
    let names: Vec<String> = known(session).iter().map(|entry| entry.name()).collect();
    let names: Vec<&String> = names.iter().filter(|name| form.matches(name.as_bytes())).collect();
    session.note_names();
    session.reply.array(names.len());
    names.iter().for_each(|name| session.reply.text(name));
    Ok(())
}

fn size(session: &mut Session, _: Args<'_>) -> Done {
    session.reply.count(session.server.store.len() as u64);
    session.note_names();
    Ok(())
}

/// When a filter is to be dropped, in milliseconds since 1970.
fn due(command: &[u8], word: &[u8]) -> Done<i64> {
    let name = String::from_utf8_lossy(command).to_ascii_lowercase();
    let number = an_integer(word)?;
    let milliseconds = if name.starts_with('p') { Some(number) } else { number.checked_mul(1000) };
    let from = if name.ends_with("at") { 0 } else { store::now() as i64 };
    let due = milliseconds.and_then(|number| number.checked_add(from));
    due.ok_or_else(|| Halt::text(format!("ERR invalid expire time in '{name}' command")))
}

fn expire(session: &mut Session, args: Args<'_>) -> Done {
    let due = due(args.at(0), args.at(2))?;
    let known = ["NX", "XX", "GT", "LT"];
    let mut given = [false; 4];
    for word in args.from(3).iter() {
        let place = known.iter().position(|option| is(word, option));
        let place = place.ok_or_else(|| Halt::text(format!("ERR Unsupported option {}", word.escape_ascii())))?;
        given[place] = true;
    }
    let [absent, present, later, earlier] = given;
    if absent && (present || later || earlier) {
        return Err(Halt::text("ERR NX and XX, GT or LT options at the same time are not compatible"));
    }
    if later && earlier {
        return Err(Halt::text("ERR GT and LT options at the same time are not compatible"));
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
    let done = store.expire_if(&entry, decide)?;
    if let Some(lsn) = done {
        session.note(lsn);
        if due <= store::now() as i64 {
            // One record has said it already; this one gives the memory back.
            store.drop_entry(&entry)?.into_iter().for_each(|lsn| session.note(lsn));
            session.rest();
            free(entry);
        }
    }
    session.reply.integer(done.is_some().into());
    Ok(())
}

fn ttl(session: &mut Session, args: Args<'_>) -> Done {
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
    session.note_names();
    session.reply.integer(answer);
    Ok(())
}

fn persist(session: &mut Session, args: Args<'_>) -> Done {
    let mut lsn = None;
    if let Some(entry) = session.find(args.at(1))? {
        lsn = session.server.store.expire_if(&entry, |now| now.map(|_| None))?;
    }
    lsn.into_iter().for_each(|lsn| session.note(lsn));
    session.reply.integer(lsn.is_some().into());
    Ok(())
}

/// Gives a filter another name: false where that is taken and is not to be replaced.
fn rename_to(session: &mut Session, args: Args<'_>, conflict: Conflict<'_>) -> Done<bool> {
    let wanted = Renaming { to: args.at(2), conflict, versions: None, expires: None };
    match session.server.store.rename_as(args.at(1), &wanted) {
        Ok(lsn) => session.note(lsn),
        Err(fault) if fault.code == Code::Missing => return Err(Halt::text("ERR no such key")),
        Err(fault) if fault.code == Code::Exists => return Ok(false),
        Err(fault) => return Err(fault.into()),
    }
    Ok(true)
}

fn rename(session: &mut Session, args: Args<'_>) -> Done {
    rename_to(session, args, Conflict::Replace)?;
    session.reply.ok();
    Ok(())
}

fn rename_absent(session: &mut Session, args: Args<'_>) -> Done {
    let renamed = rename_to(session, args, Conflict::Refuse)?;
    session.reply.integer(renamed.into());
    Ok(())
}

fn flush(session: &mut Session, args: Args<'_>) -> Done {
    if !session.server.options.flush {
        return Err(Halt::text("ERR FLUSHDB is switched off: DEL filters, or start the service with flush allowed"));
    }
    if args.len() > 2 || (args.len() == 2 && !is(args.at(1), "SYNC") && !is(args.at(1), "ASYNC")) {
        return Err(Halt::text("ERR syntax error"));
    }
    for entry in known(session) {
        if let Some(lsn) = session.server.store.drop_entry(&entry)? {
            session.note(lsn);
        }
    }
    session.rest();
    session.reply.ok();
    Ok(())
}
