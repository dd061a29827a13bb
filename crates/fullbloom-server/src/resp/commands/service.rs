//! Commands about the whole service.

use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use super::arguments::is;
use super::keyspace::pattern;
use crate::auth::pattern::Pattern;
use crate::resp::error::{CommandError, CommandResult, unknown_subcommand, wrong_arity};
use crate::resp::parser::Args;
use crate::resp::reply::Reply;
use crate::resp::session::Session;

/// The release of Redis that this server reports.
pub(super) const VERSION: &str = "7.4.0";
/// The release of RedisBloom that this server reports.
const MODULE: i64 = 20_800;

pub(super) fn write_modules(reply: &mut Reply) {
    reply.array(1);
    reply.map(4);
    reply.text("name");
    reply.text("bf");
    reply.text("ver");
    reply.integer(MODULE);
    reply.text("path");
    reply.text("");
    reply.text("args");
    reply.array(0);
}

pub(super) fn module(session: &mut Session, args: Args<'_>) -> CommandResult {
    if !is(args.at(1), "LIST") {
        return Err(unknown_subcommand("MODULE", args.at(1)));
    }
    write_modules(&mut session.reply);
    Ok(())
}

fn sections(session: &Session) -> Vec<(&'static str, Vec<(&'static str, String)>)> {
    let (server, store) = (&session.server, &session.server.store);
    let counters = &server.counters;
    let seconds = server.since.1.elapsed().as_secs();
    let text = |text: &str| text.to_string();
    let trouble = store.log().trouble();
    vec![
        (
            "Server",
            vec![
                ("redis_version", text(VERSION)),
                ("redis_mode", text("standalone")),
                ("fullbloom_version", text(env!("CARGO_PKG_VERSION"))),
                ("os", text(std::env::consts::OS)),
                ("arch_bits", text("64")),
                ("run_id", server.run_id.clone()),
                ("process_id", std::process::id().to_string()),
                ("tcp_port", server.port().to_string()),
                ("uptime_in_seconds", seconds.to_string()),
                ("uptime_in_days", (seconds / 86_400).to_string()),
            ],
        ),
        (
            "Clients",
            vec![
                ("connected_clients", counters.connected.load(Ordering::Relaxed).to_string()),
                ("maxclients", store.options.limits.connections.to_string()),
            ],
        ),
        (
            "Memory",
            vec![
                ("used_memory", store.nbytes().to_string()),
                ("used_memory_dataset", store.nbytes().to_string()),
                ("maxmemory", store.options.limits.total_bytes.to_string()),
                ("maxmemory_policy", text("noeviction")),
                ("clients_memory", store.budget().used().to_string()),
                ("clients_memory_peak", store.budget().peak().to_string()),
                ("clients_memory_limit", store.budget().most().to_string()),
                ("clients_memory_refused", store.budget().refusals().to_string()),
            ],
        ),
        (
            "Persistence",
            vec![
                ("loading", text("0")),
                ("rdb_bgsave_in_progress", u8::from(server.saving.load(Ordering::Acquire)).to_string()),
                ("rdb_last_save_time", server.last_saved.load(Ordering::Relaxed).to_string()),
                ("aof_enabled", u8::from(store.options.folder.is_some()).to_string()),
                ("aof_last_write_status", text(if trouble.is_some() { "err" } else { "ok" })),
                ("log_durability", text(store.durability().name())),
                ("log_bytes", store.log().nbytes().to_string()),
            ],
        ),
        (
            "Stats",
            vec![
                ("total_connections_received", counters.connections.load(Ordering::Relaxed).to_string()),
                ("total_commands_processed", counters.commands.load(Ordering::Relaxed).to_string()),
                ("rejected_connections", counters.rejected.load(Ordering::Relaxed).to_string()),
                ("evicted_clients", server.places.num_evicted().to_string()),
            ],
        ),
        ("Replication", vec![("role", text("master")), ("connected_slaves", text("0"))]),
        ("Modules", vec![("module:name", format!("bf,ver={MODULE},api=1,filters=0"))]),
        ("Cluster", vec![("cluster_enabled", text("0"))]),
        ("Keyspace", vec![("db0", format!("keys={},expires=0,avg_ttl=0", store.len()))]),
    ]
}

pub(super) fn info(session: &mut Session, args: Args<'_>) -> CommandResult {
    let wanted = |name: &str| {
        args.len() == 1
            || args
                .from(1)
                .iter()
                .any(|word| is(word, name) || ["all", "everything", "default"].iter().any(|every| is(word, every)))
    };
    let mut text = String::new();
    for (name, lines) in sections(session).into_iter().filter(|(name, _)| wanted(name)) {
        text.push_str(if text.is_empty() { "# " } else { "\r\n# " });
        text.push_str(name);
        text.push_str("\r\n");
        for (field, value) in lines {
            text.push_str(&if field.contains(':') {
                format!("{}={value}\r\n", field)
            } else {
                format!("{field}:{value}\r\n")
            });
        }
    }
    session.reply.verbatim(&text);
    Ok(())
}

const MOST_PATTERNS: usize = 64;

pub(super) fn config(session: &mut Session, args: Args<'_>) -> CommandResult {
    if is(args.at(1), "RESETSTAT") && args.len() == 2 {
        return session.ok();
    }
    if !is(args.at(1), "GET") {
        return Err(CommandError::new("ERR settings cannot be changed while the service runs; use CONFIG GET"));
    }
    if args.len() < 3 {
        return Err(wrong_arity("config|get"));
    }
    let store = &session.server.store;
    let (limits, kept) = (&store.options.limits, store.options.folder.is_some());
    let settings = [
        ("save", String::new()),
        ("appendonly", if kept { "yes" } else { "no" }.to_string()),
        ("appendfsync", store.durability().name().replace("off", "no")),
        ("databases", "1".to_string()),
        ("maxclients", limits.connections.to_string()),
        ("maxmemory", limits.total_bytes.to_string()),
        ("maxmemory-policy", "noeviction".to_string()),
        ("port", session.server.port().to_string()),
        ("proto-max-bulk-len", limits.request_bytes.to_string()),
        ("timeout", "0".to_string()),
    ];
    if args.len() > 2 + MOST_PATTERNS {
        return Err(CommandError::new(format!("ERR CONFIG GET takes at most {MOST_PATTERNS} patterns")));
    }
    let patterns: Vec<Pattern> = args
        .from(2)
        .iter()
        .map(|word| pattern(word).and_then(|_| pattern(&word.to_ascii_lowercase())))
        .collect::<CommandResult<_>>()?;
    let wanted = |name: &str| patterns.iter().any(|pattern| pattern.matches(name.as_bytes()));
    let found: Vec<_> = settings.iter().filter(|(name, _)| wanted(name)).collect();
    session.reply.map(found.len());
    for (name, value) in found {
        session.reply.text(name);
        session.reply.text(value);
    }
    Ok(())
}

pub(super) fn time(session: &mut Session, _: Args<'_>) -> CommandResult {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    session.reply.array(2);
    session.reply.text(&since.as_secs().to_string());
    session.reply.text(&since.subsec_micros().to_string());
    Ok(())
}

const BUSY: &str = "ERR Background save already in progress";

pub(super) fn save(session: &mut Session, _: Args<'_>) -> CommandResult {
    session.server.begin_save().ok_or_else(|| CommandError::new(BUSY))?.run()?;
    session.ok()
}

pub(super) fn save_later(session: &mut Session, _: Args<'_>) -> CommandResult {
    // Begun before the reply: a client that asks at once whether a checkpoint is running must hear that it is.
    let save = session.server.begin_save().ok_or_else(|| CommandError::new(BUSY))?;
    let begun = std::thread::Builder::new().name("fullbloom-save".into()).spawn(move || drop(save.run()));
    begun.map_err(|error| CommandError::new(format!("ERR no thread to save on: {error}")))?;
    session.reply.simple("Background saving started");
    Ok(())
}

pub(super) fn last_save(session: &mut Session, _: Args<'_>) -> CommandResult {
    session.reply.count(session.server.last_saved.load(Ordering::Relaxed));
    Ok(())
}
