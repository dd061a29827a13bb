//! The parameters of each constructor, by the number of its row.

use fullbloom_core::structure::Declared;
use fullbloom_core::structure::declaration::Parameter;

/// [`of`], by a row each.
macro_rules! parameters {
    ({} $({
        $ID:ident = $number:literal, $module:ident $name:literal, $family:ident::$Class:ident;
        $($rest:tt)*
    })*) => {
        /// Parameters of the constructor of structure `variant`; none where this release has no such structure.
        pub(crate) fn of(variant: u16) -> &'static [Parameter] {
            match variant {
                $($number => fullbloom_core::$family::$Class::PARAMETERS,)*
                _ => &[],
            }
        }
    };
}
fullbloom_core::variants!(parameters! {});
