//! [`Master`]: one secret of the service, from which each filter has its own.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use bloomery_core::key::KeyHasher;
use sha2::{Digest, Sha256};

use crate::fault::{Code, Fault, Result};
use crate::kind::Spec;

/// Name of its file in the data folder.
const FILE: &str = "secret.key";

/// 32 bytes that never leave the process but for their file, which only its owner reads. Not shown by anything.
pub struct Master([u8; 32]);

impl Master {
    /// Bytes from the system's generator.
    pub fn drawn() -> Result<Self> {
        let mut bytes = [0; 32];
        let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
        read.map_err(|error| Fault::new(Code::Io, format!("/dev/urandom: {error}")))?;
        Ok(Master(bytes))
    }

    /// Those of the data folder, drawn when there are none yet.
    pub fn in_folder(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let wrong = Fault::io(&path);
        match File::open(&path) {
            Ok(mut file) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).map_err(&wrong)?;
                let bytes = bytes.try_into().map_err(|_| {
                    Fault::new(Code::Format, format!("{}: a secret has 32 bytes; restore the file", path.display()))
                })?;
                Ok(Master(bytes))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let master = Self::drawn()?;
                master.write(folder, &path).map_err(&wrong)?;
                Ok(master)
            }
            Err(error) => Err(wrong(error)),
        }
    }

    /// Puts it on disk whole or not at all: what a crash leaves under the other name is drawn anew.
    fn write(&self, folder: &Path, path: &Path) -> std::io::Result<()> {
        let temporary = folder.join("secret.key.new");
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&temporary)?;
        file.write_all(&self.0)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        File::open(folder)?.sync_all()
    }

    /// The secret of a filter: a hash of this one and the filter's seed, which is drawn for each.
    pub fn secret_of(&self, seed: u64) -> [u8; 16] {
        // Lengths are fixed, so nothing can be extended: HMAC would add nothing here.
        let digest =
            Sha256::new().chain_update(b"bloomery filter secret").chain_update(self.0).chain_update(seed.to_le_bytes());
        let mut secret = [0; 16];
        secret.copy_from_slice(&digest.finalize()[..16]);
        secret
    }

    /// How keys of a filter become hashes.
    pub fn hasher(&self, spec: &Spec) -> KeyHasher {
        if spec.keyed { KeyHasher::keyed(spec.seed, &self.secret_of(spec.seed)) } else { KeyHasher::seeded(spec.seed) }
    }
}
