//! Functions of scripts: found by the names that people write, called on threads of their own, with the powers that the
//! project file grants them.

mod fetch;
mod files;
mod grants;
mod library;
mod powers;

pub use grants::{Grants, HostPattern};
pub use library::{Function, Library, NotFound, Places};
pub use powers::{Answer, Callable, Called, Doings, Hands, Powers, Processes};
