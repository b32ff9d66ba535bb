//! How the members of an event are declared, so that each struct below is nothing but its fields.

use std::sync::Arc;

/// What every set of members can say of itself.
pub(crate) trait Members {
    /// The turn the event belongs to, where it belongs to one.
    fn turn_id(&self) -> Option<&Arc<str>>;

    /// The same, to be changed.
    fn turn_id_mut(&mut self) -> Option<&mut Arc<str>>;
}

/// Declares the members of event types; all are written in camel case.
///
/// `turn` gives each the turn it belongs to, `loose` a turn that may be missing, `free` none.
macro_rules! members {
    (turn { $($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty),* $(,)? })+ }) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
            #[serde(rename_all = "camelCase")]
            pub struct $name {
                /// The turn it belongs to.
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
                /// The turn it belongs to, where it is the work of one.
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
