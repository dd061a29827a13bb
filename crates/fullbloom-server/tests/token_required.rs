//! A port that other machines can reach rejects clients without a token, even if no token exists.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use fullbloom_server::auth::Authenticator;
use fullbloom_server::fault::{Code, Fault};
use fullbloom_server::resp;
use fullbloom_server::store::{Options, Store};

/// The reply of a listener on `address` to PING, or the code of its refusal.
fn reply(address: &str, authenticator: Option<Arc<Authenticator>>) -> Result<String, Code> {
    ask(address, authenticator).map_err(|fault| fault.code)
}

fn ask(address: &str, authenticator: Option<Arc<Authenticator>>) -> Result<String, Fault> {
    let wrong = |error: std::io::Error| Fault::new(Code::Io, error.to_string());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(wrong)?;
    let store = Arc::new(Store::open(Options::default())?);
    let options = resp::Options { address: address.into(), authenticator, ..resp::Options::default() };
    let listener = runtime.block_on(resp::listen(store, options))?;
    let mut client = TcpStream::connect(("127.0.0.1", listener.address().port())).map_err(wrong)?;
    client.set_read_timeout(Some(Duration::from_secs(120))).map_err(wrong)?;
    client.write_all(b"PING\r\n").map_err(wrong)?;
    let mut heard = [0; 64];
    let length = client.read(&mut heard).map_err(wrong)?;
    drop(client);
    runtime.block_on(listener.stop(Duration::from_secs(2)));
    Ok(String::from_utf8_lossy(&heard[..length]).into_owned())
}

#[test]
fn without_an_authenticator_the_port_must_be_local() {
    assert_eq!(reply("127.0.0.1:0", None).as_deref(), Ok("+PONG\r\n"));
    assert_eq!(reply("0.0.0.0:0", None), Err(Code::Denied));
}

#[test]
fn a_token_is_required_before_other_machines_can_connect() {
    let authenticator = || Some(Arc::new(Authenticator::default()));
    assert_eq!(reply("127.0.0.1:0", authenticator()).as_deref(), Ok("+PONG\r\n"));
    assert_eq!(reply("0.0.0.0:0", authenticator()).as_deref(), Ok("-NOAUTH Authentication required.\r\n"));
}
