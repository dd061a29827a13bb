//! Under `always`, a reply that depends on a change waits until the change is on disk, whoever made it.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use super::{Options, listen};
use crate::fault::{Code, Fault, Result};
use crate::fault_points::{Action, arm};
use crate::log::Durability;
use crate::store::{self, Store};

/// A first command, the change of one client, the query of another client, and its reply.
const DECIDING: &[(&str, &str, &str, &str)] = &[
    ("CF.RESERVE a 100", "CF.ADD a k", "CF.ADDNX a k", ":0"),
    ("CF.RESERVE b 100", "CF.ADD b k", "CF.INSERTNX b ITEMS k", "*1\r\n:0"),
    ("CF.RESERVE c 100", "CF.ADD c k", "CF.INSERTNX c ITEMS new k", "*2\r\n:1\r\n:0"),
    ("PING", "SET d x", "SET d y NX", "$-1"),
    ("PING", "SET e x", "GET e", "$1\r\nx"),
    ("SET f x", "DEL f", "GET f", "$-1"),
    ("SET g x", "DEL g", "SET g y XX", "$-1"),
    ("SET h x", "DEL h", "DEL h", ":0"),
    ("PING", "SET i x", "EXISTS i", ":1"),
    ("PING", "SET j x", "TYPE j", "+string"),
    ("SET k x", "PEXPIREAT k 99999999999999", "PEXPIRETIME k", ":99999999999999"),
    ("SET l x", "EXPIRE l 1000", "EXPIRE l 2000 NX", ":0"),
    ("SET m x", "SET m2 x", "RENAMENX m m2", ":0"),
    ("PING", "BF.RESERVE n 0.01 100", "BF.RESERVE n 0.01 100", "-ERR item exists"),
    ("PING", "CF.RESERVE o 100", "CF.RESERVE o 100", "-ERR item exists"),
    ("PING", "BLOOM.CREATE p KIND bloom capacity 9", "BLOOM.CREATE p KIND bloom capacity 9", "-ERR item exists"),
    ("BF.RESERVE q 0.01 100", "BF.ADD q k", "BF.ADD q k", ":0"),
    ("BF.RESERVE r 0.01 100", "BF.ADD r k", "BF.MADD r k", "*1\r\n:0"),
    ("BF.RESERVE s 0.01 1 NONSCALING", "BF.ADD s k", "BF.ADD s k", ":0"),
    ("BF.RESERVE t 0.000000001 1 NONSCALING", "BF.ADD t k", "BF.ADD t other", "-ERR non scaling filter is full"),
    ("SET u x EX 1000", "PERSIST u", "PERSIST u", ":0"),
    ("CF.RESERVE v 100", "CF.ADD v k", "MULTI\r\nCF.ADDNX v k\r\nEXEC", "+OK\r\n+QUEUED\r\n*1\r\n:0"),
    ("CF.RESERVE w 100", "CF.ADD w k", "CF.ADD w2 k\r\nCF.ADDNX w k", ":1\r\n:0"),
];

/// Lookups of keys do not wait, as docs/durability.md says.
const LOOK_UPS: &[(&str, &str, &str, &str)] = &[
    ("BF.RESERVE A 0.01 100", "BF.ADD A k", "BF.EXISTS A k", ":1"),
    ("CF.RESERVE B 100", "CF.ADD B k", "CF.COUNT B k", ":1"),
    ("BLOOM.CREATE C KIND bloom capacity 9", "BLOOM.ADD C k", "BLOOM.CHECK C k", "*1\r\n:1"),
];

/// The time in which a reply must come, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn io(error: std::io::Error) -> Fault {
    Fault::new(Code::Io, error.to_string())
}

struct Client(TcpStream);

impl Client {
    fn send(&mut self, commands: &str) -> Result<()> {
        self.0.write_all(format!("{commands}\r\n").as_bytes()).map_err(io)
    }

    /// Receives a reply of this many bytes.
    fn receive(&mut self, bytes: usize) -> Result<String> {
        let mut heard = vec![0; bytes];
        self.0.read_exact(&mut heard).map_err(io)?;
        Ok(String::from_utf8_lossy(&heard).into_owned())
    }

    /// True if nothing arrives within `moment`.
    fn is_silent(&mut self, moment: Duration) -> Result<bool> {
        self.0.set_read_timeout(Some(moment)).map_err(io)?;
        let heard = self.0.peek(&mut [0]);
        self.0.set_read_timeout(Some(PATIENCE)).map_err(io)?;
        match heard {
            Ok(_) => Ok(false),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(true),
            Err(error) => Err(io(error)),
        }
    }
}

#[test]
fn replies_wait_for_the_changes_on_which_they_depend() -> Result<()> {
    let folder = tempfile::tempdir().map_err(io)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(io)?;
    let options = store::Options {
        folder: Some(folder.path().to_owned()),
        durability: Durability::Always,
        ..store::Options::default()
    };
    let store = Arc::new(Store::open(options)?);
    let listener =
        runtime.block_on(listen(store.clone(), Options { address: "127.0.0.1:0".into(), ..Options::default() }))?;
    let client = || -> Result<Client> {
        let stream = TcpStream::connect(listener.address()).map_err(io)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(io)?;
        Ok(Client(stream))
    };
    let mut first = client()?;
    for (before, ..) in DECIDING.iter().chain(LOOK_UPS) {
        first.send(before)?;
        let _ = first.receive(if *before == "PING" { 7 } else { 5 })?;
    }
    let paused = arm(folder.path(), "log.sync", 0, Action::Pause);
    let records = store.log().next() + (DECIDING.len() + LOOK_UPS.len()) as u64;
    let mut changing = Vec::new();
    for (_, change, ..) in DECIDING.iter().chain(LOOK_UPS) {
        let mut one = client()?;
        one.send(change)?;
        changing.push(one);
    }
    paused.wait();
    while store.log().next() < records {
        std::thread::sleep(Duration::from_millis(1));
    }
    // All changes are applied; none is synced, so none is acknowledged.
    for one in &mut changing {
        assert!(one.is_silent(Duration::from_millis(10))?);
    }
    let mut asking = Vec::new();
    for (_, _, question, answer) in DECIDING {
        let mut one = client()?;
        one.send(question)?;
        asking.push((one, question, answer));
    }
    for (_, _, question, answer) in LOOK_UPS {
        let mut one = client()?;
        one.send(question)?;
        assert_eq!(one.receive(answer.len() + 2)?, format!("{answer}\r\n"), "{question}");
    }
    for (one, question, _) in &mut asking {
        assert!(one.is_silent(Duration::from_millis(10))?, "{question} was answered before the disk had its ground");
    }
    paused.release();
    for (one, question, answer) in &mut asking {
        assert_eq!(one.receive(answer.len() + 2)?, format!("{answer}\r\n"), "{question}");
    }
    runtime.block_on(listener.stop(Duration::from_secs(2)));
    Ok(())
}
