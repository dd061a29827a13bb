//! RESP2 and RESP3: parser, replies, commands, connections, listener.
//!
//! * [`parse`]: commands out of bytes, [`reply`]: answers into bytes;
//! * [`gate`]: who may do what;
//! * [`server`]: what all connections share, `clients`: who is connected;
//! * `session`: what one client has said so far, and the commands it sends; nothing here waits;
//! * `commands`: the table of commands, one family a file;
//! * `connection`: reading, waiting for the disk, writing; `stream`: plain or TLS;
//! * [`mod@listen`]: the port.

mod clients;
mod commands;
mod connection;
pub mod gate;
pub mod listen;
pub mod parse;
pub mod reply;
pub mod server;
mod session;
mod stream;

pub use gate::{Gate, Grant, Tokens};
pub use listen::{Listener, listen};
pub use server::Options;
