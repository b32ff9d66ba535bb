//! Reads YAML and JSON documents as data that keeps its source locations.
//!
//! A file becomes [`SourceText`] chunks (one per document), a chunk becomes a tree of [`DocumentNode`]s, the tree is
//! [validated](check()) against a [`Shape`] with all errors reported at once, and a [`NodeView`] or [`MapView`] reads
//! the validated tree. This crate does not know what a case is: callers define the shapes. [`yaml`] and
//! [`json`] are two parsers for the same tree.

mod check;
mod declare;
mod diagnostic;
mod duplicates;
mod excerpt;
mod file;
pub mod json;
mod last_output;
mod nearest;
mod node;
mod place;
mod position_index;
mod problems;
mod quote;
mod reader;
mod schema;
mod secrets;
mod shape;
mod stream;
pub mod yaml;

pub use check::{check, is_http_url};
pub use declare::FromDocument;
pub use diagnostic::{Diagnostic, Diagnostics, MAX_SHOWN_DIAGNOSTICS, is_blank, visible_char};
pub use excerpt::{excerpt, shorten};
pub use file::{open_file, read_file, read_text_file};
pub use last_output::LastOutput;
pub use nearest::{nearest, nearest_or};
pub use node::{DocumentNode, MapEntry, MapKey, NodeValue};
pub use place::{SourceLine, SourceSpan, SourceText};
pub use quote::{is_hidden, quote, show_hidden};
pub use reader::{MapView, NodeView};
pub use schema::{SchemaVariable, json_schema, reference_markdown};
pub use secrets::{address_password, is_secret_header, is_secret_name};
pub use shape::{Field, Kind, Shape, TaggedShapes};
pub use stream::source_from_bytes;
