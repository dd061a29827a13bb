//! `EXISTS` and `MEXISTS` of both families: a filter that is not there, or of the other one, has no keys.

use super::super::halt::Done;
use super::super::parse::Args;
use super::super::session::Session;
use crate::kind::Flavour;

/// Looks for the keys after the name; the session's flags tell.
fn look(session: &mut Session, args: Args<'_>, other: Flavour) -> Done {
    match session.find(args.at(1))?.filter(|entry| entry.settings.flavour != other && !entry.is_note()) {
        None => {
            session.flags.clear();
            session.flags.resize(args.len() - 2, 0);
        }
        Some(entry) => {
            session.hash(&entry, args.from(2))?;
            session.server.store.contains(&entry, &session.hashes, &mut session.flags);
        }
    }
    Ok(())
}

/// Answers for one key.
pub(super) fn one(session: &mut Session, args: Args<'_>, other: Flavour) -> Done {
    look(session, args, other)?;
    session.reply.boolean(session.flags[0] != 0);
    Ok(())
}

/// Answers for each key.
pub(super) fn each(session: &mut Session, args: Args<'_>, other: Flavour) -> Done {
    look(session, args, other)?;
    session.reply.booleans(&session.flags);
    Ok(())
}
