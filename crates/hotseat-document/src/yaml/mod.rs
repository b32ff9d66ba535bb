//! YAML 1.2 with the core schema, as far as it has a JSON form.
//!
//! Plain scalars are resolved as the core schema says: `true` is a truth value, `yes`, `on` and `2024-01-31` are
//! text, `0x1F` and `0o17` are numbers. Anchors, aliases and merge keys (`<<`) work, up to a limit on what they
//! expand to. What has no JSON form is refused with its place: keys that are not text, `.inf`, tags of other
//! schemas, numbers that would lose digits. A key that is written twice is refused as well.

mod build;
mod scalar;
mod split;
mod words;

use std::io::BufRead;
use std::sync::Arc;

pub use split::Documents;

use super::diagnostic::Diagnostics;
use super::node::Node;
use super::place::Source;

/// Reads one document.
///
/// A source without a document is an empty one, which is [`Value::Null`](super::Value::Null). A source with more
/// than one document is a mistake; [`documents`] takes such a file apart.
pub fn parse(source: &Arc<Source>) -> Result<Node, Diagnostics> {
    build::build(source)
}

/// Takes a stream apart into its documents, without reading more of it than the next one.
///
/// `name` is the path as it is shown to people.
pub fn documents<R: BufRead>(name: impl Into<Arc<str>>, reader: R) -> Documents<R> {
    Documents::new(name.into(), reader)
}
