//! A limit on memory: what a hostile input makes a structure ask for is refused, as on a machine without it.

use std::ffi::c_int;

/// What a target may map beyond what the process has when it starts.
const ROOM: u64 = 256 << 20;

const RLIMIT_AS: c_int = 9;

#[repr(C)]
struct Limit {
    soft: u64,
    hard: u64,
}

unsafe extern "C" {
    fn setrlimit(resource: c_int, limit: *const Limit) -> c_int;
}

/// Sets the limit; an allocation beyond it fails, and one that is infallible aborts and is found.
pub fn limit() {
    limit_to(ROOM);
}

/// [`limit`] to so many bytes: threads take 136 MB of addresses each, for their stack and what they allocate.
pub fn limit_to(room: u64) {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let Some(pages) = status.split(' ').next().and_then(|pages| pages.parse::<u64>().ok()) else { return };
    let bytes = pages * 4096 + room;
    // SAFETY: the structure is as the C library declares it, and lives for the call.
    let _ = unsafe { setrlimit(RLIMIT_AS, &Limit { soft: bytes, hard: bytes }) };
}
