//! Dumps: whole files by `BLOOM.DUMP` and `BLOOM.RESTORE`, or chunks as in `RedisBloom`.
//!
//! A client requests a chunk by its position. Position 0 requests the head. Each reply contains the next position,
//! which is the last one plus the length of the chunk. A chunk is loaded under the position that came with it.
//!
//! Chunks of RedisBloom's own filters show the filter as it is at the time of each request. A client that needs all
//! chunks of one state must keep the filter from changing, as with RedisBloom.

use std::ops::Range;
use std::sync::Arc;

use super::arguments::{integer, is};
use crate::fault::{Code, Fault};
use crate::kind::{DumpFormat, Flavour, Kind, Settings, Spec, foreign, settings};
use crate::resp::error::{CommandError, CommandResult, wrong_arity};
use crate::resp::parser::Args;
use crate::resp::session::Session;
use crate::resp::transfer::Transfers;
use crate::store::{Entry, Snapshot};

/// The start of a head. The length of the file (8 bytes, little-endian) and the filter's settings follow it.
const HEAD: &[u8; 8] = b"FULLBLM1";
/// The longest head, in bytes. The settings of a filter have 100 to 1,000.
const HEAD_BYTES: usize = 64 << 10;
/// The position of the head of a file, and of the header of RedisBloom.
const HEADER: i64 = 1;

pub(super) fn dump(session: &mut Session, args: Args<'_>) -> CommandResult {
    let entry = session.get(args.at(1))?;
    let most = session.server.store.options.limits.request_bytes;
    let too_large = |nbytes: u64| {
        let text = format!("ERR the file has {nbytes} bytes, an answer at most {most}: use BF.SCANDUMP");
        Err(CommandError::new(text))
    };
    // The cells alone, so that no copy is made in vain.
    if entry.nbytes() > most as u64 {
        return too_large(entry.nbytes());
    }
    let file = entry.snapshot(session.server.store.budget())?;
    if file.nbytes() > most as u64 {
        return too_large(file.nbytes());
    }
    if !session.exclusive {
        session.reply.file(file);
        return Ok(());
    }
    // In a transaction, its bytes are part of the array of replies.
    reply_with_file(session, &file, 0..file.nbytes())
}

fn reply_with_file(session: &mut Session, file: &Snapshot, range: Range<u64>) -> CommandResult {
    let length = range.end - range.start;
    session.reply.ensure(length as usize + 64)?;
    session.reply.bulk_with(length, |out| file.append(range, out))?;
    Ok(())
}

/// The filter in the bytes of a file, and its spec.
fn filter_in(session: &Session, bytes: &[u8]) -> Result<(Spec, Box<dyn Kind>), Fault> {
    let (spec, filter) = session.server.store.read_filter(bytes)?;
    match filter {
        Err(fault) if spec.keyed && fault.code == Code::Invalid => Err(Fault::invalid(
            "the filter is keyed with the secret of another service; create filters that move between services with keyed no",
        )),
        filter => Ok((spec, filter?)),
    }
}

pub(super) fn restore(session: &mut Session, args: Args<'_>) -> CommandResult {
    let replace = match args.len() {
        3 => false,
        4 if is(args.at(3), "REPLACE") => true,
        4 => return Err(CommandError::new("ERR syntax error")),
        _ => return Err(wrong_arity("bloom.restore")),
    };
    // Until the filter is counted with all others.
    let _held = session.server.store.budget().take(args.at(2).len() as u64)?;
    let (spec, filter) = filter_in(session, args.at(2))?;
    let (_, lsn) = session.server.store.restore(args.at(1), Settings::of(spec), filter, replace)?;
    session.release();
    session.ok_after(lsn)
}

pub(super) fn scan(session: &mut Session, args: Args<'_>, flavour: Flavour) -> CommandResult {
    let bloom = flavour == Flavour::Bloom;
    let number = integer(args.at(2)).filter(|&number| bloom || number >= 0);
    let wrong = CommandError::new(if bloom { "Second argument must be numeric" } else { "Invalid position" });
    let entry = match session.find_as(args.at(1), flavour) {
        _ if !bloom && number.is_none() => return Err(wrong),
        found => found?.ok_or_else(Fault::missing)?,
    };
    let Some(at) = number else { return Err(wrong) };
    // Filters of RedisBloom are sent in its dump format, all others as a file.
    if entry.settings.spec.kind == foreign::kind_of_flavour(flavour) {
        let cells = entry.nbytes().min(PIECE);
        session.reply.ensure(cells as usize + 4096)?;
        return entry.with_whole(|filter| match filter.dump_format() {
            Some(foreign) => {
                scan_foreign(session, foreign, at, flavour, filter.num_added() == 0);
                Ok(())
            }
            None => Err(bad_data()),
        });
    }
    if at == 0 {
        return begin_scan(session, &entry);
    }
    let piece = session.server.transfers.chunk(entry.id, at);
    let over = || CommandError::new("ERR the dump has ended, or had no request for a minute: start again with 0");
    let (next, file, range) = piece.ok_or_else(over)?;
    session.reply.array(2);
    session.reply.integer(next);
    reply_with_file(session, &file, range)
}

/// Replies with the head, and keeps the file for the chunks that follow.
fn begin_scan(session: &mut Session, entry: &Entry) -> CommandResult {
    // Abandoned dumps may hold the memory that this one needs.
    session.server.transfers.sweep();
    let file = entry.snapshot(session.server.store.budget())?;
    let length = file.nbytes();
    let number = session.server.transfers.begin(entry.id, file)?;
    let mut head = HEAD.to_vec();
    head.extend_from_slice(&length.to_le_bytes());
    head.extend_from_slice(settings::line(&entry.name(), entry.created, &entry.settings).as_bytes());
    session.reply.array(2);
    session.reply.integer(number);
    session.reply.bulk(&head);
    Ok(())
}

fn bad_data() -> CommandError {
    CommandError::new("ERR received bad data")
}

/// The settings and the length in a head. The spec is left out, because that of the file replaces it.
fn parse_head(bytes: &[u8]) -> Option<(Settings, u64)> {
    if bytes.len() > HEAD_BYTES {
        return None;
    }
    let (total, line) = bytes.strip_prefix(HEAD)?.split_first_chunk::<8>()?;
    let (_, _, settings) = settings::parse(std::str::from_utf8(line).ok()?).ok()?;
    // Names of notes become part of lines in the log and the manifest.
    let plain = |(name, _): &(String, u64)| name.len() <= 16 && name.bytes().all(|byte| byte.is_ascii_lowercase());
    let modest = settings.notes.len() <= 8 && settings.notes.iter().all(plain);
    modest.then(|| (Settings { spec: Spec::default(), ..settings }, u64::from_le_bytes(*total)))
}

pub(super) fn load(session: &mut Session, args: Args<'_>, flavour: Flavour) -> CommandResult {
    let bloom = flavour == Flavour::Bloom;
    let number = integer(args.at(2)).filter(|&number| bloom || number != 0);
    let number = number.ok_or_else(|| {
        CommandError::new(if bloom { "ERR Second argument must be numeric" } else { "Invalid position" })
    })?;
    let piece = args.at(3);
    match session.find_as(args.at(1), flavour)? {
        Some(_) if number == HEADER && !bloom => Err(CommandError::new("ERR item exists")),
        Some(entry) if entry.settings.spec.kind == foreign::kind_of_flavour(flavour) => {
            load_foreign(session, &entry, number, piece, flavour)
        }
        Some(_) => Err(bad_data()),
        None if Transfers::is_head(number) && piece.starts_with(HEAD) => {
            begin_load(session, args.at(1), piece, flavour)
        }
        None if number != HEADER => receive_chunk(session, args.at(1), number, piece),
        None => begin_foreign(session, args.at(1), piece, flavour),
    }
}

/// Prepares to receive the file that a head announces.
fn begin_load(session: &mut Session, name: &[u8], head: &[u8], flavour: Flavour) -> CommandResult {
    let fits = |settings: &Settings| settings.flavour == flavour || settings.flavour == Flavour::Any;
    let (settings, total) = parse_head(head).filter(|(settings, _)| fits(settings)).ok_or_else(bad_data)?;
    if total > session.server.store.options.limits.filter_bytes {
        return Err(CommandError::new("ERR Insufficient memory to create filter"));
    }
    let (client, budget) = (session.client.id, session.server.store.budget());
    session.server.transfers.begin_incoming(name, settings, total, client, budget)?;
    session.ok()
}

/// Receives a chunk of a file, and creates the filter once the file is complete.
fn receive_chunk(session: &mut Session, name: &[u8], number: i64, piece: &[u8]) -> CommandResult {
    if let Some(whole) = session.server.transfers.receive(name, number, piece, session.client.id)? {
        let (spec, filter) = filter_in(session, &whole.bytes)?;
        // The spec is that of the file, the other settings are those of the head.
        let settings = Settings { spec, ..whole.settings };
        let (_, lsn) = session.server.store.restore(name, settings, filter, false)?;
        session.record(lsn);
        session.release();
    }
    session.ok()
}

/// The largest chunk of RedisBloom, in bytes.
const PIECE: u64 = 16 << 20;

/// Replies with the chunk at a position, and the position under which it is loaded.
fn scan_foreign(session: &mut Session, filter: &dyn DumpFormat, number: i64, flavour: Flavour, empty: bool) {
    let reply = &mut session.reply;
    reply.array(2);
    let bloom = flavour == Flavour::Bloom;
    match filter.chunk(number) {
        _ if empty && !bloom => {
            reply.integer(0);
            reply.null();
        }
        _ if number == 0 => {
            reply.integer(1);
            reply.bulk(&filter.header());
        }
        Some((next, piece)) => {
            reply.integer(next);
            reply.bulk(&piece);
        }
        None => {
            reply.integer(0);
            if bloom { reply.bulk(b"") } else { reply.null() }
        }
    }
}

fn load_error(fault: Fault, flavour: Flavour) -> CommandError {
    match (fault.code, flavour) {
        (Code::Limit, _) => CommandError::new(format!("ERR Insufficient memory to create filter: {}", fault.text)),
        (Code::Format, Flavour::Cuckoo) => CommandError::new(fault.text),
        _ => fault.into(),
    }
}

/// Creates the filter that a header describes; its cells follow in chunks.
fn begin_foreign(session: &mut Session, name: &[u8], header: &[u8], flavour: Flavour) -> CommandResult {
    let most = session.server.store.options.limits.filter_bytes;
    let (settings, filter) = foreign::from_header(flavour, header, most).map_err(|fault| load_error(fault, flavour))?;
    let options = session.server.store.restore(name, settings, filter, false);
    let (_, lsn) = options.map_err(|fault| load_error(fault, flavour))?;
    session.release();
    session.ok_after(lsn)
}

fn load_foreign(
    session: &mut Session,
    entry: &Arc<Entry>,
    number: i64,
    piece: &[u8],
    flavour: Flavour,
) -> CommandResult {
    session.check_not_busy(entry)?;
    let done = session.server.store.load_piece(entry, number, piece);
    session.record(done.map_err(|fault| load_error(fault, flavour))?);
    session.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head_with(options: usize) -> Vec<u8> {
        let spec = (0..options).fold(Spec { kind: "bloom".into(), ..Spec::default() }, |spec, _| spec.with("a", 1));
        let line = settings::line("x", 0, &Settings { strict: true, ..Settings::of(spec) });
        [HEAD.as_slice(), &7u64.to_le_bytes(), line.as_bytes()].concat()
    }

    #[test]
    fn a_head_is_limited_and_what_is_held_of_it_as_well() {
        for options in [0, 1, 10_000] {
            let parsed = parse_head(&head_with(options));
            assert!(parsed.is_some_and(|(settings, total)| {
                settings.strict && total == 7 && settings.spec.options.is_empty() && settings.spec.kind.is_empty()
            }));
        }
        assert!(head_with(20_000).len() > HEAD_BYTES && parse_head(&head_with(20_000)).is_none());
    }
}
