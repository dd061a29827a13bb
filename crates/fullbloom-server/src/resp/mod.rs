//! RESP2 and RESP3: parser, replies, commands, connections, listener.
//!
//! * [`parse`]: commands out of bytes, [`reply`]: answers into bytes;
//! * [`gate`]: who may do what;
//! * `clients`: who is connected, [`server`]: what all connections share;
//! * `halt`: why a command is refused, `command`: what a command is, and a table of them;
//! * `transaction`: commands put off, `transfer`: filters on their way in pieces;
//! * `session`: what one client has said so far, and the commands it sends, by a table it is given; nothing waits;
//! * `commands`: that table, one family a file;
//! * [`dialogue`]: a client without a socket;
//! * `end`: how far the end has come, `stream`: plain or TLS;
//! * `connection`: reading, waiting for the disk, writing;
//! * [`mod@listen`]: the port.
//!
//! Each uses only what stands above it.

mod clients;
mod command;
mod commands;
mod connection;
pub mod dialogue;
mod end;
pub mod gate;
mod halt;
pub mod listen;
pub mod parse;
pub mod reply;
pub mod server;
mod session;
mod stream;
mod transaction;
mod transfer;
#[cfg(test)]
mod waiting_tests;

pub use dialogue::Dialogue;
pub use gate::{Gate, Grant, Tokens};
pub use listen::{Listener, listen};
pub use server::Options;
