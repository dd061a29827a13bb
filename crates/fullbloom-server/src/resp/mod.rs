//! RESP2 and RESP3. Each module uses only the modules above it:
//!
//! | module | holds |
//! |---|---|
//! | [`parser`], [`reply`] | commands from bytes, replies to bytes |
//! | `clients`, `places`, [`server`] | the connected clients; their places; what all connections share |
//! | `error`, `command` | why a command failed; a row of the command table |
//! | `transaction`, `transfer` | queued commands; filters sent and received in chunks |
//! | `session` | the state of one client, and the execution of its commands; nothing waits_for_disk here |
//! | `commands` | the command table, and one file of handlers for each family |
//! | [`dialogue`] | a client without a socket |
//! | `stream`, `connection` | plain or TLS bytes; reading, waiting for the disk, writing |
//! | [`mod@listen`] | the port |

mod clients;
mod command;
mod commands;
mod connection;
pub mod dialogue;
#[cfg(test)]
mod durability_tests;
mod error;
#[cfg(test)]
mod interleaving_tests;
pub mod listen;
pub mod parser;
mod places;
pub mod reply;
pub mod server;
mod session;
mod stream;
mod transaction;
mod transfer;

pub use dialogue::Dialogue;
pub use listen::{Listener, listen};
pub use server::Options;
