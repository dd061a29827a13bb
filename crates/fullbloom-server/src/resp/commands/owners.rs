//! Owners of a bank. They are texts, as all keys of this port are; a bank stores their hashes, which `BLOOM.OWNERS` lists.

use std::sync::Arc;

use super::arguments::text;
use crate::fault::Result;
use crate::resp::error::{CommandError, CommandResult, too_long, wrong_arity};
use crate::resp::parser::Args;
use crate::resp::session::Session;
use crate::store::{Entry, Lsn, Store};

/// The owners of a page, if the client does not say how many, and the most.
const PAGE: usize = 1000;
const MOST: usize = 100_000;
/// The bytes of an owner in a reply: a hash of 20 digits, a number of 10, and their frames.
const OWNER_BYTES: usize = 48;

/// The bank of this name, and the hashes of owners in the session.
fn hash_owners(session: &mut Session, name: &[u8], owners: Args<'_>) -> CommandResult<Arc<Entry>> {
    let entry = session.get(name)?;
    session.check_not_changing(&entry)?;
    entry.check_owners()?;
    let limits = &session.server.store.options.limits;
    if owners.len() > limits.batch_keys {
        let text = format!("ERR a request has at most {} owners, not {}", limits.batch_keys, owners.len());
        return Err(CommandError::new(text));
    }
    session.hashes.clear();
    for owner in owners.iter() {
        if owner.len() > limits.key_bytes {
            return Err(too_long(limits.key_bytes));
        }
        entry.keying.push(owner, &mut session.hashes);
    }
    session.flags.clear();
    session.flags.resize(session.hashes.len(), 0);
    Ok(entry)
}

/// A change of owners; see [`Store::clear_owners`].
type Change = fn(&Store, &Entry, &[u64], &mut [u8]) -> Result<Lsn>;

fn change(session: &mut Session, args: Args<'_>, change: Change) -> CommandResult {
    let entry = hash_owners(session, args.at(1), args.from(2))?;
    session.check_not_busy(&entry)?;
    let lsn = change(&session.server.store, &entry, &session.hashes, &mut session.flags)?;
    session.record(lsn);
    session.reply.booleans(&session.flags);
    Ok(())
}

pub(super) fn clear(session: &mut Session, args: Args<'_>) -> CommandResult {
    change(session, args, |store, entry, owners, flags| store.clear_owners(entry, owners, flags))
}

pub(super) fn remove(session: &mut Session, args: Args<'_>) -> CommandResult {
    change(session, args, |store, entry, owners, flags| store.remove_owners(entry, owners, flags))
}

pub(super) fn list(session: &mut Session, args: Args<'_>) -> CommandResult {
    if args.len() > 4 {
        return Err(wrong_arity("bloom.owners"));
    }
    let number = |at: usize, default: u64| match args.len() > at {
        true => text(args.at(at))?.parse().map_err(|_| CommandError::new("ERR start and count are whole numbers")),
        false => Ok(default),
    };
    let (start, most) = (number(2, 0)?, number(3, PAGE as u64)?);
    let most = usize::try_from(most).ok().filter(|most| (1..=MOST).contains(most));
    let most = most.ok_or_else(|| CommandError::new(format!("ERR count is a number from 1 to {MOST}")))?;
    let page = session.get(args.at(1))?.owners(start, most)?;
    let reply = &mut session.reply;
    reply.ensure(OWNER_BYTES * page.owners.len())?;
    reply.array(2);
    // Hashes are texts: not every client reads integers of 64 bits without a sign.
    match page.next {
        Some(next) => reply.text(&next.to_string()),
        None => reply.null(),
    }
    reply.array(2 * page.owners.len());
    for (owner, keys) in page.owners {
        reply.text(&owner.to_string());
        reply.count(keys);
    }
    Ok(())
}

pub(super) fn info(session: &mut Session, args: Args<'_>) -> CommandResult {
    let entry = hash_owners(session, args.at(1), args.from(2))?;
    let found = session.server.store.owner_info(&entry, session.hashes[0])?;
    let reply = &mut session.reply;
    let Some(info) = found else {
        reply.null();
        return Ok(());
    };
    reply.map(6);
    for (name, number) in [("num_added", info.num_added), ("stages", info.stages), ("nbytes", info.nbytes)] {
        reply.text(name);
        reply.count(number);
    }
    let (keys, deviation) = info.estimated.unzip();
    for (name, number) in [("fpr", Some(info.fpr)), ("estimated", keys), ("estimated_deviation", deviation)] {
        reply.text(name);
        match number {
            Some(number) => reply.double(number),
            None => reply.null(),
        }
    }
    Ok(())
}

pub(super) fn export(session: &mut Session, args: Args<'_>) -> CommandResult {
    let entry = hash_owners(session, args.at(1), args.from(2))?;
    let Some((bytes, _held)) = session.server.store.export_owner(&entry, session.hashes[0])? else {
        session.reply.null();
        return Ok(());
    };
    session.reply.ensure(bytes.len() + 64)?;
    session.reply.bulk(&bytes);
    Ok(())
}
