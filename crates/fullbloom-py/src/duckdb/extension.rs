//! What a database gets when it is opened: the function `bloom_contains` for each type of keys, and `fullbloom_database`.

use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::api::{Access, Api, Descriptor, Execute, Handle, SUCCESS};
use super::database::{Database, Overload};
use super::lookup;
use super::types::{BOOLEAN, KEY_TYPES, UBIGINT, VARCHAR};

/// Whether databases that are opened get the function.
pub(super) static ENABLED: AtomicBool = AtomicBool::new(true);

/// Registers the extension with the library at a path; false if it lacks what that needs. Registering it again does
/// nothing.
pub(super) fn register(path: &str) -> bool {
    // SAFETY: DuckDB calls the function now, and again for each database; it is never unloaded.
    Api::load(path).is_some_and(|api| unsafe { (api.register_static_extension)(describe) } == 0)
}

/// Never fails: a failure would keep every database from being opened.
unsafe extern "C" fn describe(descriptor: *mut Descriptor) -> i32 {
    // SAFETY: DuckDB passes a descriptor of the layout `version` or a later one, each of which begins as the first does.
    let descriptor = unsafe { &mut *descriptor };
    descriptor.version = 1;
    descriptor.name = c"fullbloom".as_ptr();
    descriptor.extension_version = concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast();
    descriptor.api_version = c"v1.5.6".as_ptr();
    descriptor.entry = Some(open);
    0
}

/// Adds the functions to a database that is opened. Never fails: without them, the function is that of Python.
unsafe extern "C" fn open(info: Handle, access: *const Access) -> bool {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if !ENABLED.load(Ordering::Relaxed) {
            return;
        }
        let Some(api) = Api::get() else { return };
        // SAFETY: DuckDB passes its functions and the database, which lives until this one returns.
        unsafe {
            let database = ((*access).get_database)(info);
            let mut connection = null_mut();
            if database.is_null() || (api.connect)(*database, &mut connection) != SUCCESS {
                return;
            }
            add_functions(api, connection);
            (api.disconnect)(&mut connection);
        }
    }));
    true
}

/// Adds the functions.
///
/// # Safety
/// `connection` must be a connection of `api`.
unsafe fn add_functions(api: &Api, connection: Handle) {
    let database = Database::create();
    for keys in &KEY_TYPES {
        let overload = Overload { database: Arc::clone(&database), keys };
        // SAFETY: the caller's promise; the callbacks are those of this signature.
        unsafe {
            add_function(api, connection, c"bloom_contains", &[VARCHAR, keys.id], BOOLEAN, lookup::look_up, overload)
        };
    }
    let overload = Overload { database, keys: &KEY_TYPES[0] };
    // SAFETY: as above.
    unsafe { add_function(api, connection, c"fullbloom_database", &[], UBIGINT, lookup::return_number, overload) };
}

/// Adds one function. DuckDB frees its data, also if it refuses the function.
///
/// # Safety
/// `connection` must be a connection of `api`, and `execute` read arguments of the types `parameters` and write a result of
/// the type `result`.
unsafe fn add_function(
    api: &Api,
    connection: Handle,
    name: &CStr,
    parameters: &[c_int],
    result: c_int,
    execute: Execute,
    overload: Overload,
) {
    // SAFETY: handles that DuckDB returned, each destroyed once.
    unsafe {
        let with_type = |id: c_int, add: unsafe extern "C" fn(Handle, Handle), function: Handle| {
            let mut logical_type = (api.create_logical_type)(id);
            add(function, logical_type);
            (api.destroy_logical_type)(&mut logical_type);
        };
        let mut function = (api.create_scalar_function)();
        (api.scalar_function_set_name)(function, name.as_ptr());
        for &parameter in parameters {
            with_type(parameter, api.scalar_function_add_parameter, function);
        }
        with_type(result, api.scalar_function_set_return_type, function);
        (api.scalar_function_set_special_handling)(function);
        let overload = Box::into_raw(Box::new(overload)).cast();
        (api.scalar_function_set_extra_info)(function, overload, free_overload);
        (api.scalar_function_set_init)(function, lookup::begin);
        (api.scalar_function_set_function)(function, execute);
        (api.register_scalar_function)(connection, function);
        (api.destroy_scalar_function)(&mut function);
    }
}

unsafe extern "C" fn free_overload(overload: *mut c_void) {
    // SAFETY: created in `add_function`, and freed once.
    let overload = unsafe { Box::from_raw(overload.cast::<Overload>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(overload)));
}
