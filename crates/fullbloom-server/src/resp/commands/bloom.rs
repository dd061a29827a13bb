//! `BLOOM.*`: filters of any kind.

use std::sync::Arc;

use fullbloom_core::registry::VARIANTS;
use fullbloom_core::structure::Value;

use super::arguments::{is, parse_integer, real, text};
use crate::kind::{Settings, bank, value_if_present};
use crate::resp::error::{CommandError, CommandResult, too_long, wrong_arity};
use crate::resp::parser::Args;
use crate::resp::reply::Reply;
use crate::resp::session::Session;
use crate::store::{self, Entry};

/// The most options of one filter, and the longest name of one, in bytes.
const MOST_OPTIONS: usize = 32;
const LONGEST_NAME: usize = 64;

pub(super) fn create(session: &mut Session, args: Args<'_>) -> CommandResult {
    if !is(args.at(2), "KIND") || !args.len().is_multiple_of(2) {
        let syntax = session.table.find(args.at(0)).map_or("", |command| command.syntax);
        return Err(CommandError::new(format!("ERR syntax error: {syntax}")));
    }
    let mut settings = Settings::of(session.spec(text(args.at(3))?)?);
    let mut expires = None;
    if args.len() > 4 + 2 * MOST_OPTIONS {
        return Err(CommandError::new(format!("ERR BLOOM.CREATE takes at most {MOST_OPTIONS} options")));
    }
    let mut given: Vec<String> = Vec::new();
    for at in (4..args.len()).step_by(2) {
        let (name, value) = (text(args.at(at))?, args.at(at + 1));
        if name.len() > LONGEST_NAME {
            return Err(CommandError::new(format!("ERR the name of an option has at most {LONGEST_NAME} bytes")));
        }
        let name = name.to_ascii_lowercase();
        if given.contains(&name) {
            return Err(CommandError::new(format!("ERR {name} is given twice: leave one out")));
        }
        given.push(name.clone());
        match name.as_str() {
            "strict" => settings.strict = parse_flag(&name, value)?,
            "keyed" => settings.spec.keyed = parse_flag(&name, value)?,
            "seed" => {
                let seed = text(value)?.parse().ok();
                settings.spec.seed =
                    seed.ok_or_else(|| CommandError::new("ERR seed must be a whole number of 64 bits"))?;
            }
            "expire" => {
                let seconds = parse_integer(value)?;
                let due = seconds.checked_mul(1000).and_then(|span| span.checked_add(store::now() as i64));
                let due = due.filter(|_| seconds > 0);
                expires =
                    Some(due.ok_or_else(|| CommandError::new("ERR invalid expire time in 'bloom.create' command"))?);
            }
            "backend" if !is(value, "memory") => {
                return Err(CommandError::new(
                    "ERR this port creates filters in memory; use the HTTP port for another backend",
                ));
            }
            "backend" => {}
            _ => settings.spec.add(name, text(value)?),
        }
    }
    session.create(args.at(1), settings, expires.map(|due| due as u64))?;
    session.ok()
}

fn parse_flag(name: &str, value: &[u8]) -> CommandResult<bool> {
    match value.to_ascii_lowercase().as_slice() {
        b"yes" | b"true" | b"1" => Ok(true),
        b"no" | b"false" | b"0" => Ok(false),
        _ => Err(CommandError::new(format!("ERR {name} must be yes or no"))),
    }
}

fn write_value(reply: &mut Reply, value: &Value) {
    match value {
        Value::Number(number) => reply.count(*number),
        Value::Real(number) => reply.double(*number),
        Value::Text(text) => reply.text(text),
        Value::Flag(yes) => reply.boolean(*yes),
        Value::Nothing => reply.null(),
    }
}

pub(super) fn info(session: &mut Session, args: Args<'_>) -> CommandResult {
    let entry = session.get(args.at(1))?;
    // In a statement of its own: the count must not begin while this thread reads the filter.
    let row = entry.read().variant();
    let stats = entry.count_stats();
    let fields = &stats.details;
    let expires = entry.expires().map_or(Value::Nothing, Value::Number);
    let about = [
        ("name", Value::Text(entry.name())),
        ("kind", Value::Text(row.name.into())),
        ("class", Value::Text(row.class.into())),
        ("strict", Value::Flag(entry.settings.strict)),
        ("created", Value::Number(entry.created)),
        ("expires", expires),
    ];
    session.reply.map(about.len() + fields.len());
    for (name, value) in about.iter().chain(fields) {
        session.reply.text(name);
        write_value(&mut session.reply, value);
    }
    Ok(())
}

pub(super) fn stats(session: &mut Session, args: Args<'_>) -> CommandResult {
    let grant = session.grant.clone().unwrap_or_default();
    let mut entries: Vec<Arc<Entry>> = if args.len() == 1 {
        session.server.store.filters()
    } else if !args.from(1).iter().all(|name| grant.covers(name)) {
        return Err(CommandError::new("NOPERM No permissions to access a key"));
    } else {
        args.from(1).iter().map(|name| session.get(name)).collect::<CommandResult<_>>()?
    };
    entries.sort_unstable_by_key(|entry| entry.id);
    // Each name is read once: a filter may be renamed to a name that the client may not see.
    let mut named: Vec<_> = entries.into_iter().map(|entry| (entry.name(), entry)).collect();
    named.retain(|(name, _)| grant.covers(name.as_bytes()));
    session.reply.map(named.len());
    for (name, entry) in named {
        let reply = &mut session.reply;
        reply.text(&name);
        let counts = entry.counters.values();
        reply.map(counts.len() + 2);
        let filter = entry.read();
        let sizes = [("num_added", filter.num_added()), ("nbytes", filter.nbytes())];
        for (name, number) in counts.into_iter().chain(sizes) {
            reply.text(name);
            reply.count(number);
        }
    }
    Ok(())
}

pub(super) fn kinds(session: &mut Session, _: Args<'_>) -> CommandResult {
    let reply = &mut session.reply;
    let rows = VARIANTS.iter().chain([&bank::ROW]);
    reply.array(rows.clone().count());
    for row in rows {
        reply.map(4);
        for (name, value) in [("name", row.name), ("class", row.class), ("adds", row.adds)] {
            reply.text(name);
            reply.text(value);
        }
        reply.text("capabilities");
        reply.array(row.capabilities.len());
        row.capabilities.iter().for_each(|what| reply.text(what));
    }
    Ok(())
}

fn hash_keys(session: &mut Session, args: Args<'_>) -> CommandResult<Arc<Entry>> {
    let entry = session.get(args.at(1))?;
    session.hash(&entry, args.from(2))?;
    Ok(entry)
}

pub(super) fn add(session: &mut Session, args: Args<'_>) -> CommandResult {
    let entry = hash_keys(session, args)?;
    session.check_not_busy(&entry)?;
    let lsn = session.server.store.add(&entry, &session.hashes, &mut session.flags)?;
    session.record(lsn);
    session.reply.booleans(&session.flags);
    Ok(())
}

pub(super) fn check(session: &mut Session, args: Args<'_>) -> CommandResult {
    let entry = hash_keys(session, args)?;
    session.look_up_hashed(&entry);
    session.reply.booleans(&session.flags);
    Ok(())
}

pub(super) fn remove(session: &mut Session, args: Args<'_>) -> CommandResult {
    let entry = hash_keys(session, args)?;
    session.check_not_busy(&entry)?;
    let lsn = session.server.store.remove(&entry, &session.hashes, &mut session.flags)?;
    session.record(lsn);
    session.reply.booleans(&session.flags);
    Ok(())
}

pub(super) fn count(session: &mut Session, args: Args<'_>) -> CommandResult {
    let entry = hash_keys(session, args)?;
    let mut counts = vec![0; session.flags.len()];
    entry.read().count(&session.hashes, &mut counts)?;
    session.reply.array(counts.len());
    counts.iter().for_each(|&count| session.reply.count(count));
    Ok(())
}

pub(super) fn set_pairs(session: &mut Session, args: Args<'_>) -> CommandResult {
    if !args.len().is_multiple_of(2) {
        return Err(wrong_arity("bloom.setpair"));
    }
    let entry = session.get(args.at(1))?;
    session.check_not_busy(&entry)?;
    let most = session.server.store.options.limits.key_bytes;
    session.hashes.clear();
    let mut values = Vec::with_capacity(args.len() / 2);
    for at in (2..args.len()).step_by(2) {
        if args.at(at).len() > most {
            return Err(too_long(most));
        }
        entry.keying.push(args.at(at), &mut session.hashes);
        let value = text(args.at(at + 1))?.parse().ok();
        values.push(value.ok_or_else(|| CommandError::new("ERR a value is a whole number of at least 0"))?);
    }
    let lsn = session.server.store.add_pairs(&entry, &session.hashes, &values)?;
    session.ok_after(lsn)
}

pub(super) fn values(session: &mut Session, args: Args<'_>) -> CommandResult {
    let entry = hash_keys(session, args)?;
    let mut values = vec![0; session.flags.len()];
    let filter = entry.read();
    filter.values(&session.hashes, &mut values)?;
    session.reply.array(values.len());
    for (&hash, &value) in session.hashes.iter().zip(&values) {
        session.reply.count_or_null(value_if_present(filter.as_ref(), hash, value));
    }
    Ok(())
}

pub(super) fn positions(session: &mut Session, args: Args<'_>) -> CommandResult {
    let entry = hash_keys(session, args)?;
    let positions = entry.read().positions(session.hashes[0])?;
    session.reply.array(positions.len());
    positions.iter().for_each(|&position| session.reply.count(position));
    Ok(())
}

pub(super) fn clear(session: &mut Session, args: Args<'_>) -> CommandResult {
    let entry = session.get(args.at(1))?;
    session.check_not_busy(&entry)?;
    let lsn = session.server.store.clear(&entry)?;
    session.ok_after(lsn)
}

pub(super) fn advance(session: &mut Session, args: Args<'_>) -> CommandResult {
    if args.len() > 3 {
        return Err(wrong_arity("bloom.advance"));
    }
    let now = if args.len() == 3 { real(args.at(2)) } else { Some(store::now() as f64 / 1000.0) };
    let now = now.filter(|now| now.is_finite() && *now >= 0.0);
    let now = now.ok_or_else(|| CommandError::new("ERR a time is a number of seconds, at least 0"))?;
    let entry = session.get(args.at(1))?;
    session.check_not_busy(&entry)?;
    let lsn = session.server.store.advance(&entry, now)?;
    session.ok_after(lsn)
}

pub(super) fn merge(session: &mut Session, args: Args<'_>) -> CommandResult {
    let into = session.get(args.at(1))?;
    let others: Vec<Arc<Entry>> = args.from(2).iter().map(|name| session.get(name)).collect::<CommandResult<_>>()?;
    session.check_not_busy(&into)?;
    for other in others {
        let lsn = session.server.store.merge(&into, &other)?;
        session.record(lsn);
    }
    session.ok()
}
