//! [`Kind`]: any structure of the registry behind one trait, so that the store and its commands name no structure.
//!
//! * `traits`: the trait; `keying`: how texts become keys; `rows`: the kinds by name; `create`: filters by name;
//!   `sections`: parts of their files;
//! * `declared`: the trait for each row of the registry, with the operations of its capabilities;
//! * [`foreign`]: the trait for the filters of RedisBloom, and their dump format; [`bank`]: the trait for banks;
//! * [`note`]: a small text, which is not a filter;
//! * [`spec`]: the parameters of a filter; [`settings`]: how the service treats it.

use fullbloom_core::key::KeyDomains;

use crate::fault::Result;

/// Methods that only call the method of the same name of `$Owner`.
macro_rules! forward {
    ($Owner:ident: $($name:ident -> $Result:ty),*) => {
        $(fn $name(&self) -> $Result {
            $Owner::$name(self)
        })*
    };
}

pub mod bank;
mod create;
mod declared;
pub mod foreign;
mod keying;
pub mod note;
mod rows;
mod sections;
pub mod settings;
pub mod spec;
mod traits;

pub use create::{create, load, nbytes_for, open};
pub use foreign::DumpFormat;
pub use keying::{Keying, Words};
pub use note::Note;
pub use rows::{by_name, by_role, registry_row, takes_secret};
pub use settings::{Flavour, Settings};
pub use spec::Spec;
pub use traits::Kind;

/// The result of [`Kind::values`] for a key; `None` for a key that has no value.
pub fn value_if_present(filter: &dyn Kind, hash: u64, value: u64) -> Option<u64> {
    (value != 0 || !filter.lacks_value(hash)).then_some(value)
}

/// Adds `keys` keys with `work` and records their domains. After a fault, records them if any key was added before the
/// refused one.
pub fn add_recorded(
    filter: &mut dyn Kind,
    domains: KeyDomains,
    keys: usize,
    work: impl FnOnce(&mut dyn Kind) -> Result<()>,
) -> Result<()> {
    let before = filter.num_added();
    let done = work(filter);
    if keys > 0 && (done.is_ok() || filter.num_added() != before) {
        filter.record(domains);
    }
    done
}
