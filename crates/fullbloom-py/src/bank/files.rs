//! Banks to and from files and bytes, and copies.

use std::path::{Path, PathBuf};

use fullbloom_core::bank::FilterBank as Core;
use fullbloom_core::container::file::OpenFile;
use fullbloom_core::container::{BANK, Container};
use fullbloom_core::error::Result;
use fullbloom_core::key::KeyHasher;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::FilterBank;
use crate::files::OpenOptions;
use crate::locking::biased_lock::BiasedLock;
use crate::stored::{Stored, stored_methods};

impl Stored for FilterBank {
    type Value = Core;
    const VARIANT: u16 = BANK;

    fn wrap(bank: Core, path: Option<PathBuf>, max_bytes: u64) -> Self {
        FilterBank { path, ..Self::wrap(bank, max_bytes) }
    }
    fn lock(&self) -> &BiasedLock<Core> {
        &self.lock
    }
    fn hasher(&self) -> Option<&KeyHasher> {
        Some(&self.hasher)
    }
    fn max_bytes(&self) -> u64 {
        self.max_bytes
    }
    fn read(bytes: &[u8], wanted: &OpenOptions) -> Result<Core> {
        Core::from_bytes(bytes, wanted)
    }
    fn open(file: &OpenFile, path: &Path, wanted: &OpenOptions) -> Result<Core> {
        Core::open(file, path, wanted)
    }
    fn check(bank: &Core) -> Result<()> {
        bank.check_mapped()
    }
    fn with_container(bank: &Core, take: &mut dyn FnMut(&Container<'_>) -> Result<()>) -> Result<()> {
        take(&bank.container())
    }
    fn save(bank: &Core, path: &Path) -> Result<()> {
        bank.save(path)
    }
    fn duplicate(bank: &Core) -> Result<Core> {
        bank.try_clone()
    }
}

stored_methods!(FilterBank);

#[pymethods]
impl FilterBank {
    /// The 16 bytes that secret=True drew: see BloomFilter.take_secret.
    #[pyo3(signature = () -> "bytes")]
    fn take_secret<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        crate::secrets::take_secret(py, &self.hasher)
    }
}
