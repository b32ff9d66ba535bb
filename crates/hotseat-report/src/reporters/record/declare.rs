//! Declares records.

/// Declares serialisable records, each with the function `new` that makes it: a member is declared once, with its value,
/// which may use the arguments of `new` and what is computed before `=>`. A member with `?` after its name is left out
/// if it has no content.
macro_rules! records {
    ($(
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident $(<$lifetime:lifetime>)? ($($argument:ident: $argument_type:ty),*)
        $({ $($before:tt)* })? => {$(
            $(#[$member_meta:meta])*
            $member:ident $(? $($never:lifetime)?)?: $type:ty = $value:expr
        ),* $(,)?}
    )+) => {$(
        hotseat_trace::optional_members! {
            $(#[$meta])*
            #[derive(Debug, serde::Serialize)]
            #[allow(missing_docs, reason = "members have the names that reports show")]
            $visibility struct $name $(<$lifetime>)? {
                $($(#[$member_meta])* pub $member $(? $($never)?)?: $type,)*
            }
        }

        impl $(<$lifetime>)? $name $(<$lifetime>)? {
            /// Creates the record.
            pub fn new($($argument: $argument_type),*) -> Self {
                $($($before)*)?
                $name { $($member: $value,)* }
            }
        }
    )+};
}
pub(crate) use records;
