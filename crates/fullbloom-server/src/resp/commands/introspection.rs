//! `COMMAND`: describes the command table.

use super::arguments::is;
use crate::resp::command::{Command, Keys, flag};
use crate::resp::error::{CommandError, CommandResult, unknown_subcommand, wrong_arity};
use crate::resp::parser::Args;
use crate::resp::reply::Reply;
use crate::resp::session::Session;

pub(super) fn describe(session: &mut Session, args: Args<'_>) -> CommandResult {
    let (table, reply, word) = (session.table, &mut session.reply, args.at(1));
    let all = table.rows();
    let every = || -> Vec<_> { all.iter().map(Some).collect() };
    if args.len() == 1 {
        rows(reply, &every());
    } else if is(word, "COUNT") {
        reply.integer(all.len() as i64);
    } else if is(word, "INFO") {
        let named = || args.from(2).iter().map(|name| table.find(name)).collect();
        rows(reply, &if args.len() == 2 { every() } else { named() });
    } else if is(word, "DOCS") {
        let named: Vec<_> = args.from(2).iter().filter_map(|name| table.find(name)).collect();
        docs(reply, &if args.len() == 2 { all.iter().collect() } else { named });
    } else if is(word, "LIST") {
        reply.array(all.len());
        all.iter().for_each(|command| reply.text(command.name));
    } else if is(word, "GETKEYS") {
        return keys(session, args.from(2));
    } else {
        return Err(unknown_subcommand("COMMAND", word));
    }
    Ok(())
}

fn keys(session: &mut Session, args: Args<'_>) -> CommandResult {
    if args.is_empty() {
        return Err(wrong_arity("command|getkeys"));
    }
    let command = session.table.find(args.at(0)).ok_or_else(|| CommandError::new("ERR Invalid command specified"))?;
    command
        .check_arity(args.len())
        .map_err(|_| CommandError::new("ERR Invalid number of arguments specified for command"))?;
    let keys: Vec<_> = command.keys(args).collect();
    if keys.is_empty() {
        return Err(CommandError::new("ERR The command has no key arguments"));
    }
    session.reply.array(keys.len());
    keys.iter().for_each(|key| session.reply.bulk(key));
    Ok(())
}

fn flags(command: &Command<Session>) -> Vec<&'static str> {
    let mut flags = vec![if command.is(flag::WRITE) { "write" } else { "readonly" }];
    let named = [(flag::FAST, "fast"), (flag::ADMIN, "admin"), (flag::NO_AUTH, "no_auth"), (flag::WRITE, "denyoom")];
    flags.extend(named.iter().filter(|(flag, _)| command.is(*flag)).map(|(_, name)| *name));
    flags
}

/// The group of a command: the part of its name before the dot.
fn group(command: &Command<Session>) -> &'static str {
    match command.name.split_once('.') {
        Some(("bf", _)) => "bf",
        Some(("cf", _)) => "cf",
        Some(_) => "module",
        None if command.keys.first == 0 => "server",
        None => "generic",
    }
}

fn rows(reply: &mut Reply, commands: &[Option<&'static Command<Session>>]) {
    reply.array(commands.len());
    for command in commands {
        let Some(command) = command else {
            reply.null();
            continue;
        };
        reply.array(10);
        reply.text(command.name);
        reply.integer(command.arity.into());
        let flags = flags(command);
        reply.set(flags.len());
        flags.iter().for_each(|flag| reply.simple(flag));
        let Keys { first, last } = command.keys;
        [first, last, i32::from(first != 0)].iter().for_each(|&number| reply.integer(number.into()));
        reply.set(2);
        reply.simple(if command.is(flag::WRITE) { "@write" } else { "@read" });
        reply.simple(if command.is(flag::FAST) { "@fast" } else { "@slow" });
        (0..3).for_each(|_| reply.array(0));
    }
}

fn docs(reply: &mut Reply, commands: &[&'static Command<Session>]) {
    reply.map(commands.len());
    for command in commands {
        reply.text(command.name);
        reply.map(3);
        for (field, text) in [("summary", command.summary), ("since", "1.0.0"), ("group", group(command))] {
            reply.text(field);
            reply.text(text);
        }
    }
}
