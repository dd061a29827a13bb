//! RESP2 and RESP3: parser, replies, commands, connections, listener.
