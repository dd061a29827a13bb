//! Batches that need no word per key. Keys arrive in one string, each preceded by its length (4 bytes, little-endian),
//! or as hashes of 8 bytes, little-endian. For a bank, an owner precedes each key. Results are bits, the first in the lowest bit of the first byte.

use std::sync::Arc;

use fullbloom_core::key::KeyDomains;

use crate::limits::Limits;
use crate::resp::error::{CommandError, CommandResult, too_long};
use crate::resp::parser::Args;
use crate::resp::session::Session;
use crate::store::{Entry, Target};

/// Turns a string into the session's hashes.
type Unpack = fn(&mut Vec<u64>, &[u8], &Entry, &Limits) -> CommandResult;

fn too_many(most: usize) -> CommandError {
    CommandError::new(format!("ERR a request has at most {most} keys"))
}

pub(super) fn hash_keys(hashes: &mut Vec<u64>, mut packed: &[u8], entry: &Entry, limits: &Limits) -> CommandResult {
    let wrong = || CommandError::new("ERR packed keys are each 4 bytes of length, little-endian, and so many bytes");
    while !packed.is_empty() {
        let (length, rest) = packed.split_first_chunk::<4>().ok_or_else(wrong)?;
        let length = u32::from_le_bytes(*length) as usize;
        if length > limits.key_bytes {
            return Err(too_long(limits.key_bytes));
        }
        let (key, rest) = rest.split_at_checked(length).ok_or_else(wrong)?;
        if hashes.len() == limits.batch_keys * entry.keying.width() {
            return Err(too_many(limits.batch_keys));
        }
        entry.keying.push(key, hashes);
        packed = rest;
    }
    Ok(())
}

pub(super) fn take_hashes(hashes: &mut Vec<u64>, packed: &[u8], entry: &Entry, limits: &Limits) -> CommandResult {
    entry.check_hashes()?;
    let (words, rest) = packed.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(CommandError::new("ERR packed hashes are 8 bytes each, little-endian"));
    }
    if words.len() > limits.batch_keys * entry.keying.width() {
        return Err(too_many(limits.batch_keys));
    }
    hashes.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
    Ok(())
}

fn unpack(session: &mut Session, args: Args<'_>, unpack: Unpack) -> CommandResult<Arc<Entry>> {
    let entry = session.get(args.at(1))?;
    session.hashes.clear();
    unpack(&mut session.hashes, args.at(2), &entry, &session.server.store.options.limits)?;
    entry.keying.check_whole(session.hashes.len())?;
    session.clear_flags(&entry);
    Ok(entry)
}

/// Replies with the flags, 8 per byte.
fn reply_bits(session: &mut Session) {
    let (eights, rest) = session.flags.as_chunks::<8>();
    // Flags are 0 or 1: the product collects the lowest bits of 8 bytes in its highest byte.
    let bits = |eight: &[u8; 8]| (u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let packed: Vec<u8> = eights.iter().map(bits).chain((!rest.is_empty()).then(|| bits(&last))).collect();
    session.reply.bulk(&packed);
}

pub(super) fn add(session: &mut Session, args: Args<'_>, how: Unpack, hashed: bool) -> CommandResult {
    let entry = unpack(session, args, how)?;
    session.check_not_busy(&entry)?;
    let target = Target::from(&entry);
    let target = if hashed { target.with_domains(KeyDomains::HASHED) } else { target };
    let lsn = session.server.store.add(target, &session.hashes, &mut session.flags)?;
    session.record(lsn);
    reply_bits(session);
    Ok(())
}

pub(super) fn check(session: &mut Session, args: Args<'_>, how: Unpack, hashed: bool) -> CommandResult {
    let entry = unpack(session, args, how)?;
    if hashed {
        session.server.store.contains(&entry, &session.hashes, &mut session.flags);
    } else {
        session.look_up_hashed(&entry);
    }
    reply_bits(session);
    Ok(())
}

pub(super) fn remove(session: &mut Session, args: Args<'_>, how: Unpack) -> CommandResult {
    let entry = unpack(session, args, how)?;
    session.check_not_busy(&entry)?;
    let lsn = session.server.store.remove(&entry, &session.hashes, &mut session.flags)?;
    session.record(lsn);
    reply_bits(session);
    Ok(())
}
