//! A file as input: as it is, under a header's checksum that holds, and repaired.

use crate::{file, structures};

/// Calls `check` with each form of `data` until one is sound; `check` returns whether header and checksums are.
pub fn check_each(data: &[u8], check: impl Fn(&[u8]) -> bool) {
    let mut given = data.to_vec();
    if check(data) {
        file::repair(&mut given);
        // A repair that leaves files that nobody accepts would make all that follows a test of nothing.
        assert!(structures::is_sound(&given), "a sound file is refused after its repair");
        return;
    }
    file::seal(&mut given);
    if given == data || !check(&given) {
        file::repair(&mut given);
        check(&given);
    }
}

/// The file of this process at which what opens files finds `data`.
pub fn write(data: &[u8]) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("fullbloom-fuzz-{}", std::process::id()));
    std::fs::write(&path, data).expect("a folder for temporary files");
    path
}
