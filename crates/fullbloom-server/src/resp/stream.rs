//! [`Stream`]: the bytes of a connection, plain or encrypted.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A plain or encrypted connection.
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    fn socket(&self) -> &TcpStream {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(stream) => stream.get_ref().0,
        }
    }

    /// Waits until something has arrived. Reading continues until nothing is left, so TLS holds nothing back.
    pub(super) async fn readable(&self) -> io::Result<()> {
        self.socket().readable().await
    }

    /// True if bytes are not encrypted.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Stream::Plain(_))
    }

    /// Writes what the system accepts without blocking, if the connection is plain; returns how many bytes that were.
    pub(super) fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        let Stream::Plain(socket) = self else { return Ok(0) };
        match socket.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            written => written,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
