//! DuckDB's C interface, version 1, as far as it is used: functions of the library that Python has loaded, found by name.
//!
//! Every function is marked as stable in DuckDB's header `duckdb.h` (`duckdb_static_extension.h` for the first). A library
//! that lacks one of them gets no extension.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::OnceLock;

/// Handles of DuckDB: pointers to what only DuckDB reads.
pub(super) type Handle = *mut c_void;
/// Frees data of this module.
pub(super) type Destroy = unsafe extern "C" fn(*mut c_void);
/// One call of a scalar function: its info, its arguments, its result.
pub(super) type Execute = unsafe extern "C" fn(Handle, Handle, Handle);
/// Called for each thread that begins to execute a scalar function.
pub(super) type Initialize = unsafe extern "C" fn(Handle);
/// Describes an extension; 0 for success.
pub(super) type Describe = unsafe extern "C" fn(*mut Descriptor) -> i32;

/// `duckdb_state`: success.
pub(super) const SUCCESS: c_int = 0;

/// The first layout of `duckdb_extension_descriptor`, which DuckDB allocates and clears.
#[repr(C)]
pub(super) struct Descriptor {
    /// In: the last layout that DuckDB knows. Out: the layout that was filled.
    pub(super) version: u32,
    _set_error: *const c_void,
    _internal: *const c_void,
    pub(super) name: *const c_char,
    pub(super) extension_version: *const c_char,
    pub(super) api_version: *const c_char,
    _entry_cpp: *const c_void,
    pub(super) entry: Option<unsafe extern "C" fn(Handle, *const Access) -> bool>,
    _entry_v2: *const c_void,
}

/// `duckdb_extension_access`, which the entry of an extension gets.
#[repr(C)]
pub(super) struct Access {
    _set_error: *const c_void,
    /// The database that is opened.
    pub(super) get_database: unsafe extern "C" fn(Handle) -> *mut Handle,
    _get_api: *const c_void,
}

/// Declares the functions and finds them.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions, without the prefix `duckdb_`.
        pub(super) struct Api {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Api {
            fn find(library: &Library) -> Option<Self> {
                Some(Api {
                    $($name: {
                        let found = library.find(concat!("duckdb_", stringify!($name)))?;
                        // SAFETY: a function that DuckDB's header declares with this signature.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) $(-> $result)?>(found)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    register_static_extension: fn(Describe) -> i32;
    connect: fn(Handle, *mut Handle) -> c_int;
    disconnect: fn(*mut Handle);
    create_logical_type: fn(c_int) -> Handle;
    destroy_logical_type: fn(*mut Handle);
    create_scalar_function: fn() -> Handle;
    destroy_scalar_function: fn(*mut Handle);
    scalar_function_set_name: fn(Handle, *const c_char);
    scalar_function_add_parameter: fn(Handle, Handle);
    scalar_function_set_return_type: fn(Handle, Handle);
    scalar_function_set_special_handling: fn(Handle);
    scalar_function_set_extra_info: fn(Handle, *mut c_void, Destroy);
    scalar_function_set_function: fn(Handle, Execute);
    scalar_function_set_init: fn(Handle, Initialize);
    register_scalar_function: fn(Handle, Handle) -> c_int;
    scalar_function_get_extra_info: fn(Handle) -> *mut c_void;
    scalar_function_init_set_state: fn(Handle, *mut c_void, Destroy);
    scalar_function_get_state: fn(Handle) -> *mut c_void;
    scalar_function_set_error: fn(Handle, *const c_char);
    data_chunk_get_size: fn(Handle) -> u64;
    data_chunk_get_vector: fn(Handle, u64) -> Handle;
    vector_get_data: fn(Handle) -> *mut c_void;
    vector_get_validity: fn(Handle) -> *mut u64;
    vector_ensure_validity_writable: fn(Handle);
}

static API: OnceLock<Option<Api>> = OnceLock::new();

impl Api {
    /// The functions of the library at `path`, if it is loaded and has all of them. The first library remains in use.
    pub(super) fn load(path: &str) -> Option<&'static Self> {
        API.get_or_init(|| Library::loaded(path).and_then(|library| Api::find(&library))).as_ref()
    }

    /// The functions that were loaded.
    pub(super) fn get() -> Option<&'static Self> {
        API.get().and_then(Option::as_ref)
    }
}

/// A library that the process has loaded; it stays loaded.
struct Library(*mut c_void);

impl Library {
    /// The function of a name.
    fn find(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: a handle of a loaded library, and a text that ends.
        let found = unsafe { system::find(self.0, &name) };
        (!found.is_null()).then_some(found)
    }

    /// The library at a path, unless it is not loaded yet.
    fn loaded(path: &str) -> Option<Self> {
        let path = CString::new(path).ok()?;
        // SAFETY: a text that ends; nothing is loaded, so no code of the file runs.
        let library = unsafe { system::find_library(&path) };
        (!library.is_null()).then_some(Library(library))
    }
}

/// The function of a name in any library of the process.
pub(super) fn find_in_process(name: &str) -> Option<*mut c_void> {
    Library(system::WHOLE_PROCESS).find(name)
}

/// The dynamic linker.
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod system {
    use std::ffi::{CStr, c_char, c_int, c_void};

    unsafe extern "C" {
        fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }

    /// `RTLD_LAZY | RTLD_NOLOAD`.
    const LOADED: c_int = if cfg!(target_os = "macos") { 0x1 | 0x10 } else { 0x1 | 0x4 };
    /// `RTLD_DEFAULT`: all libraries of the process.
    pub(super) const WHOLE_PROCESS: *mut c_void = if cfg!(target_os = "macos") {
        std::ptr::without_provenance_mut(-2isize as usize)
    } else {
        std::ptr::null_mut()
    };

    /// The loaded library at `path`, or null.
    ///
    /// # Safety
    /// None beyond the text, which ends.
    pub(super) unsafe fn find_library(path: &CStr) -> *mut c_void {
        // SAFETY: POSIX's declaration.
        unsafe { dlopen(path.as_ptr(), LOADED) }
    }

    /// The symbol of a name, or null.
    ///
    /// # Safety
    /// `library` must be one of [`find_library`], or [`WHOLE_PROCESS`].
    pub(super) unsafe fn find(library: *mut c_void, name: &CStr) -> *mut c_void {
        // SAFETY: the caller's promise.
        unsafe { dlsym(library, name.as_ptr()) }
    }
}

/// Elsewhere no library is found, and the function stays that of Python.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod system {
    use std::ffi::{CStr, c_void};

    pub(super) const WHOLE_PROCESS: *mut c_void = std::ptr::null_mut();

    /// None.
    ///
    /// # Safety
    /// None.
    pub(super) unsafe fn find_library(_path: &CStr) -> *mut c_void {
        std::ptr::null_mut()
    }

    /// None.
    ///
    /// # Safety
    /// None.
    pub(super) unsafe fn find(_library: *mut c_void, _name: &CStr) -> *mut c_void {
        std::ptr::null_mut()
    }
}
