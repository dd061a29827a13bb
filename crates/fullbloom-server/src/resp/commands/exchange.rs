//! Filters in pieces, as `RedisBloom` has them: a filter can go there, and come from there.
//!
//! Pieces are of the filter as it is when each is asked for. Who wants all of them of one state has nobody change it
//! meanwhile, here as there.

use std::sync::Arc;

use super::super::halt::{Done, Halt};
use super::super::session::Session;
use crate::fault::{Code, Fault};
use crate::kind::{Exchange, Flavour, foreign};
use crate::store::Entry;

/// Bytes of the largest piece, as the other program gives them.
pub(super) const PIECE: u64 = 16 << 20;

/// Answers with the piece of a number, and the number that it is loaded under.
pub(super) fn scan(session: &mut Session, filter: &dyn Exchange, number: i64, flavour: Flavour, empty: bool) {
    let reply = &mut session.reply;
    reply.array(2);
    let bloom = flavour == Flavour::Bloom;
    match filter.piece(number) {
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

/// What is said of bytes that are refused.
fn refused(fault: Fault, flavour: Flavour) -> Halt {
    match (fault.code, flavour) {
        (Code::Limit, _) => Halt::text(format!("ERR Insufficient memory to create filter: {}", fault.text)),
        (Code::Format, Flavour::Cuckoo) => Halt::text(fault.text),
        _ => fault.into(),
    }
}

/// Makes the filter that a header tells of; its cells are to come.
pub(super) fn begin(session: &mut Session, name: &[u8], header: &[u8], flavour: Flavour) -> Done {
    let most = session.server.store.options.limits.filter_bytes;
    let (settings, filter) = foreign::of_header(flavour, header, most).map_err(|fault| refused(fault, flavour))?;
    let made = session.server.store.restore(name, settings, filter, false);
    let (_, lsn) = made.map_err(|fault| refused(fault, flavour))?;
    session.note(lsn);
    session.rest();
    session.reply.ok();
    Ok(())
}

/// Takes in a piece.
pub(super) fn load(session: &mut Session, entry: &Arc<Entry>, number: i64, piece: &[u8], flavour: Flavour) -> Done {
    session.ready(entry)?;
    let done = session.server.store.load_piece(entry, number, piece);
    session.note(done.map_err(|fault| refused(fault, flavour))?);
    session.reply.ok();
    Ok(())
}
