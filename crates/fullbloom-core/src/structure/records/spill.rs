//! [`Spill`]: records that did not fit in memory, in a temporary file that has no name.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::lane::{BUCKETS, Record};
use crate::cells::allocation::reserve;
use crate::error::{Error, Result, display_name};
use crate::parallel::workers;

/// Records on disk, by bucket.
pub(super) struct Spill {
    file: Mutex<File>,
    folder: PathBuf,
    end: u64,
    /// First byte and number of records of each run.
    runs: Vec<VecDeque<(u64, usize)>>,
}

/// An error of the file, named by its folder, since it has no name.
fn wrap_error(folder: &Path) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::Io(error, format!("{}: the temporary file of a build", display_name(folder)).into())
}

impl Spill {
    /// Empty, in the folder for temporary files.
    pub(super) fn new() -> Result<Self> {
        let folder = std::env::temp_dir();
        let file = tempfile::tempfile_in(&folder).map_err(|error| Error::io(error, &folder))?;
        let runs = (0..BUCKETS).map(|_| VecDeque::new()).collect();
        Ok(Spill { file: Mutex::new(file), folder, end: 0, runs })
    }

    /// Writes the records of all buckets, which are empty then.
    pub(super) fn write<const W: usize>(&mut self, buckets: &mut [Vec<Record<W>>]) -> Result<()> {
        let mut bytes = Vec::new();
        for (bucket, runs) in buckets.iter_mut().zip(&mut self.runs) {
            if bucket.is_empty() {
                continue;
            }
            bytes.clear();
            reserve(&mut bytes, size_of_val(bucket.as_slice()))?;
            bytes.extend(bucket.iter().flatten().flat_map(|word| word.to_le_bytes()));
            workers::lock(&self.file).write_all(&bytes).map_err(wrap_error(&self.folder))?;
            runs.push_back((self.end, bucket.len()));
            self.end += bytes.len() as u64;
            bucket.clear();
        }
        Ok(())
    }

    /// Number of records of a bucket.
    pub(super) fn count(&self, bucket: usize) -> usize {
        self.runs[bucket].iter().map(|run| run.1).sum()
    }

    /// Appends the records of a bucket to `out`.
    pub(super) fn read<const W: usize>(&self, bucket: usize, out: &mut Vec<Record<W>>) -> Result<()> {
        reserve(out, self.count(bucket))?;
        let mut bytes = Vec::new();
        for &(start, records) in &self.runs[bucket] {
            let len = records * size_of::<Record<W>>();
            bytes.clear();
            reserve(&mut bytes, len)?;
            bytes.resize(len, 0);
            let mut file = workers::lock(&self.file);
            file.seek(SeekFrom::Start(start))
                .and_then(|_| file.read_exact(&mut bytes))
                .map_err(wrap_error(&self.folder))?;
            drop(file);
            let mut words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
            out.extend((0..records).map(|_| std::array::from_fn(|_| words.next().unwrap_or(0))));
        }
        Ok(())
    }
}
