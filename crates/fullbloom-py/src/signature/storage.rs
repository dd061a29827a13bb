//! Indexes to and from files and bytes, and copies.

use std::path::{Path, PathBuf};

use fullbloom_core::container::file::OpenFile;
use fullbloom_core::container::{Container, SIGNATURES};
use fullbloom_core::error::Result;
use fullbloom_core::key::KeyHasher;
use fullbloom_core::signature::SignatureIndex as Index;
use fullbloom_core::signature::file::Conditions;
use pyo3::prelude::*;

use super::SignatureIndex;
use crate::files::OpenOptions;
use crate::locking::biased_lock::BiasedLock;
use crate::stored::{Stored, stored_methods};

fn conditions(wanted: &OpenOptions) -> Conditions<'_> {
    Conditions { verify: wanted.verify, secret: wanted.secret.as_ref(), max_bytes: wanted.max_bytes }
}

impl Stored for SignatureIndex {
    type Value = Index;
    const VARIANT: u16 = SIGNATURES;

    fn wrap(index: Index, path: Option<PathBuf>, _: u64) -> Self {
        SignatureIndex { path, ..Self::wrap(index) }
    }
    fn lock(&self) -> &BiasedLock<Index> {
        &self.lock
    }
    fn hasher(&self) -> Option<&KeyHasher> {
        Some(&self.hasher)
    }
    fn read(bytes: &[u8], wanted: &OpenOptions) -> Result<Index> {
        Index::from_file(bytes, conditions(wanted))
    }
    fn open(file: &OpenFile, path: &Path, wanted: &OpenOptions) -> Result<Index> {
        Index::open(file, path, conditions(wanted))
    }
    fn with_container(index: &Index, take: &mut dyn FnMut(&Container<'_>) -> Result<()>) -> Result<()> {
        index.with_container(take)
    }
    fn save(index: &Index, path: &Path) -> Result<()> {
        index.save(path)
    }
    fn duplicate(index: &Index) -> Result<Index> {
        index.try_clone()
    }
}

stored_methods!(SignatureIndex);
