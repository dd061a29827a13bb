//! The table of commands, one family a file.

use std::sync::OnceLock;

use super::command::{Command, Table};
use super::session::Session;

mod arguments;
mod bf;
mod cf;
mod connection;
mod describe;
mod dump;
mod exchange;
mod keyspace;
mod looking;
mod making;
mod named;
mod notes;
mod packed;
mod service;
mod transaction;

/// Every command.
pub(super) fn table() -> &'static Table<Session> {
    static TABLE: OnceLock<Table<Session>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let families: [&[Command<Session>]; 11] = [
            connection::COMMANDS,
            describe::COMMANDS,
            service::COMMANDS,
            keyspace::COMMANDS,
            notes::COMMANDS,
            transaction::COMMANDS,
            bf::COMMANDS,
            cf::COMMANDS,
            named::COMMANDS,
            packed::COMMANDS,
            dump::COMMANDS,
        ];
        Table::new(families.into_iter().flatten())
    })
}
