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
/// `turn` adds the id of the turn, `loose` an optional turn id, `free` none.
macro_rules! members {
    (turn { $($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty),* $(,)? })+ }) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
            #[serde(rename_all = "camelCase")]
            pub struct $name {
                /// Turn of the event.
                pub turn_id: Arc<str>,
                $($(#[$fdoc])* pub $field: $ty,)*
            }

            impl super::members::Members for $name {
                fn turn_id(&self) -> Option<&Arc<str>> {
                    Some(&self.turn_id)
                }

                fn turn_id_mut(&mut self) -> Option<&mut Arc<str>> {
                    Some(&mut self.turn_id)
                }
            }
        )+
    };
    (loose { $($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty),* $(,)? })+ }) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
            #[serde(rename_all = "camelCase")]
            pub struct $name {
                /// Turn of the event, if it belongs to one.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub turn_id: Option<Arc<str>>,
                $($(#[$fdoc])* pub $field: $ty,)*
            }

            impl super::members::Members for $name {
                fn turn_id(&self) -> Option<&Arc<str>> {
                    self.turn_id.as_ref()
                }

                fn turn_id_mut(&mut self) -> Option<&mut Arc<str>> {
                    self.turn_id.as_mut()
                }
            }
        )+
    };
    (free { $($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty),* $(,)? })+ }) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
            #[serde(rename_all = "camelCase")]
            pub struct $name {
                $($(#[$fdoc])* pub $field: $ty,)*
            }

            impl super::members::Members for $name {
                fn turn_id(&self) -> Option<&Arc<str>> {
                    None
                }

                fn turn_id_mut(&mut self) -> Option<&mut Arc<str>> {
                    None
                }
            }
        )+
    };
}

pub(crate) use members;
