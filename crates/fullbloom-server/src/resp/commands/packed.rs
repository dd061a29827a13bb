//! Batches without a word a key: keys in one string, each behind its length (4 bytes, little-endian), or hashes of 8
//! bytes, little-endian; answers as bits, the first in the lowest bit of the first byte.

use std::sync::Arc;

use fullbloom_core::key::KeyDomains;

use super::super::command::{Command, ONE, command, flag};
use super::super::gate::Scope;
use super::super::halt::{Done, Halt, too_long};
use super::super::parse::Args;
use super::super::session::Session;
use crate::limits::Limits;
use crate::store::{Entry, Target};

const WRITE: u16 = flag::WRITE | flag::FAST;
const READ: u16 = flag::FAST;

pub(super) const COMMANDS: &[Command<Session>] = &[
    command(
        "bloom.padd",
        3,
        WRITE,
        ONE,
        Scope::Write,
        |s, a| add(s, a, hash_keys, false),
        "Adds packed keys: bits of which were new",
    ),
    command(
        "bloom.pcheck",
        3,
        READ,
        ONE,
        Scope::Read,
        |s, a| check(s, a, hash_keys),
        "Looks for packed keys: bits of which were found",
    ),
    command(
        "bloom.premove",
        3,
        WRITE,
        ONE,
        Scope::Write,
        |s, a| remove(s, a, hash_keys),
        "Removes packed keys: bits of which were there",
    ),
    command(
        "bloom.hadd",
        3,
        WRITE,
        ONE,
        Scope::Write,
        |s, a| add(s, a, take_hashes, true),
        "Adds hashes: bits of which were new",
    ),
    command(
        "bloom.hcheck",
        3,
        READ,
        ONE,
        Scope::Read,
        |s, a| check(s, a, take_hashes),
        "Looks for hashes: bits of which were found",
    ),
    command(
        "bloom.hremove",
        3,
        WRITE,
        ONE,
        Scope::Write,
        |s, a| remove(s, a, take_hashes),
        "Removes hashes: bits of which were there",
    ),
];

/// Makes the session's hashes of a string.
type Unpack = fn(&mut Vec<u64>, &[u8], &Entry, &Limits) -> Done;

fn too_many(most: usize) -> Halt {
    Halt::text(format!("ERR a request has at most {most} keys"))
}

fn hash_keys(hashes: &mut Vec<u64>, mut packed: &[u8], entry: &Entry, limits: &Limits) -> Done {
    let wrong = || Halt::text("ERR packed keys are each 4 bytes of length, little-endian, and so many bytes");
    while !packed.is_empty() {
        let (length, rest) = packed.split_first_chunk::<4>().ok_or_else(wrong)?;
        let length = u32::from_le_bytes(*length) as usize;
        if length > limits.key_bytes {
            return Err(too_long(limits.key_bytes));
        }
        let (key, rest) = rest.split_at_checked(length).ok_or_else(wrong)?;
        if hashes.len() == limits.batch_keys * entry.text.width() {
            return Err(too_many(limits.batch_keys));
        }
        entry.text.push(key, hashes);
        packed = rest;
    }
    Ok(())
}

fn take_hashes(hashes: &mut Vec<u64>, packed: &[u8], entry: &Entry, limits: &Limits) -> Done {
    entry.check_hashes()?;
    let (words, rest) = packed.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(Halt::text("ERR packed hashes are 8 bytes each, little-endian"));
    }
    if words.len() > limits.batch_keys {
        return Err(too_many(limits.batch_keys));
    }
    hashes.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
    Ok(())
}

fn unpack(session: &mut Session, args: Args<'_>, unpack: Unpack) -> Done<Arc<Entry>> {
    let entry = session.get(args.at(1))?;
    session.hashes.clear();
    unpack(&mut session.hashes, args.at(2), &entry, &session.server.store.options.limits)?;
    session.clear_flags(&entry);
    Ok(entry)
}

/// Answers with the flags, 8 a byte.
fn answer(session: &mut Session) {
    let (eights, rest) = session.flags.as_chunks::<8>();
    // Flags are 0 or 1: the product gathers the lowest bits of 8 bytes in its highest byte.
    let bits = |eight: &[u8; 8]| (u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let packed: Vec<u8> = eights.iter().map(bits).chain((!rest.is_empty()).then(|| bits(&last))).collect();
    session.reply.bulk(&packed);
}

fn add(session: &mut Session, args: Args<'_>, how: Unpack, hashed: bool) -> Done {
    let entry = unpack(session, args, how)?;
    session.ready(&entry)?;
    let target = Target::from(&entry);
    let target = if hashed { target.of(KeyDomains::HASHED) } else { target };
    let lsn = session.server.store.add(target, &session.hashes, &mut session.flags)?;
    session.note(lsn);
    answer(session);
    Ok(())
}

fn check(session: &mut Session, args: Args<'_>, how: Unpack) -> Done {
    let entry = unpack(session, args, how)?;
    session.server.store.contains(&entry, &session.hashes, &mut session.flags);
    answer(session);
    Ok(())
}

fn remove(session: &mut Session, args: Args<'_>, how: Unpack) -> Done {
    let entry = unpack(session, args, how)?;
    session.ready(&entry)?;
    let lsn = session.server.store.remove(&entry, &session.hashes, &mut session.flags)?;
    session.note(lsn);
    answer(session);
    Ok(())
}
