//! Methods of builders.

/// Declares methods of a builder: each changes one thing, and returns the builder.
#[macro_export]
#[doc(hidden)]
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($self:ident $(, $argument:ident: $type:ty)*) => $change:expr;)+) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $name(mut $self $(, $argument: $type)*) -> Self {
                $change;
                $self
            }
        )+
    };
}
