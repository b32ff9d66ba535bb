//! What people write, turned into data that still knows where it was written.
//!
//! A file becomes [`Source`] chunks (one per document), a chunk becomes a tree of [`Node`]s, the tree is
//! [checked](check()) against a [`Shape`] with every mistake reported at once, and a [`View`] or [`Map`] reads
//! what passed. Nothing here knows what a case is: the shapes are given by those who do. The tree does not
//! remember which syntax it came from either; [`yaml`] and [`json`] are two ways to make it.

mod check;
mod diagnostic;
mod duplicates;
pub mod json;
mod node;
mod place;
mod reader;
mod schema;
mod secrets;
mod shape;
mod stream;
pub mod yaml;

pub use check::{check, nearest};
pub use diagnostic::visible_char;
pub use diagnostic::{Diagnostic, Diagnostics, MAX_SHOWN_DIAGNOSTICS};
pub use node::{Entry, Key, Node, Value, shorten};
pub use place::{Place, Source};
pub use reader::{Map, View};
pub use schema::{json_schema, reference_markdown};
pub use secrets::{address_password, is_secret_header, is_secret_name};
pub use shape::{Field, Kind, Shape, Tagged};
