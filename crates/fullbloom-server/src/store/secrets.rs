//! [`Master`]: the secret of the service, from which the secrets of filters are derived.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use fullbloom_core::key::{FINGERPRINT_LABEL, KeyHasher};
use sha2::{Digest, Sha256};

use super::salvage::Salvage;
use crate::fault::{Code, Fault, Result};
use crate::fault_points::reach;
use crate::kind::Spec;

/// The name of its file in the data folder.
const FILE: &str = "secret.key";

/// 32 bytes that never leave the process, except to a file that only its owner can read. Nothing displays them.
pub struct Master {
    key: [u8; 32],
    /// True if filters in the folder were keyed with another secret.
    is_foreign: bool,
}

/// What the rest of a folder says about its secret.
pub(super) struct FolderState<'a> {
    /// True for a folder without filters.
    pub(super) is_new: bool,
    /// Fingerprints of the secret with which filters were keyed.
    pub(super) fingerprints: &'a [u64],
}

/// Random bytes from the system.
pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    read.map_err(|error| Fault::new(Code::Io, format!("/dev/urandom: {error}")))?;
    Ok(bytes)
}

impl Master {
    /// A random secret.
    pub fn random() -> Result<Self> {
        Ok(Master { key: random()?, is_foreign: false })
    }

    /// Loads the secret of a data folder, or creates one if the folder has no filters yet. Salvage skips a missing or
    /// different secret.
    pub(super) fn open(folder: &Path, state: &FolderState<'_>, salvage: &mut Salvage) -> Result<Self> {
        let path = folder.join(FILE);
        let wrong = Fault::io(&path);
        let fault = match fs::read(&path) {
            Ok(bytes) => match <[u8; 32]>::try_from(bytes) {
                Ok(key) => {
                    let master = Master { key, is_foreign: false };
                    if state.fingerprints.iter().all(|fingerprint| *fingerprint == master.fingerprint()) {
                        return Ok(master);
                    }
                    salvage.skip(
                        Some(&path),
                        format!("{}: it is not the secret that filters here were keyed with", path.display()),
                    )?;
                    return Ok(Master { is_foreign: true, ..master });
                }
                Err(_) => "a secret has 32 bytes",
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "it is missing",
            Err(error) => return Err(wrong(error)),
        };
        let is_foreign = path.exists() || !state.is_new;
        if is_foreign {
            salvage.skip(Some(&path), format!("{}: {fault}, and keyed filters need it", path.display()))?;
        }
        let master = Master { is_foreign, ..Self::random()? };
        master.write(folder, &path).map_err(&wrong)?;
        Ok(master)
    }

    /// Writes it atomically. A temporary file that a crash leaves behind is replaced.
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
        reach("secret.created", folder)?;
        file.write_all(&self.key)?;
        file.sync_all()?;
        reach("secret.synced", folder)?;
        fs::rename(&temporary, path)?;
        reach("secret.renamed", folder)?;
        File::open(folder)?.sync_all()
    }

    /// True if filters in the folder were keyed with another secret, so that lookups with this one do not find their
    /// keys.
    pub(super) fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// Identifies the secret without revealing it.
    pub(super) fn fingerprint(&self) -> u64 {
        let digest = Sha256::new().chain_update(FINGERPRINT_LABEL).chain_update(self.key).finalize();
        digest.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
    }

    /// The secret of a filter: a hash of this secret and the filter's random seed.
    pub fn secret_of(&self, seed: u64) -> [u8; 16] {
        // All lengths are fixed, so there is no length extension, and HMAC would add nothing.
        let digest = Sha256::new()
            // Frozen, with the project's first name in it: every keyed filter in every data folder depends on it.
            .chain_update(b"bloomery filter secret")
            .chain_update(self.key)
            .chain_update(seed.to_le_bytes());
        let mut secret = [0; 16];
        secret.copy_from_slice(&digest.finalize()[..16]);
        secret
    }

    /// The key hash of a filter.
    pub fn hasher(&self, spec: &Spec) -> KeyHasher {
        if spec.keyed { KeyHasher::keyed(spec.seed, &self.secret_of(spec.seed)) } else { KeyHasher::seeded(spec.seed) }
    }
}
