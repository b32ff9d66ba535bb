//! Macro that declares payload structs by their fields.

use std::sync::Arc;

/// Operations shared by all payload structs.
pub(crate) trait Members {
    /// Returns the turn of the event, if any.
    fn turn_id(&self) -> Option<&Arc<str>>;

    /// Returns the turn of the event, if any, for modification.
    fn turn_id_mut(&mut self) -> Option<&mut Arc<str>>;
}

/// Declares payload structs, serialised in camel case.
///
/// `turn` adds the id of the turn, `loose` an optional turn id, `free` none. A member with `?` after its name is left
/// out if it has no content.
macro_rules! members {
    (turn { $($structs:tt)+ }) => {
        members! {
            @declare
            { #[doc = "Turn of the event."] pub turn_id: Arc<str>, }
            |payload| Some(&payload.turn_id), Some(&mut payload.turn_id);
            $($structs)+
        }
    };
    (loose { $($structs:tt)+ }) => {
        members! {
            @declare
            {
                #[doc = "Turn of the event, if it belongs to one."]
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub turn_id: Option<Arc<str>>,
            }
            |payload| payload.turn_id.as_ref(), payload.turn_id.as_mut();
            $($structs)+
        }
    };
    (free { $($structs:tt)+ }) => {
        members! { @declare {} |_payload| None, None; $($structs)+ }
    };
    (
        @declare $turn_id:tt |$payload:ident| $get:expr, $get_mut:expr;
        $($(#[$doc:meta])* $name:ident { $($fields:tt)* })+
    ) => {
        $(members! { @struct $turn_id |$payload| $get, $get_mut; $(#[$doc])* $name { $($fields)* } })+
    };
    (
        @struct { $($turn_id:tt)* } |$payload:ident| $get:expr, $get_mut:expr;
        $(#[$doc:meta])*
        $name:ident { $($(#[$fdoc:meta])* $field:ident $(? $($never:lifetime)?)?: $ty:ty),* $(,)? }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $($turn_id)*
            $(
                $(#[$fdoc])*
                $(#[serde(default, skip_serializing_if = "hotseat_trace::OptionalContent::is_absent")] $($never)?)?
                pub $field: $ty,
            )*
        }

        impl super::members::Members for $name {
            fn turn_id(&self) -> Option<&Arc<str>> {
                let $payload = self;
                $get
            }

            fn turn_id_mut(&mut self) -> Option<&mut Arc<str>> {
                let $payload = self;
                $get_mut
            }
        }
    };
}

pub(crate) use members;
