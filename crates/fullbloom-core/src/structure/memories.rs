//! [`memory_methods!`]: methods that follow from the memories that hold the cells of a structure.

/// The methods of [`crate::structure::Filter`] that follow from a field `hasher` and the named memories:
///
/// ```text
/// memory_methods! { DELETABLE, Scheme::Mcg as u16, load; bits: BITS, flags: COLLISIONS }
/// ```
///
/// Arguments: the number of the structure and of its scheme; `load` if files contain a field `load` besides the
/// declared fields; each memory with the kind of its section; and a condition. Two structures are equal if they could
/// be merged, their cells are equal and the condition, if given, holds. After `@`, for a handwritten `container`,
/// memories come without kinds.
macro_rules! memory_methods {
    ($VARIANT:expr, $scheme:expr $(, $load:ident)?; $($memory:ident: $KIND:ident),+ $(; $same:expr)?) => {
        crate::structure::memories::memory_methods! { @ $($memory),+ $(; $same)? }

        fn container(&self) -> crate::container::Container<'_> {
            use crate::container::{Container, Header, Section, kind};
            let mut header = Header::new($VARIANT, $scheme, &self.hasher);
            $(self.$load.describe(&mut header, 0);)?
            crate::structure::Declared::describe(self, &mut header);
            let sections = vec![$(Section::of(kind::$KIND, &self.$memory)),+];
            Container { header, sections }
        }
    };
    (@ $($memory:ident),+ $(; $same:expr)?) => {
        fn hasher(&self) -> &crate::key::KeyHasher {
            &self.hasher
        }

        fn hasher_mut(&mut self) -> &mut crate::key::KeyHasher {
            &mut self.hasher
        }

        fn nbytes(&self) -> u64 {
            [$(self.$memory.len_bytes() as u64),+].iter().sum()
        }

        fn try_clone(&self) -> crate::Result<Self> {
            Ok(Self { $($memory: self.$memory.try_clone()?,)+ ..*self })
        }

        fn same_as(&self, other: &Self) -> bool {
            crate::structure::Declared::differences(self, other).check().is_ok()
                $(&& self.$memory.words() == other.$memory.words())+
                $(&& { let condition: fn(&Self, &Self) -> bool = $same; condition(self, other) })?
        }
    };
}

/// [`crate::structure::Addable::clear`] of a structure with a field `load`: zeroes memories and resets a field.
macro_rules! clear_method {
    ($($memory:ident),+ $(; $field:ident = $empty:expr)?) => {
        fn clear(&mut self) -> crate::Result<()> {
            $(self.$memory.writable()?.fill(0);)+
            self.load.clear();
            $(self.$field = $empty;)?
            Ok(())
        }
    };
}

pub(crate) use {clear_method, memory_methods};
