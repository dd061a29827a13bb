//! What the fuzz targets share: files whose checksums hold again, and everything that a structure can do.

pub mod file;
pub mod forms;
pub mod memory;
pub mod structures;
