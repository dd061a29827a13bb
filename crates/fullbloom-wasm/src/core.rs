//! Everything that this crate uses of the core: the only file that names its modules. The types of structures come from
//! the registry, in `kind.rs`.

pub(crate) use fullbloom_core::Error;
pub(crate) use fullbloom_core::chain::cascade::{LevelKind, Plan, common};
pub(crate) use fullbloom_core::container::unreadable;
pub(crate) use fullbloom_core::container::{Container, ContainerIndex, Verify};
pub(crate) use fullbloom_core::entries::Entries;
pub(crate) use fullbloom_core::key::number::NumberBytes;
pub(crate) use fullbloom_core::key::{Domain, KeyDomains, KeyHasher, PART_HEADER, end_part, float_bits};
pub(crate) use fullbloom_core::registry::{VARIANTS, Variant, by_id};
pub(crate) use fullbloom_core::structure::declaration::Parameter;
pub(crate) use fullbloom_core::structure::opening::OpenOptions;
pub(crate) use fullbloom_core::structure::records::{RecordSet, Records};
pub(crate) use fullbloom_core::structure::{Countable, Declared, Filter, Job, Mergeable, Positioned, Removable, Value};
