//! `COMMAND`: the table, for clients that ask.

use super::super::gate::Scope;
use super::super::parse::Args;
use super::super::reply::Reply;
use super::super::session::{Done, Halt, Session};
use super::arguments::is;
use super::connection::unknown_subcommand;
use super::{Command, NONE, all, command, find, flag, wrong_arity};

pub(super) const COMMANDS: &[Command] =
    &[command("command", -1, flag::FAST, NONE, Scope::Nothing, describe, "What commands there are")];

fn describe(session: &mut Session, args: Args<'_>) -> Done {
    let reply = &mut session.reply;
    let word = args.at(1);
    if args.len() == 1 {
        let every: Vec<_> = all().map(Some).collect();
        rows(reply, &every);
    } else if is(word, "COUNT") {
        reply.integer(all().count() as i64);
    } else if is(word, "INFO") {
        let named: Vec<_> =
            if args.len() == 2 { all().map(Some).collect() } else { args.from(2).iter().map(find).collect() };
        rows(reply, &named);
    } else if is(word, "DOCS") {
        let named: Vec<_> =
            if args.len() == 2 { all().collect() } else { args.from(2).iter().filter_map(find).collect() };
        docs(reply, &named);
    } else if is(word, "LIST") {
        reply.array(all().count());
        all().for_each(|command| reply.text(command.name));
    } else if is(word, "GETKEYS") {
        return keys(session, args.from(2));
    } else {
        return Err(unknown_subcommand("COMMAND", word));
    }
    Ok(())
}

fn keys(session: &mut Session, args: Args<'_>) -> Done {
    if args.is_empty() {
        return Err(wrong_arity("command|getkeys"));
    }
    let command = find(args.at(0)).ok_or_else(|| Halt::text("ERR Invalid command specified"))?;
    command.check_arity(args.len()).map_err(|_| Halt::text("ERR Invalid number of arguments specified for command"))?;
    let keys: Vec<_> = command.keys(args).collect();
    if keys.is_empty() {
        return Err(Halt::text("ERR The command has no key arguments"));
    }
    session.reply.array(keys.len());
    keys.iter().for_each(|key| session.reply.bulk(key));
    Ok(())
}

fn flags(command: &Command) -> Vec<&'static str> {
    let mut flags = vec![if command.is(flag::WRITE) { "write" } else { "readonly" }];
    let named = [(flag::FAST, "fast"), (flag::ADMIN, "admin"), (flag::NO_AUTH, "no_auth"), (flag::WRITE, "denyoom")];
    flags.extend(named.iter().filter(|(flag, _)| command.is(*flag)).map(|(_, name)| *name));
    flags
}

/// The group of a command: what stands before its dot.
fn group(command: &Command) -> &'static str {
    match command.name.split_once('.') {
        Some(("bf", _)) => "bf",
        Some(("cf", _)) => "cf",
        Some(_) => "module",
        None if command.keys == NONE => "server",
        None => "generic",
    }
}

fn rows(reply: &mut Reply, commands: &[Option<&'static Command>]) {
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
        let (first, last, step) = command.keys;
        [first, last, step].iter().for_each(|&number| reply.integer(number.into()));
        reply.set(2);
        reply.simple(if command.is(flag::WRITE) { "@write" } else { "@read" });
        reply.simple(if command.is(flag::FAST) { "@fast" } else { "@slow" });
        (0..3).for_each(|_| reply.array(0));
    }
}

fn docs(reply: &mut Reply, commands: &[&'static Command]) {
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
