//! Structs whose members are left out of files and reports if they have no content.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// A value that files and reports leave out if it has no content.
pub trait OptionalContent {
    /// Returns true for `None`, `false`, 0, and empty texts and lists.
    fn is_absent(&self) -> bool;
}

macro_rules! optional_content {
    ($($type:ty $([$($generic:ident),+])? => |$value:ident| $is_absent:expr;)+) => {
        $(impl $(<$($generic),+>)? OptionalContent for $type {
            fn is_absent(&self) -> bool {
                let $value = self;
                $is_absent
            }
        })+
    };
}

optional_content! {
    bool => |value| !value;
    usize => |value| *value == 0;
    u32 => |value| *value == 0;
    u64 => |value| *value == 0;
    String => |value| value.is_empty();
    Option<T> [T] => |value| value.is_none();
    Vec<T> [T] => |value| value.is_empty();
    &[T] [T] => |value| value.is_empty();
    serde_json::Map<String, Value> => |value| value.is_empty();
    BTreeMap<K, V> [K, V] => |value| value.is_empty();
}

/// Reads a member that may be `null`, which is not the same as an absent one.
#[doc(hidden)]
pub fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Declares serialisable structs. A member with `?` after its name is left out if it has no
/// [content](OptionalContent).
#[macro_export]
#[doc(hidden)]
macro_rules! optional_members {
    ($(
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident $(<$lifetime:lifetime>)? {$(
            $(#[$member_meta:meta])*
            $member_visibility:vis $member:ident $(? $($never:lifetime)?)?: $type:ty
        ),* $(,)?}
    )+) => {$(
        $(#[$meta])*
        $visibility struct $name $(<$lifetime>)? {$(
            $(#[$member_meta])*
            $(#[serde(default, skip_serializing_if = "hotseat_trace::OptionalContent::is_absent")] $($never)?)?
            $member_visibility $member: $type,
        )*}
    )+};
}
