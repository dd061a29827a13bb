//! Commands about the connection and its client.

use super::arguments::{integer, is};
use super::service::VERSION;
use crate::resp::error::{CommandError, CommandResult, unknown_subcommand, wrong_arity};
use crate::resp::parser::Args;
use crate::resp::session::Session;

const WRONG_PASS: &str = "WRONGPASS invalid username-password pair or user is disabled.";

fn log_in(session: &mut Session, token: &[u8]) -> CommandResult {
    if session.server.options.authenticator.is_none() {
        return Err(CommandError::new(
            "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
             configuration is correct?",
        ));
    }
    if session.log_in(token) { Ok(()) } else { Err(CommandError::new(WRONG_PASS)) }
}

pub(super) fn auth(session: &mut Session, args: Args<'_>) -> CommandResult {
    if args.len() > 3 {
        return Err(CommandError::new("ERR syntax error"));
    }
    log_in(session, args.at(args.len() - 1))?;
    session.ok()
}

pub(super) fn hello(session: &mut Session, args: Args<'_>) -> CommandResult {
    let mut three = session.reply.is_resp3;
    if args.len() > 1 {
        let version = integer(args.at(1));
        let version =
            version.ok_or_else(|| CommandError::new("ERR Protocol version is not an integer or out of range"))?;
        if !(2..=3).contains(&version) {
            return Err(CommandError::new("NOPROTO unsupported protocol version"));
        }
        three = version == 3;
    }
    let (mut at, mut name) = (2, None);
    while at < args.len() {
        let left = args.len() - at - 1;
        if is(args.at(at), "AUTH") && left >= 2 {
            log_in(session, args.at(at + 2))?;
            at += 3;
        } else if is(args.at(at), "SETNAME") && left >= 1 {
            name = Some(check_client_name(args.at(at + 1))?);
            at += 2;
        } else {
            let word = args.at(at).escape_ascii();
            return Err(CommandError::new(format!("ERR Syntax error in HELLO option '{word}'")));
        }
    }
    if session.grant.is_none() {
        return Err(CommandError::new(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
             <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the \
             same time",
        ));
    }
    if let Some(name) = name {
        session.client.about.lock().name = name;
    }
    session.reply.is_resp3 = three;
    let (id, reply) = (session.client.id, &mut session.reply);
    reply.map(7);
    for (field, text) in [("server", "redis"), ("version", VERSION)] {
        reply.text(field);
        reply.text(text);
    }
    reply.text("proto");
    reply.integer(if three { 3 } else { 2 });
    reply.text("id");
    reply.count(id);
    for (field, text) in [("mode", "standalone"), ("role", "master")] {
        reply.text(field);
        reply.text(text);
    }
    reply.text("modules");
    super::service::write_modules(reply);
    Ok(())
}

pub(super) fn quit(session: &mut Session, _: Args<'_>) -> CommandResult {
    session.closing = true;
    session.ok()
}

pub(super) fn reset(session: &mut Session, _: Args<'_>) -> CommandResult {
    session.reset();
    session.client.about.lock().name.clear();
    session.reply.simple("RESET");
    Ok(())
}

pub(super) fn ping(session: &mut Session, args: Args<'_>) -> CommandResult {
    match args.len() {
        1 => session.reply.simple("PONG"),
        2 => session.reply.bulk(args.at(1)),
        _ => return Err(wrong_arity("ping")),
    }
    Ok(())
}

pub(super) fn echo(session: &mut Session, args: Args<'_>) -> CommandResult {
    session.reply.bulk(args.at(1));
    Ok(())
}

pub(super) fn select(session: &mut Session, args: Args<'_>) -> CommandResult {
    match integer(args.at(1)) {
        Some(0) => session.reply.ok(),
        Some(_) => return Err(CommandError::new("ERR DB index is out of range")),
        None => return Err(CommandError::new("ERR value is not an integer or out of range")),
    }
    Ok(())
}

/// Validates a name, which must fit into one word of a line.
fn check_client_name(name: &[u8]) -> CommandResult<String> {
    let plain = name.len() <= 128 && name.iter().all(|byte| (b'!'..=b'~').contains(byte));
    match std::str::from_utf8(name) {
        Ok(name) if plain => Ok(name.to_string()),
        _ => Err(CommandError::new("ERR Client names cannot contain spaces, newlines or special characters.")),
    }
}

pub(super) fn client(session: &mut Session, args: Args<'_>) -> CommandResult {
    let (word, words) = (args.at(1).to_ascii_lowercase(), args.len());
    match (word.as_slice(), words) {
        (b"setname", 3) => {
            let name = check_client_name(args.at(2))?;
            session.client.about.lock().name = name;
            session.reply.ok();
        }
        (b"getname", 2) => {
            let name = session.client.about.lock().name.clone();
            if name.is_empty() { session.reply.null() } else { session.reply.text(&name) }
        }
        (b"setinfo", 4) => set_info(session, args)?,
        (b"id", 2) => session.reply.count(session.client.id),
        (b"info", 2) => {
            let line = session.client.describe() + "\n";
            session.reply.verbatim(&line);
        }
        (b"list", _) => {
            // Only administrators see the addresses of other clients.
            let all = session.grant.as_ref().is_some_and(|grant| grant.admin);
            let (me, clients) = (session.client.id, session.server.clients.all());
            let seen = clients.iter().filter(|client| all || client.id == me);
            let lines: String = seen.map(|client| client.describe() + "\n").collect();
            session.reply.verbatim(&lines);
        }
        (b"no-evict" | b"no-touch", 3) => session.reply.ok(),
        (b"setname" | b"getname" | b"setinfo" | b"id" | b"info" | b"no-evict" | b"no-touch", _) => {
            return Err(wrong_arity(&format!("client|{}", String::from_utf8_lossy(&word))));
        }
        _ => return Err(unknown_subcommand("CLIENT", args.at(1))),
    }
    Ok(())
}

fn set_info(session: &mut Session, args: Args<'_>) -> CommandResult {
    let text = check_client_name(args.at(3))
        .map_err(|_| CommandError::new("ERR lib-name cannot contain spaces, newlines or special characters."))?;
    let mut about = session.client.about.lock();
    if is(args.at(2), "LIB-NAME") {
        about.library = text;
    } else if is(args.at(2), "LIB-VER") {
        about.version = text;
    } else {
        let word = args.at(2).escape_ascii();
        return Err(CommandError::new(format!("ERR Unrecognized option '{word}'")));
    }
    drop(about);
    session.ok()
}
