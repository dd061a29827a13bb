//! The structures of the Arrow C data and stream interfaces (frozen by their specification).

use std::ffi::{c_char, c_int, c_void};

/// `ArrowSchema`.
#[repr(C)]
pub(crate) struct Schema {
    pub(crate) format: *const c_char,
    pub(crate) name: *const c_char,
    pub(crate) metadata: *const c_char,
    pub(crate) flags: i64,
    pub(crate) n_children: i64,
    pub(crate) children: *mut *mut Schema,
    pub(crate) dictionary: *mut Schema,
    pub(crate) release: Option<unsafe extern "C" fn(*mut Schema)>,
    pub(crate) private_data: *mut c_void,
}

/// `ArrowArray`.
#[repr(C)]
pub(crate) struct Array {
    pub(crate) length: i64,
    pub(crate) null_count: i64,
    pub(crate) offset: i64,
    pub(crate) n_buffers: i64,
    pub(crate) n_children: i64,
    pub(crate) buffers: *mut *const c_void,
    pub(crate) children: *mut *mut Array,
    pub(crate) dictionary: *mut Array,
    pub(crate) release: Option<unsafe extern "C" fn(*mut Array)>,
    pub(crate) private_data: *mut c_void,
}

/// `ArrowArrayStream`.
#[repr(C)]
pub(crate) struct Stream {
    pub(crate) get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int>,
    pub(crate) get_next: Option<unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int>,
    pub(crate) get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    pub(crate) release: Option<unsafe extern "C" fn(*mut Stream)>,
    pub(crate) private_data: *mut c_void,
}

macro_rules! owned {
    ($T:ty) => {
        impl $T {
            /// An empty structure for a producer to fill.
            pub(crate) const fn empty() -> Self {
                // SAFETY: of numbers, pointers and optional functions, all of which may be zero.
                unsafe { std::mem::zeroed() }
            }
        }

        impl Drop for $T {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: a structure with `release` set is alive and owned by us; the
                    // producer's callback frees it and clears `release`.
                    unsafe { release(self) }
                }
            }
        }

        // SAFETY: the interface lets a consumer move a structure and release it on any thread.
        unsafe impl Send for $T {}
        // SAFETY: shared use reads only.
        unsafe impl Sync for $T {}
    };
}

owned!(Schema);
owned!(Array);
owned!(Stream);
