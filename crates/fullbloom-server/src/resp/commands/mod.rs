//! The command table: one row for each command, with its syntax beside its handler. Each family of handlers has one
//! file.

use std::sync::OnceLock;

use super::command::flag::{ADMIN, AT_ONCE, FAST, NO_AUTH, SLOW, WRITE};
use super::command::{Command, Keys, Table};
use super::session::Session;
use crate::auth::Scope::{Admin, Nothing, Read, Write};
use crate::kind::Flavour::{Bloom, Cuckoo};
use packed::{hash_keys, take_hashes};

mod arguments;
mod bf;
mod bloom;
mod cf;
mod connection;
mod dump;
mod introspection;
mod keyspace;
mod notes;
mod owners;
mod packed;
mod service;
mod transaction;

const NONE: Keys = Keys { first: 0, last: 0 };
const ONE: Keys = Keys { first: 1, last: 1 };
const TWO: Keys = Keys { first: 1, last: 2 };
const ALL: Keys = Keys { first: 1, last: -1 };

#[rustfmt::skip] // two lines per row
static COMMANDS: &[Command<Session>] = &[
    // Connections.
    Command { name: "hello", arity: -1, keys: NONE, scope: Nothing, flags: FAST | NO_AUTH | AT_ONCE,
        run: connection::hello, syntax: "HELLO [version [AUTH user token] [SETNAME name]]",
        summary: "Selects a version of the protocol" },
    Command { name: "auth", arity: -2, keys: NONE, scope: Nothing, flags: FAST | NO_AUTH | AT_ONCE,
        run: connection::auth, syntax: "AUTH [user] token", summary: "Authenticates the client" },
    Command { name: "quit", arity: -1, keys: NONE, scope: Nothing, flags: FAST | NO_AUTH | AT_ONCE,
        run: connection::quit, syntax: "QUIT [word ...]", summary: "Closes the connection" },
    Command { name: "reset", arity: 1, keys: NONE, scope: Nothing, flags: FAST | NO_AUTH | AT_ONCE,
        run: connection::reset, syntax: "RESET", summary: "Resets the connection" },
    Command { name: "ping", arity: -1, keys: NONE, scope: Nothing, flags: FAST,
        run: connection::ping, syntax: "PING [text]", summary: "Replies with PONG or the text" },
    Command { name: "echo", arity: 2, keys: NONE, scope: Nothing, flags: FAST,
        run: connection::echo, syntax: "ECHO text", summary: "Replies with the text" },
    Command { name: "select", arity: 2, keys: NONE, scope: Nothing, flags: FAST,
        run: connection::select, syntax: "SELECT 0", summary: "Selects database 0, the only one" },
    Command { name: "client", arity: -2, keys: NONE, scope: Nothing, flags: FAST,
        run: connection::client, summary: "Lists clients, or names this one",
        syntax: "CLIENT <ID | INFO | LIST | GETNAME | SETNAME name | SETINFO field text | NO-EVICT on | NO-TOUCH on>" },
    Command { name: "command", arity: -1, keys: NONE, scope: Nothing, flags: FAST,
        run: introspection::describe, summary: "Describes the commands",
        syntax: "COMMAND [COUNT | LIST | INFO [name ...] | DOCS [name ...] | GETKEYS word ...]" },
    // The service.
    Command { name: "info", arity: -1, keys: NONE, scope: Read, flags: FAST,
        run: service::info, syntax: "INFO [section ...]", summary: "Describes the service" },
    Command { name: "config", arity: -2, keys: NONE, scope: Read, flags: FAST | ADMIN,
        run: service::config, syntax: "CONFIG <GET pattern ... | RESETSTAT>",
        summary: "Returns settings of the service" },
    Command { name: "time", arity: 1, keys: NONE, scope: Nothing, flags: FAST,
        run: service::time, syntax: "TIME", summary: "Returns the time: seconds since 1970, and microseconds" },
    Command { name: "module", arity: -2, keys: NONE, scope: Read, flags: FAST,
        run: service::module, syntax: "MODULE <LIST>", summary: "Lists the modules" },
    Command { name: "save", arity: 1, keys: NONE, scope: Admin, flags: SLOW | ADMIN,
        run: service::save, syntax: "SAVE", summary: "Writes a checkpoint" },
    Command { name: "bgsave", arity: -1, keys: NONE, scope: Admin, flags: SLOW | ADMIN,
        run: service::save_later, syntax: "BGSAVE [SCHEDULE]", summary: "Writes a checkpoint in the background" },
    Command { name: "lastsave", arity: 1, keys: NONE, scope: Read, flags: FAST,
        run: service::last_save, syntax: "LASTSAVE", summary: "Returns the time of the last checkpoint" },
    // Names.
    Command { name: "del", arity: -2, keys: ALL, scope: Write, flags: WRITE | FAST,
        run: keyspace::del, syntax: "DEL name ...", summary: "Drops filters and returns how many existed" },
    Command { name: "unlink", arity: -2, keys: ALL, scope: Write, flags: WRITE | FAST,
        run: keyspace::del, syntax: "UNLINK name ...", summary: "Drops filters and returns how many existed" },
    Command { name: "exists", arity: -2, keys: ALL, scope: Read, flags: FAST,
        run: keyspace::exists, syntax: "EXISTS name ...", summary: "Counts the names under which filters exist" },
    Command { name: "touch", arity: -2, keys: ALL, scope: Read, flags: FAST,
        run: keyspace::exists, syntax: "TOUCH name ...", summary: "Counts the names under which filters exist" },
    Command { name: "type", arity: 2, keys: ONE, scope: Read, flags: FAST,
        run: keyspace::type_of, syntax: "TYPE name", summary: "Returns the type of a filter" },
    Command { name: "scan", arity: -2, keys: NONE, scope: Read, flags: SLOW,
        run: keyspace::scan, syntax: "SCAN cursor [MATCH pattern] [COUNT number] [TYPE type]",
        summary: "Lists names of filters, a page at a time" },
    Command { name: "keys", arity: 2, keys: NONE, scope: Read, flags: SLOW,
        run: keyspace::keys, syntax: "KEYS pattern", summary: "Lists all names that match a pattern" },
    Command { name: "dbsize", arity: 1, keys: NONE, scope: Read, flags: FAST,
        run: keyspace::size, syntax: "DBSIZE", summary: "Returns the number of filters" },
    Command { name: "expire", arity: -3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: keyspace::expire, syntax: "EXPIRE name seconds [NX | XX | GT | LT]",
        summary: "Sets the TTL of a filter, in seconds" },
    Command { name: "pexpire", arity: -3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: keyspace::expire, syntax: "PEXPIRE name milliseconds [NX | XX | GT | LT]",
        summary: "Sets the TTL of a filter, in milliseconds" },
    Command { name: "expireat", arity: -3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: keyspace::expire, syntax: "EXPIREAT name time [NX | XX | GT | LT]",
        summary: "Sets the expiry of a filter, in seconds since 1970" },
    Command { name: "pexpireat", arity: -3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: keyspace::expire, syntax: "PEXPIREAT name time [NX | XX | GT | LT]",
        summary: "Sets the expiry of a filter, in milliseconds since 1970" },
    Command { name: "ttl", arity: 2, keys: ONE, scope: Read, flags: FAST,
        run: keyspace::ttl, syntax: "TTL name", summary: "Returns the TTL of a filter, in seconds" },
    Command { name: "pttl", arity: 2, keys: ONE, scope: Read, flags: FAST,
        run: keyspace::ttl, syntax: "PTTL name", summary: "Returns the TTL of a filter, in milliseconds" },
    Command { name: "expiretime", arity: 2, keys: ONE, scope: Read, flags: FAST,
        run: keyspace::ttl, syntax: "EXPIRETIME name",
        summary: "Returns the expiry of a filter, in seconds since 1970" },
    Command { name: "pexpiretime", arity: 2, keys: ONE, scope: Read, flags: FAST,
        run: keyspace::ttl, syntax: "PEXPIRETIME name",
        summary: "Returns the expiry of a filter, in milliseconds since 1970" },
    Command { name: "persist", arity: 2, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: keyspace::persist, syntax: "PERSIST name", summary: "Removes the expiry of a filter" },
    Command { name: "rename", arity: 3, keys: TWO, scope: Write, flags: WRITE | FAST,
        run: keyspace::rename, syntax: "RENAME name new", summary: "Renames a filter" },
    Command { name: "renamenx", arity: 3, keys: TWO, scope: Write, flags: WRITE | FAST,
        run: keyspace::rename_absent, syntax: "RENAMENX name new",
        summary: "Renames a filter if the new name is free" },
    Command { name: "flushdb", arity: -1, keys: NONE, scope: Admin, flags: WRITE | SLOW | ADMIN,
        run: keyspace::flush, syntax: "FLUSHDB [ASYNC | SYNC]", summary: "Drops all filters" },
    Command { name: "flushall", arity: -1, keys: NONE, scope: Admin, flags: WRITE | SLOW | ADMIN,
        run: keyspace::flush, syntax: "FLUSHALL [ASYNC | SYNC]", summary: "Drops all filters" },
    // Notes.
    Command { name: "set", arity: -3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: notes::set, summary: "Sets a note, a small text beside the filters",
        syntax: "SET name text [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT time | PXAT time | KEEPTTL]" },
    Command { name: "get", arity: 2, keys: ONE, scope: Read, flags: FAST,
        run: notes::get, syntax: "GET name", summary: "Returns the text of a note" },
    // Transactions.
    Command { name: "multi", arity: 1, keys: NONE, scope: Nothing, flags: FAST | AT_ONCE,
        run: transaction::multi, syntax: "MULTI", summary: "Queues the commands that follow" },
    Command { name: "exec", arity: 1, keys: NONE, scope: Nothing, flags: SLOW | AT_ONCE,
        run: transaction::exec, syntax: "EXEC", summary: "Executes the queued commands as one" },
    Command { name: "discard", arity: 1, keys: NONE, scope: Nothing, flags: FAST | AT_ONCE,
        run: transaction::discard, syntax: "DISCARD", summary: "Discards the queued commands" },
    Command { name: "watch", arity: -2, keys: ALL, scope: Read, flags: FAST | AT_ONCE,
        run: transaction::watch, syntax: "WATCH name ...", summary: "Is not supported" },
    Command { name: "unwatch", arity: 1, keys: NONE, scope: Nothing, flags: FAST | AT_ONCE,
        run: transaction::unwatch, syntax: "UNWATCH", summary: "Does nothing, as no name is watched" },
    // Bloom filters, as in RedisBloom.
    Command { name: "bf.reserve", arity: -4, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: bf::reserve, syntax: "BF.RESERVE name rate capacity [EXPANSION number] [NONSCALING]",
        summary: "Creates a filter with a rate and a capacity" },
    Command { name: "bf.add", arity: 3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: bf::add, syntax: "BF.ADD name key", summary: "Adds a key; creates the filter if it does not exist" },
    Command { name: "bf.madd", arity: -3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: bf::add_many, syntax: "BF.MADD name key ...",
        summary: "Adds keys; creates the filter if it does not exist" },
    Command { name: "bf.insert", arity: -4, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: bf::insert, summary: "Adds keys; creates the filter with the given options",
        syntax: "BF.INSERT name [CAPACITY n] [ERROR rate] [EXPANSION n] [NOCREATE] [NONSCALING] ITEMS key ..." },
    Command { name: "bf.exists", arity: 3, keys: ONE, scope: Read, flags: FAST,
        run: bf::exists, syntax: "BF.EXISTS name key", summary: "Returns whether a key may have been added" },
    Command { name: "bf.mexists", arity: -3, keys: ONE, scope: Read, flags: FAST,
        run: bf::exists_many, syntax: "BF.MEXISTS name key ...",
        summary: "Returns for each key whether it may have been added" },
    Command { name: "bf.card", arity: 2, keys: ONE, scope: Read, flags: FAST,
        run: bf::card, syntax: "BF.CARD name", summary: "Returns the number of distinct keys added" },
    Command { name: "bf.info", arity: -2, keys: ONE, scope: Read, flags: SLOW,
        run: bf::info, syntax: "BF.INFO name [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION]",
        summary: "Describes a filter" },
    Command { name: "bf.debug", arity: 2, keys: ONE, scope: Read, flags: SLOW,
        run: bf::debug, syntax: "BF.DEBUG name", summary: "Describes the layers of a filter" },
    // Cuckoo filters, as in RedisBloom.
    Command { name: "cf.reserve", arity: -3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: cf::reserve, summary: "Creates a filter with a capacity",
        syntax: "CF.RESERVE name capacity [BUCKETSIZE number] [MAXITERATIONS number] [EXPANSION number]" },
    Command { name: "cf.add", arity: 3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: cf::add, syntax: "CF.ADD name key", summary: "Adds a key, even if it is present" },
    Command { name: "cf.addnx", arity: 3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: cf::add_absent, syntax: "CF.ADDNX name key", summary: "Adds a key if it is absent" },
    Command { name: "cf.insert", arity: -4, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: cf::insert, syntax: "CF.INSERT name [CAPACITY number] [NOCREATE] ITEMS key ...",
        summary: "Adds keys; creates the filter with the given options" },
    Command { name: "cf.insertnx", arity: -4, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: cf::insert_absent, syntax: "CF.INSERTNX name [CAPACITY number] [NOCREATE] ITEMS key ...",
        summary: "Adds the keys that are absent" },
    Command { name: "cf.exists", arity: 3, keys: ONE, scope: Read, flags: FAST,
        run: cf::exists, syntax: "CF.EXISTS name key", summary: "Returns whether a key may be present" },
    Command { name: "cf.mexists", arity: -3, keys: ONE, scope: Read, flags: FAST,
        run: cf::exists_many, syntax: "CF.MEXISTS name key ...", summary: "Returns for each key whether it may be present" },
    Command { name: "cf.del", arity: 3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: cf::remove, syntax: "CF.DEL name key", summary: "Removes a key once" },
    Command { name: "cf.count", arity: 3, keys: ONE, scope: Read, flags: FAST,
        run: cf::count, syntax: "CF.COUNT name key", summary: "Returns how often a key was added" },
    Command { name: "cf.info", arity: 2, keys: ONE, scope: Read, flags: SLOW,
        run: cf::info, syntax: "CF.INFO name", summary: "Describes a filter" },
    Command { name: "cf.debug", arity: 2, keys: ONE, scope: Read, flags: SLOW,
        run: cf::debug, syntax: "CF.DEBUG name", summary: "Describes a filter in one line" },
    Command { name: "cf.compact", arity: 2, keys: ONE, scope: Write, flags: WRITE | SLOW,
        run: cf::compact, syntax: "CF.COMPACT name", summary: "Frees the space of removed keys" },
    // Filters of any kind.
    Command { name: "bloom.create", arity: -4, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: bloom::create, syntax: "BLOOM.CREATE name KIND kind [name value ...]",
        summary: "Creates a filter of any kind" },
    Command { name: "bloom.info", arity: 2, keys: ONE, scope: Read, flags: SLOW,
        run: bloom::info, syntax: "BLOOM.INFO name", summary: "Describes a filter in full" },
    Command { name: "bloom.stats", arity: -1, keys: NONE, scope: Read, flags: SLOW,
        run: bloom::stats, syntax: "BLOOM.STATS [name ...]",
        summary: "Returns the counters of the named filters, or of all" },
    Command { name: "bloom.kinds", arity: 1, keys: NONE, scope: Read, flags: FAST,
        run: bloom::kinds, syntax: "BLOOM.KINDS", summary: "Lists the kinds of filters and their operations" },
    Command { name: "bloom.add", arity: -3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: bloom::add, syntax: "BLOOM.ADD name key ...", summary: "Adds keys and returns which were new" },
    Command { name: "bloom.check", arity: -3, keys: ONE, scope: Read, flags: FAST,
        run: bloom::check, syntax: "BLOOM.CHECK name key ...",
        summary: "Returns for each key whether it may have been added" },
    Command { name: "bloom.remove", arity: -3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: bloom::remove, syntax: "BLOOM.REMOVE name key ...",
        summary: "Removes keys and returns which were present" },
    Command { name: "bloom.count", arity: -3, keys: ONE, scope: Read, flags: FAST,
        run: bloom::count, syntax: "BLOOM.COUNT name key ...", summary: "Returns how often each key was added" },
    Command { name: "bloom.setpair", arity: -4, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: bloom::set_pairs, syntax: "BLOOM.SETPAIR name key value ...", summary: "Adds keys with a value each" },
    Command { name: "bloom.values", arity: -3, keys: ONE, scope: Read, flags: FAST,
        run: bloom::values, syntax: "BLOOM.VALUES name key ...", summary: "Returns the value of each key" },
    Command { name: "bloom.positions", arity: 3, keys: ONE, scope: Read, flags: FAST,
        run: bloom::positions, syntax: "BLOOM.POSITIONS name key", summary: "Returns the cells of a key" },
    Command { name: "bloom.clear", arity: 2, keys: ONE, scope: Write, flags: WRITE | SLOW,
        run: bloom::clear, syntax: "BLOOM.CLEAR name", summary: "Removes all keys" },
    Command { name: "bloom.advance", arity: -2, keys: ONE, scope: Write, flags: WRITE | SLOW,
        run: bloom::advance, syntax: "BLOOM.ADVANCE name [seconds]", summary: "Advances the time of a window" },
    Command { name: "bloom.merge", arity: -3, keys: ALL, scope: Write, flags: WRITE | SLOW,
        run: bloom::merge, syntax: "BLOOM.MERGE name source ...", summary: "Merges filters into the first" },
    // Owners of a bank.
    Command { name: "bloom.owners", arity: -2, keys: ONE, scope: Read, flags: SLOW,
        run: owners::list, syntax: "BLOOM.OWNERS name [start [count]]",
        summary: "Lists the hashes of owners, with the number of keys of each" },
    Command { name: "bloom.ownerinfo", arity: 3, keys: ONE, scope: Read, flags: FAST,
        run: owners::info, syntax: "BLOOM.OWNERINFO name owner", summary: "Describes an owner" },
    Command { name: "bloom.clearowner", arity: -3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: owners::clear, syntax: "BLOOM.CLEAROWNER name owner ...",
        summary: "Removes all keys of owners and returns which owners exist" },
    Command { name: "bloom.removeowner", arity: -3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: owners::remove, syntax: "BLOOM.REMOVEOWNER name owner ...",
        summary: "Removes owners and returns which existed" },
    Command { name: "bloom.exportowner", arity: 3, keys: ONE, scope: Read, flags: SLOW,
        run: owners::export, syntax: "BLOOM.EXPORTOWNER name owner",
        summary: "Returns the file of an owner's filter" },
    // Packed batches.
    Command { name: "bloom.padd", arity: 3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: |s, a| packed::add(s, a, hash_keys, false), syntax: "BLOOM.PADD name keys",
        summary: "Adds packed keys and returns which were new, as bits" },
    Command { name: "bloom.pcheck", arity: 3, keys: ONE, scope: Read, flags: FAST,
        run: |s, a| packed::check(s, a, hash_keys, false), syntax: "BLOOM.PCHECK name keys",
        summary: "Looks up packed keys and returns which were found, as bits" },
    Command { name: "bloom.premove", arity: 3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: |s, a| packed::remove(s, a, hash_keys), syntax: "BLOOM.PREMOVE name keys",
        summary: "Removes packed keys and returns which were present, as bits" },
    Command { name: "bloom.hadd", arity: 3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: |s, a| packed::add(s, a, take_hashes, true), syntax: "BLOOM.HADD name hashes",
        summary: "Adds hashes and returns which were new, as bits" },
    Command { name: "bloom.hcheck", arity: 3, keys: ONE, scope: Read, flags: FAST,
        run: |s, a| packed::check(s, a, take_hashes, true), syntax: "BLOOM.HCHECK name hashes",
        summary: "Looks up hashes and returns which were found, as bits" },
    Command { name: "bloom.hremove", arity: 3, keys: ONE, scope: Write, flags: WRITE | FAST,
        run: |s, a| packed::remove(s, a, take_hashes), syntax: "BLOOM.HREMOVE name hashes",
        summary: "Removes hashes and returns which were present, as bits" },
    // Dumps.
    Command { name: "bloom.dump", arity: 2, keys: ONE, scope: Read, flags: SLOW,
        run: dump::dump, syntax: "BLOOM.DUMP name", summary: "Returns the file of a filter" },
    Command { name: "bloom.restore", arity: -3, keys: ONE, scope: Write, flags: WRITE | SLOW,
        run: dump::restore, syntax: "BLOOM.RESTORE name bytes [REPLACE]", summary: "Creates a filter from a file" },
    Command { name: "bf.scandump", arity: 3, keys: ONE, scope: Read, flags: SLOW,
        run: |s, a| dump::scan(s, a, Bloom), syntax: "BF.SCANDUMP name position",
        summary: "Returns a chunk of a filter" },
    Command { name: "cf.scandump", arity: 3, keys: ONE, scope: Read, flags: SLOW,
        run: |s, a| dump::scan(s, a, Cuckoo), syntax: "CF.SCANDUMP name position",
        summary: "Returns a chunk of a filter" },
    Command { name: "bf.loadchunk", arity: 4, keys: ONE, scope: Write, flags: WRITE | SLOW,
        run: |s, a| dump::load(s, a, Bloom), syntax: "BF.LOADCHUNK name position bytes",
        summary: "Loads a chunk of a filter" },
    Command { name: "cf.loadchunk", arity: 4, keys: ONE, scope: Write, flags: WRITE | SLOW,
        run: |s, a| dump::load(s, a, Cuckoo), syntax: "CF.LOADCHUNK name position bytes",
        summary: "Loads a chunk of a filter" },
];

pub(super) fn table() -> &'static Table<Session> {
    static TABLE: OnceLock<Table<Session>> = OnceLock::new();
    TABLE.get_or_init(|| Table::new(COMMANDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arity that a syntax describes: words outside of brackets count, a group in angle brackets is one word.
    fn arity(syntax: &str) -> i32 {
        let (mut depth, mut words, mut is_variable) = (0, 0, syntax.contains("..."));
        for word in syntax.split_whitespace().filter(|word| *word != "...") {
            words += i32::from(depth == 0 && !word.starts_with('['));
            depth += word.matches(['[', '<']).count() as i32 - word.matches([']', '>']).count() as i32;
            is_variable |= word.contains(['[', '<']);
        }
        if is_variable { -words } else { words }
    }

    #[test]
    fn the_syntax_of_each_command_has_its_name_and_arity() {
        for command in COMMANDS {
            assert!(command.syntax.split(' ').next().is_some_and(|name| name.eq_ignore_ascii_case(command.name)));
            assert_eq!(arity(command.syntax), command.arity, "{}", command.syntax);
        }
    }
}
