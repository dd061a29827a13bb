//! A port that other machines reach opens to nobody's token, whatever the gate said before.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fullbloom_server::fault::{Code, Fault};
use fullbloom_server::resp::{self, Gate, Grant};
use fullbloom_server::store::{Options, Store};

/// Open to everybody until it is guarded, as a service without tokens.
#[derive(Default)]
struct Open {
    guarded: AtomicBool,
    epoch: AtomicU64,
}

impl Gate for Open {
    fn open(&self, _: &[u8]) -> Option<Grant> {
        (!self.guarded.load(Ordering::Acquire)).then(Grant::all)
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    fn guard(&self) {
        self.guarded.store(true, Ordering::Release);
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }
}

/// What a listener on `address` answers to PING; the code of its refusal.
fn answer(address: &str, gate: Option<Arc<dyn Gate>>) -> Result<String, Code> {
    asked(address, gate).map_err(|fault| fault.code)
}

fn asked(address: &str, gate: Option<Arc<dyn Gate>>) -> Result<String, Fault> {
    let wrong = |error: std::io::Error| Fault::new(Code::Io, error.to_string());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(wrong)?;
    let store = Arc::new(Store::open(Options::default())?);
    let options = resp::Options { address: address.into(), gate, ..resp::Options::default() };
    let listener = runtime.block_on(resp::listen(store, options))?;
    let mut client = TcpStream::connect(("127.0.0.1", listener.address().port())).map_err(wrong)?;
    client.set_read_timeout(Some(Duration::from_secs(20))).map_err(wrong)?;
    client.write_all(b"PING\r\n").map_err(wrong)?;
    let mut heard = [0; 64];
    let length = client.read(&mut heard).map_err(wrong)?;
    drop(client);
    runtime.block_on(listener.stop(Duration::from_secs(2)));
    Ok(String::from_utf8_lossy(&heard[..length]).into_owned())
}

#[test]
fn without_a_gate_only_this_machine_is_listened_to() {
    assert_eq!(answer("127.0.0.1:0", None).as_deref(), Ok("+PONG\r\n"));
    assert_eq!(answer("0.0.0.0:0", None), Err(Code::Denied));
}

#[test]
fn a_gate_is_guarded_before_others_reach_it() {
    let gate = || Some(Arc::new(Open::default()) as Arc<dyn Gate>);
    assert_eq!(answer("127.0.0.1:0", gate()).as_deref(), Ok("+PONG\r\n"));
    assert_eq!(answer("0.0.0.0:0", gate()).as_deref(), Ok("-NOAUTH Authentication required.\r\n"));
}
