//! Enumerations whose variants have names.

/// Declares an enumeration without data, with the name of each variant in files and reports.
#[macro_export]
#[doc(hidden)]
macro_rules! named {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $type:ident {
            $($(#[$doc:meta])* $variant:ident = $name:literal,)+
        }
    ) => {
        $(#[$meta])*
        $visibility enum $type {
            $($(#[$doc])* $variant,)+
        }

        #[allow(dead_code, reason = "some names are only written, and some only read")]
        impl $type {
            /// All variants.
            $visibility const ALL: &'static [$type] = &[$($type::$variant),+];

            /// Names of all variants.
            $visibility const NAMES: &'static [&'static str] = &[$($name),+];

            /// Returns the variant with this name.
            $visibility fn from_name(name: &str) -> Option<$type> {
                match name {
                    $($name => Some($type::$variant),)+
                    _ => None,
                }
            }

            /// The name in files and reports.
            $visibility const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

/// Declares an enumeration whose variants may have data, with the name of each variant in files and reports.
#[macro_export]
#[doc(hidden)]
macro_rules! named_variants {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $type:ident {$(
            $(#[$doc:meta])*
            $variant:ident $(($($content:tt)*))? $({$($members:tt)*})? = $name:literal,
        )+}
    ) => {
        $(#[$meta])*
        $visibility enum $type {$(
            $(#[$doc])*
            $variant $(($($content)*))? $({$($members)*})?,
        )+}

        impl $type {
            /// Names of all variants.
            $visibility const NAMES: &'static [&'static str] = &[$($name),+];

            /// Returns the name of the variant in files, events and reports.
            $visibility const fn name(&self) -> &'static str {
                match self {
                    $($type::$variant { .. } => $name,)+
                }
            }
        }
    };
}
